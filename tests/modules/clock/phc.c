// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of PTP hardware clocks: the moments that a script arms them for, and the starts of their
 * handlers.
 */
#include <linux/apic_clock.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/processor.h>
#include <linux/seq_file.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "clock_test.h"

#define CLOCKS	2
#define SLOTS	8

/**
 * struct slot - a timer and its results
 * @timer:	the timer
 * @runs:	number of times that its handler ran
 * @start:	TSC at the last start
 * @lost:	error that the timer's owner was notified of
 * @ret:	return value of the last command
 */
static struct slot {
	struct apic_clock_timer timer;
	unsigned int runs;
	u64 start;
	int lost;
	int ret;
} slots[SLOTS];

/* Numbers of the clocks, or errors; and the last prediction for each. */
static clockid_t numbers[CLOCKS];

static struct prediction {
	s64 when;
	u64 tsc;
	u64 error;
} predictions[CLOCKS];

static int others[9];

static void handler(unsigned long long now, unsigned long data)
{
	struct slot *slot = (struct slot *)data;

	slot->start = now;
	slot->runs++;
}

/*
 * An owner that is notified of a loss takes time, and arms its timer as the module is unloaded; or
 * it arms it at once for another clock.
 */
static enum { NOTHING, LINGER, OTHER_CLOCK } when_lost;

static void linger(struct apic_clock_timer *timer)
{
	u64 begun = apic_timer_now(), second = apic_timer_ns_to_tsc(NSEC_PER_SEC);

	while (READ_ONCE(THIS_MODULE->state) != MODULE_STATE_GOING &&
	       apic_timer_now() - begun < 5 * second)
		cpu_relax();
	/* Until all has been cancelled, unless this is waited for. */
	begun = apic_timer_now();
	while (apic_timer_now() - begun < second)
		cpu_relax();
	add_apic_timer_at(timer, CLOCK_MONOTONIC,
			  apic_timer_tsc_to_clock(CLOCK_MONOTONIC, apic_timer_now()) +
			  NSEC_PER_SEC);
}

static void lost(struct apic_clock_timer *timer, int ret)
{
	struct slot *slot = container_of(timer, struct slot, timer);

	WRITE_ONCE(slot->lost, ret);
	if (when_lost == LINGER)
		linger(timer);
	else if (when_lost == OTHER_CLOCK)
		slot->ret = add_apic_timer_at(timer, CLOCK_TAI, ktime_get_clocktai());
}

/* Bad input, and the functions that refuse it. */
static void refuse(clockid_t number)
{
	struct apic_clock_timer *timer = &slots[SLOTS - 1].timer;
	ktime_t earliest, latest;
	unsigned int i = 0;
	u64 error;

	others[i++] = apic_clock_phc_attach(-1);
	others[i++] = apic_clock_phc_attach(4711);
	others[i++] = apic_clock_phc_detach(CLOCK_TAI);
	others[i++] = apic_clock_phc_detach(number + 1);
	others[i++] = add_apic_timer_at(timer, number + 1, 0);
	/* The core knows only the kernel's clocks. */
	others[i++] = apic_timer_clock_now(number, &earliest, &latest);
	others[i++] = apic_clock_now(number, NULL, &latest);
	others[i++] = apic_clock_now(number, &earliest, NULL);
	others[i++] = apic_timer_clock_to_tsc(number, 0, &error) == U64_MAX && error == U64_MAX;
}

static int arm(unsigned int n, int clock, long long ms)
{
	struct slot *slot = &slots[n];
	ktime_t when = apic_clock_from_tsc(numbers[clock], apic_timer_now());

	slot->runs = 0;
	slot->lost = 0;
	slot->ret = add_apic_timer_at(&slot->timer, numbers[clock], when + ms * NSEC_PER_MSEC);
	return 0;
}

