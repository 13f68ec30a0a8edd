// SPDX-License-Identifier: GPL-2.0
/*
 * Moments of the kernel's clock, and notifications about the TSC.
 */
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "selftest.h"

#define AHEAD_MS	100
#define TRIES		100
#define MOVES		20

static void take_time(struct selftest_shot *shot)
{
	*(ktime_t *)shot->context = ktime_get();
}

/* A moment of CLOCK_MONOTONIC, converted to TSC, is met, as judged by that clock. */
static void monotonic_moment(struct selftest *test)
{
	ktime_t moment = ktime_add_ms(ktime_get(), AHEAD_MS), time = 0;
	struct selftest_shot shot;

	selftest_shot_init(&shot, take_time);
	shot.context = &time;
	selftest_shot_due(&shot, apic_timer_ktime_to_tsc(moment));
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	selftest_note(test, "off by %lld ns\n",
		      ktime_to_ns(ktime_sub(time, moment)));
	del_apic_timer_sync(&shot.timer);
}

static const struct {
	clockid_t id;
	const char *name;
	ktime_t (*read)(void);
} clocks[] = {
	{ CLOCK_MONOTONIC, "monotonic", ktime_get },
	{ CLOCK_MONOTONIC_RAW, "raw", ktime_get_raw },
	{ CLOCK_BOOTTIME, "boottime", ktime_get_boottime },
	{ CLOCK_REALTIME, "realtime", ktime_get_real },
	{ CLOCK_TAI, "tai", ktime_get_clocktai },
};

/* A reading between two reads of the TSC converts to a value between them. */
static void clock_between_looks(struct selftest *test)
{
	unsigned int i, n, exact = 0;
	u64 before, after, tsc, error;
	unsigned long flags;
	ktime_t time;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		for (n = 0; n < TRIES; n++) {
			local_irq_save(flags);
			before = apic_timer_now();
			time = clocks[i].read();
			after = apic_timer_now();
			tsc = apic_timer_clock_to_tsc(clocks[i].id, time, &error);
			local_irq_restore(flags);
			if (!EXPECT(test, error < U64_MAX))
				return;
			EXPECT_GE(test, after + error, tsc);
			if (error) {
				EXPECT_GE(test, tsc + error, before);
				continue;
			}
			/* It is the first TSC with this reading; the TSC read may be later. */
			exact++;
			EXPECT(test, apic_timer_tsc_to_clock(clocks[i].id, before) <= time);
			EXPECT_EQ(test, apic_timer_tsc_to_clock(clocks[i].id, tsc), time);
			EXPECT(test, apic_timer_tsc_to_clock(clocks[i].id, tsc - 1) < time);
			if (n % 16 == 0)
				selftest_sleep_ms(1);
		}
	}
	selftest_note(test, "exact %u of %zu\n", exact, ARRAY_SIZE(clocks) * TRIES);
}

/* A moment converted from a distance is where the clock later reads it. */
static void clock_ahead(struct selftest *test)
{
	u64 expected[ARRAY_SIZE(clocks)], error, tsc;
	ktime_t moments[ARRAY_SIZE(clocks)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		moments[i] = ktime_add_ms(clocks[i].read(), AHEAD_MS);
		expected[i] = apic_timer_clock_to_tsc(clocks[i].id, moments[i], NULL);
	}
	selftest_sleep_ms(AHEAD_MS + 1);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		tsc = apic_timer_clock_to_tsc(clocks[i].id, moments[i], &error);
		selftest_note(test, "%s off by %lld cycles, error %llu\n", clocks[i].name,
			      (s64)(expected[i] - tsc), error);
	}
}

static void clock_interval(struct selftest *test)
{
	ktime_t before, after, earliest, latest;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		for (n = 0; n < TRIES; n++) {
			before = clocks[i].read();
			EXPECT_EQ(test, apic_timer_clock_now(clocks[i].id, &earliest, &latest), 0);
			after = clocks[i].read();
			EXPECT(test, before <= earliest);
			EXPECT(test, earliest <= latest);
			EXPECT(test, latest <= after);
		}
	}
}

static bool reading;

static void read_on(void *unused)
{
	while (READ_ONCE(reading))
		ktime_get();
}

/*
 * Conversions stay within their error while other CPUs read the clock: a CPU that reads an HPET at
 * the same time gets another CPU's earlier reading.
 */
