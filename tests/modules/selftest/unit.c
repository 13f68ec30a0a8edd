// SPDX-License-Identifier: GPL-2.0
/*
 * Units, clocks, and the query.
 */
#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/tsc.h>

#include "selftest.h"

static void units(struct selftest *test)
{
	EXPECT_EQ(test, apic_timer_ns_to_tsc(0), 0);
	EXPECT_EQ(test, apic_timer_ns_to_tsc(1000000), tsc_khz);
	EXPECT_EQ(test, apic_timer_us_to_tsc(1000), tsc_khz);
	EXPECT_EQ(test, apic_timer_us_to_tsc(7000000), 7000ULL * tsc_khz);
	EXPECT_EQ(test, apic_timer_ns_to_tsc(86400000000000ULL),
		  86400000ULL * tsc_khz);
	EXPECT_EQ(test, apic_timer_tsc_to_ns(tsc_khz), 1000000);
	EXPECT_EQ(test, apic_timer_tsc_to_ns(86400000ULL * tsc_khz),
		  86400000000000ULL);
}

static void units_saturate(struct selftest *test)
{
	EXPECT_EQ(test, apic_timer_us_to_tsc(U64_MAX), U64_MAX);
	EXPECT_EQ(test, apic_timer_add_tsc(U64_MAX - 5, 5), U64_MAX);
	EXPECT_EQ(test, apic_timer_add_tsc(U64_MAX - 5, 6), U64_MAX);
	EXPECT_EQ(test, apic_timer_add_tsc(U64_MAX, U64_MAX), U64_MAX);
	EXPECT_EQ(test, apic_timer_add_tsc(40, 2), 42);
	if (tsc_khz > 1000000)
		EXPECT_EQ(test, apic_timer_ns_to_tsc(U64_MAX), U64_MAX);
	else
		EXPECT_GE(test, U64_MAX, apic_timer_ns_to_tsc(U64_MAX));
	if (tsc_khz < 1000000)
		EXPECT_EQ(test, apic_timer_tsc_to_ns(U64_MAX), U64_MAX);
}

static void now_is_the_tsc(struct selftest *test)
{
	u64 before, now, after;

	before = rdtsc_ordered();
	now = apic_timer_now();
	after = rdtsc_ordered();
	EXPECT_GE(test, now, before);
	EXPECT_GE(test, after, now);
}

/*
 * Two clocks cannot be read at the same instant, and anything may happen in between: of many tries
 * the best counts. A wrong conversion has no good one.
 */
#define TRIES 100

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

static void ktime_of_now(struct selftest *test)
{
	u64 to_ktime = U64_MAX, to_tsc = U64_MAX, tsc;
	ktime_t time;
	int i;

	for (i = 0; i < TRIES; i++) {
		tsc = apic_timer_now();
		time = ktime_get();
		to_ktime = min(to_ktime,
			       distance(apic_timer_tsc_to_ktime(tsc), time));
		to_tsc = min(to_tsc,
			     distance(apic_timer_ktime_to_tsc(time), tsc));
	}
	EXPECT_GE(test, 50000, to_ktime);
	EXPECT_GE(test, apic_timer_us_to_tsc(50), to_tsc);
}

/* Round trips, of future and past moments. */
static void ktime_there_and_back(struct selftest *test)
{
	static const s64 away_ms[] = { -50, 0, 1, 1000, 100000 };
	unsigned int i, try;

	for (i = 0; i < ARRAY_SIZE(away_ms); i++) {
		u64 best = U64_MAX;

		for (try = 0; try < TRIES; try++) {
			ktime_t time = ktime_get() + away_ms[i] * NSEC_PER_MSEC;
			u64 tsc = apic_timer_ktime_to_tsc(time);

			best = min(best, distance(apic_timer_tsc_to_ktime(tsc),
						  time));
		}
		EXPECT_GE(test, 50000, best);
	}
}

static void ktime_saturates(struct selftest *test)
{
	if (tsc_khz <= 1000000)
		EXPECT_EQ(test, apic_timer_tsc_to_ktime(U64_MAX), KTIME_MAX);
	else
		EXPECT_GE(test, apic_timer_tsc_to_ktime(U64_MAX),
			  KTIME_MAX / 8);
	EXPECT_EQ(test, apic_timer_ktime_to_tsc(-KTIME_MAX), 0);
	EXPECT_GE(test, apic_timer_ktime_to_tsc(KTIME_MAX),
		  min(U64_MAX / 4, apic_timer_ns_to_tsc(KTIME_MAX) / 2));
}

/* A timer set by the kernel's clock expires when that clock says so. */
static void timer_by_ktime(struct selftest *test)
{
	struct selftest_shot shot;
	ktime_t time;

	selftest_shot_init(&shot, NULL);
	time = ktime_add_ms(ktime_get(), 100);
	shot.timer.expires = apic_timer_ktime_to_tsc(time);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_GE(test, ktime_get() + 20 * NSEC_PER_MSEC, time);
	del_apic_timer_sync(&shot.timer);
}

static void query(struct selftest *test)
{
	struct apic_timer_info info;
	bool hrtimer;
	int cpu;

	for_each_online_cpu(cpu) {
		memset(&info, 0xff, sizeof(info));
		EXPECT_EQ(test, apic_timer_query(cpu, &info), 0);
		EXPECT_EQ(test, info.tsc_khz, tsc_khz);
		EXPECT(test, info.modes & BIT(APIC_TIMER_RAW));
		EXPECT(test, info.tsc_kind <= APIC_TIMER_TSC_NONSTOP);
		hrtimer = !strcmp(info.source, "hrtimer");
		EXPECT(test, hrtimer || !strcmp(info.source, "proxy") ||
		       !strcmp(info.source, "hook"));
		EXPECT_EQ(test, info.hardware == APIC_TIMER_HW_HRTIMER,
			  hrtimer);
		EXPECT(test, info.hardware != APIC_TIMER_HW_NONE);
		selftest_note(test, "cpu %d: %s, hardware %d\n", cpu,
			      info.source, info.hardware);
	}
}

const struct selftest_case selftest_unit_cases[] = {
	CASE(units),
	CASE(units_saturate),
	CASE(now_is_the_tsc),
	CASE(ktime_of_now),
	CASE(ktime_there_and_back),
	CASE(ktime_saturates),
	CASE(timer_by_ktime),
	CASE(query),
	{}
};
