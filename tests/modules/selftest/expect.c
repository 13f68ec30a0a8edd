// SPDX-License-Identifier: GPL-2.0
/*
 * Expectations, and a timer that records what its handler sees.
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "selftest.h"

static atomic_t order = ATOMIC_INIT(0);

/**
 * selftest_expect() - note whether an expectation is met
 * @test:	the case
 * @ok:		it is
 * @file:	where
 * @line:	where
 * @what:	the expectation in words
 *
 * Return: @ok.
 */
bool selftest_expect(struct selftest *test, bool ok, const char *file, int line,
		     const char *what)
{
	if (!ok && !test->failed) {
		test->failed = true;
		scnprintf(test->failure, sizeof(test->failure), "%s:%d %s",
			  kbasename(file), line, what);
	}
	return ok;
}

/**
 * selftest_compare() - note whether two values compare as expected
 * @test:	the case
 * @ok:		they do
 * @file:	where
 * @line:	where
 * @what:	the expectation in words
 * @a:		first value
 * @b:		second value
 *
 * Return: @ok.
 */
bool selftest_compare(struct selftest *test, bool ok, const char *file,
		      int line, const char *what, s64 a, s64 b)
{
	if (!ok && !test->failed) {
		test->failed = true;
		scnprintf(test->failure, sizeof(test->failure),
			  "%s:%d %s, values %lld and %lld", kbasename(file),
			  line, what, a, b);
	}
	return ok;
}

/**
 * selftest_note() - add a line to a case's notes for the reader
 * @test:	the case
 * @format:	as for printf()
 */
void selftest_note(struct selftest *test, const char *format, ...)
{
	size_t length = strlen(test->notes);
	va_list args;

	va_start(args, format);
	vscnprintf(test->notes + length, sizeof(test->notes) - length, format,
		   args);
	va_end(args);
}

/**
 * selftest_sleep_ms() - sleep
 * @ms:		minimum
 */
void selftest_sleep_ms(unsigned int ms)
{
	usleep_range(ms * 1000, ms * 1000 + 200);
}

/**
 * selftest_spin_us() - busy-wait, in any context
 * @us:		for how long
 */
void selftest_spin_us(unsigned int us)
{
	u64 end = apic_timer_now() + apic_timer_us_to_tsc(us);

	while (apic_timer_now() < end)
		cpu_relax();
}

/**
 * selftest_random() - return a number from a fixed sequence
 *
 * Return: 32 bits.
 */
u32 selftest_random(void)
{
	static u32 x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

/**
 * selftest_shot_handler() - the handler of a struct selftest_shot
 * @now:	TSC at dispatch
 * @data:	the shot
 */
void selftest_shot_handler(unsigned long long now, unsigned long data)
{
	struct selftest_shot *shot = (struct selftest_shot *)data;
	u64 entry = apic_timer_now();
	int faults = 0;

	if (atomic_inc_return(&shot->inside) != 1)
		faults |= SHOT_OVERLAP;
	if (now < READ_ONCE(shot->due))
		faults |= SHOT_EARLY;
	if (now > entry + SHOT_NOW_MARGIN)
		faults |= SHOT_NOW;
	if (!in_hardirq() || !irqs_disabled())
		faults |= SHOT_CONTEXT;
	if (faults)
		atomic_or(faults, &shot->faults);

	shot->now = now;
	shot->cpu = raw_smp_processor_id();
	shot->order = atomic_inc_return(&order);
	if (shot->then)
		shot->then(shot);

	atomic_dec(&shot->inside);
	/* A reader that sees the count also sees the values written above. */
	atomic_inc_return_release(&shot->runs);
}

/**
 * selftest_shot_init() - set up a timer and its account
 * @shot:	overwritten
 * @then:	called by the handler, may be NULL
 */
void selftest_shot_init(struct selftest_shot *shot,
			void (*then)(struct selftest_shot *shot))
{
	memset(shot, 0, sizeof(*shot));
	shot->then = then;
	shot->cpu = -1;
	shot->timer.function = selftest_shot_handler;
	shot->timer.data = (unsigned long)shot;
	init_apic_timer(&shot->timer);
}

/**
 * selftest_shot_due() - set the moment of a timer that is not pending
 * @shot:	its timer
 * @tsc:	absolute TSC
 */
void selftest_shot_due(struct selftest_shot *shot, u64 tsc)
{
	shot->timer.expires = tsc;
	WRITE_ONCE(shot->due, tsc);
}

/**
 * selftest_shot_due_us() - set the moment of a timer that is not pending
 * @shot:	its timer
 * @us:		distance from now
 */
void selftest_shot_due_us(struct selftest_shot *shot, unsigned int us)
{
	selftest_shot_due(shot, apic_timer_now() + apic_timer_us_to_tsc(us));
}

/**
 * selftest_expect_runs() - expect a number of runs of a timer, and no more
 * @test:	the case
 * @shot:	the timer
 * @count:	complete runs since it was set up
 * @file:	where
 * @line:	where
 * @name:	of the timer
 *
 * Return: whether it ran that many times without faults.
 */
bool selftest_expect_runs(struct selftest *test,
			  const struct selftest_shot *shot, int count,
			  const char *file, int line, const char *name)
{
	char what[64];
	int runs, faults;

	(void)selftest_wait(atomic_read_acquire(&shot->runs) >= count);
	runs = atomic_read(&shot->runs);
	faults = atomic_read(&shot->faults);

	scnprintf(what, sizeof(what), "runs of %s", name);
	selftest_compare(test, runs == count, file, line, what, runs, count);
	scnprintf(what, sizeof(what), "faults of %s", name);
	return selftest_compare(test, !faults, file, line, what, faults, 0) &&
	       runs == count;
}