static void clock_shared(struct selftest *test)
{
	u64 tsc, error, expected, least, late = 0, stale = 0;
	ktime_t moment, earliest, latest;
	unsigned int i, n;

	for (i = 0; i < TRIES; i++) {
		moment = ktime_get();
		expected = apic_timer_clock_to_tsc(CLOCK_MONOTONIC, moment, &least);
		WRITE_ONCE(reading, true);
		smp_call_function(read_on, NULL, false);
		for (n = 0; n < TRIES / 10; n++) {
			tsc = apic_timer_clock_to_tsc(CLOCK_MONOTONIC, moment, &error);
			EXPECT_GE(test, tsc + error + least, expected);
			if (tsc > expected + least + error)
				late = max(late, tsc - (expected + least + error));

			tsc = apic_timer_now();
			EXPECT(test, !apic_timer_clock_now(CLOCK_MONOTONIC, &earliest, &latest));
			EXPECT(test, earliest <= latest);
			expected = apic_timer_clock_to_tsc(CLOCK_MONOTONIC, earliest, &least);
			if (tsc > expected + least)
				stale = max(stale, tsc - (expected + least));
			moment = earliest;
		}
		WRITE_ONCE(reading, false);
		smp_call_function(read_on, NULL, true);
	}
	selftest_note(test, "late %llu stale %llu cycles\n", late, stale);
	EXPECT_EQ(test, late, 0);
	EXPECT_EQ(test, stale, 0);
}

static void clock_unknown(struct selftest *test)
{
	static const clockid_t none[] = {
		CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME_COARSE, CLOCK_REALTIME_ALARM, 12, 63, 64,
		-1, INT_MAX, INT_MIN,
	};
	ktime_t earliest, latest;
	unsigned int i;
	u64 error;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		error = 0;
		EXPECT_EQ(test, apic_timer_clock_to_tsc(none[i], 0, &error), U64_MAX);
		EXPECT_EQ(test, error, U64_MAX);
		EXPECT_EQ(test, apic_timer_clock_to_tsc(none[i], 0, NULL), U64_MAX);
		EXPECT_EQ(test, apic_timer_tsc_to_clock(none[i], 0), KTIME_MAX);
		EXPECT_EQ(test, apic_timer_clock_now(none[i], &earliest, &latest), -EINVAL);
	}
}

/* Minimum time of conversions, including the call. */
static void clock_cost(struct selftest *test)
{
	u64 before, took, to = U64_MAX, from = U64_MAX, nothing = U64_MAX, value = 0;
	ktime_t ahead = ktime_add_ms(ktime_get_clocktai(), 1);
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < TRIES; i++) {
		local_irq_save(flags);
		before = apic_timer_now();
		took = apic_timer_now() - before;
		nothing = min(nothing, took);
		before = apic_timer_now();
		value += apic_timer_clock_to_tsc(CLOCK_TAI, ahead, NULL);
		took = apic_timer_now() - before;
		to = min(to, took);
		before = apic_timer_now();
		value += apic_timer_tsc_to_clock(CLOCK_TAI, before);
		took = apic_timer_now() - before;
		from = min(from, took);
		local_irq_restore(flags);
	}
	OPTIMIZER_HIDE_VAR(value);
	selftest_note(test, "to TSC %llu cycles, from TSC %llu\n", to - nothing, from - nothing);
}

static int ignore(struct notifier_block *block, unsigned long event,
		  void *notice)
{
	return NOTIFY_OK;
}

static void notifier(struct selftest *test)
{
	static struct notifier_block block = { .notifier_call = ignore };
	struct apic_timer_info info;

	EXPECT_EQ(test, apic_timer_unregister_notifier(&block), -ENOENT);
	EXPECT_EQ(test, apic_timer_register_notifier(&block), 0);
	EXPECT_EQ(test, apic_timer_register_notifier(&block), -EEXIST);
	EXPECT_EQ(test, apic_timer_unregister_notifier(&block), 0);

	EXPECT_EQ(test, apic_timer_query(0, &info), 0);
	EXPECT_EQ(test, info.tsc_epoch, 0);
}

static atomic_t moves;

static void count_move(void)
{
	atomic_inc(&moves);
}

/* TSCs move while no timer is pending, and timers work afterwards. */
static void tsc_moved(struct selftest *test)
{
	struct selftest_shot shot;
	unsigned int i;

	atomic_set(&moves, 0);
	EXPECT_EQ(test, apic_timer_move_tsc(NULL, count_move), -EINVAL);
	EXPECT_EQ(test, apic_timer_move_tsc(cpu_online_mask, NULL), -EINVAL);
	EXPECT_EQ(test, apic_timer_move_tsc(cpu_none_mask, count_move), -EINVAL);
	selftest_shot_init(&shot, NULL);
	selftest_shot_due_us(&shot, USEC_PER_SEC * 3600U);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, apic_timer_move_tsc(cpu_online_mask, count_move), -EBUSY);
	EXPECT_EQ(test, atomic_read(&moves), 0);
	EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 1);
	/* It is not done without high resolution timers. */
	if (hrtimer_resolution != 1)
		return;
	for (i = 0; i < MOVES; i++)
		EXPECT_EQ(test, apic_timer_move_tsc(cpu_online_mask, count_move), 0);
	EXPECT_EQ(test, atomic_read(&moves), MOVES * num_online_cpus());
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

const struct selftest_case selftest_clock_cases[] = {
	CASE(monotonic_moment),
	CASE(clock_between_looks),
	CASE(clock_ahead),
	CASE(clock_interval),
	CASE_SMP(clock_shared),
	CASE(clock_unknown),
	CASE(clock_cost),
	CASE(notifier),
	CASE(tsc_moved),
	{}
};