/* Arm timers of all clocks and CLOCK_TAI, 1 ms apart, so that no handler delays another. */
static void arm_all(long long ms)
{
	ktime_t when = apic_clock_from_tsc(numbers[0], apic_timer_now()) + ms * NSEC_PER_MSEC;
	unsigned int n;

	for (n = 0; n <= CLOCKS; n++) {
		slots[n].runs = 0;
		slots[n].ret = add_apic_timer_at(&slots[n].timer,
						 n < CLOCKS ? numbers[n] : CLOCK_TAI,
						 when + n * NSEC_PER_MSEC);
	}
}

static void predict(int clock, long long ms)
{
	struct prediction *of = &predictions[clock];

	of->when = apic_clock_from_tsc(numbers[clock], apic_timer_now()) + ms * NSEC_PER_MSEC;
	of->tsc = apic_clock_to_tsc(numbers[clock], of->when, &of->error);
}

/* "phc_VERB SLOT CLOCK VALUE" */
int clock_test_phc(const char *verb, unsigned int n, int clock, long long value)
{
	if (n >= SLOTS || clock < 0 || clock >= CLOCKS)
		return -EINVAL;
	if (!strcmp(verb, "phc_attach"))
		numbers[clock] = apic_clock_phc_attach(value);
	else if (!strcmp(verb, "phc_detach"))
		slots[n].ret = apic_clock_phc_detach(numbers[clock]);
	else if (!strcmp(verb, "phc_arm"))
		return arm(n, clock, value);
	else if (!strcmp(verb, "phc_all"))
		arm_all(value);
	else if (!strcmp(verb, "phc_mod"))
		slots[n].ret = mod_apic_timer_at(&slots[n].timer, slots[n].timer.when +
						 value * NSEC_PER_MSEC);
	else if (!strcmp(verb, "phc_del"))
		slots[n].ret = del_apic_timer_at_sync(&slots[n].timer);
	else if (!strcmp(verb, "phc_predict"))
		predict(clock, value);
	else if (!strcmp(verb, "phc_lost"))
		when_lost = value;
	else if (!strcmp(verb, "phc_real"))
		slots[n].ret = add_apic_timer_at(&slots[n].timer, CLOCK_REALTIME,
						 ktime_get_real() + value * NSEC_PER_MSEC);
	else if (!strcmp(verb, "phc_refuse"))
		refuse(numbers[clock]);
	else
		return -EINVAL;
	return 0;
}

void clock_test_phc_show(struct seq_file *file)
{
	unsigned int n;

	for (n = 0; n < CLOCKS; n++)
		seq_printf(file, "phc %u number %d when %lld tsc %llu error %llu\n", n, numbers[n],
			   predictions[n].when, predictions[n].tsc, predictions[n].error);
	for (n = 0; n < SLOTS; n++)
		seq_printf(file, "phc_slot %u ret %d runs %u when %lld start %llu lost %d pending %d\n",
			   n, slots[n].ret, READ_ONCE(slots[n].runs), slots[n].timer.when,
			   slots[n].start, READ_ONCE(slots[n].lost),
			   apic_clock_timer_pending(&slots[n].timer));
	seq_puts(file, "phc_refusals");
	for (n = 0; n < ARRAY_SIZE(others); n++)
		seq_printf(file, " %d", others[n]);
	seq_putc(file, '\n');
}

void clock_test_phc_init(void)
{
	unsigned int n;

	for (n = 0; n < SLOTS; n++) {
		slots[n].timer.timer.function = handler;
		slots[n].timer.timer.data = (unsigned long)&slots[n];
		init_apic_clock_timer(&slots[n].timer);
		slots[n].timer.timer.flags = APIC_TIMER_EXACT;
		slots[n].timer.lost = lost;
	}
}

void clock_test_phc_exit(void)
{
	unsigned int n;

	for (n = 0; n < SLOTS; n++)
		del_apic_timer_at_sync(&slots[n].timer);
	for (n = 0; n < CLOCKS; n++)
		apic_clock_phc_detach(numbers[n]);
}
