// SPDX-License-Identifier: GPL-2.0
/* Departure times of the kernel's clocks as TSC values; the simulated TSC's rate. */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/limits.h>
#include <linux/time64.h>

#include "../../module/shaper/clock.h"
#include "../../module/shaper/lead.h"

static const struct shaper_pair pair = {
	.tsc = 1000000000,
	.ns = {
		[SHAPER_MONOTONIC] = 5000000000LL,
		[SHAPER_REALTIME] = 1700000000000000000LL,
		[SHAPER_TAI] = 1700000037000000000LL,
	},
};

static void each_clock_has_its_zero(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < SHAPER_CLOCKS; i++) {
		KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, i, pair.ns[i]), pair.tsc);
		KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, i, pair.ns[i] + 1000000),
				pair.tsc + apic_timer_ns_to_tsc(1000000));
		KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, i, pair.ns[i] - 1000),
				pair.tsc - apic_timer_ns_to_tsc(1000));
	}
}

/* No fraction of a cycle early: converted back, it is that time or later. */
static void fractions_are_rounded_up(struct kunit *test)
{
	unsigned int ns;

	for (ns = 0; ns < 10000; ns++) {
		u64 at = shaper_clock_to_tsc(&pair, SHAPER_MONOTONIC,
					     pair.ns[SHAPER_MONOTONIC] + ns);

		KUNIT_ASSERT_GE(test, apic_timer_tsc_to_ns(at - pair.tsc), (u64)ns);
		KUNIT_ASSERT_LE(test, at - pair.tsc, apic_timer_ns_to_tsc(ns) + 1);
	}
}

/* There and back is the same nanosecond, or the next one where a cycle is longer. */
static void converted_back(struct kunit *test)
{
	struct shaper_pair end = pair;
	s64 distance;
	unsigned int i;

	for (i = 0; i < SHAPER_CLOCKS; i++) {
		for (distance = -100000000; distance <= 100000000; distance += 999983) {
			s64 ns = pair.ns[i] + distance;
			u64 at = shaper_clock_to_tsc(&pair, i, ns);
			s64 back = shaper_clock_from_tsc(&pair, i, at);

			KUNIT_ASSERT_GE(test, back, ns - (distance < 0));
			KUNIT_ASSERT_LE(test, back, ns + 1);
		}
	}
	/* What does not fit, at whatever rate the TSC counts. */
	end.ns[SHAPER_TAI] = S64_MAX - 1000;
	KUNIT_EXPECT_EQ(test, shaper_clock_from_tsc(&end, SHAPER_TAI,
						    end.tsc + apic_timer_us_to_tsc(1000)),
			(s64)S64_MAX);
	KUNIT_EXPECT_EQ(test, shaper_clock_from_tsc(&pair, SHAPER_MONOTONIC, 0),
			pair.ns[SHAPER_MONOTONIC] - (s64)apic_timer_tsc_to_ns(pair.tsc));
}

/* As every packet without a departure time has, in TAI: 1970 is before the TSC's zero. */
static void before_zero_is_zero(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, SHAPER_TAI, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, SHAPER_TAI, S64_MIN), 0ULL);
	KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, SHAPER_MONOTONIC, S64_MIN), 0ULL);
	KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&pair, SHAPER_MONOTONIC, -1), 0ULL);
}

static void far_future_is_far(struct kunit *test)
{
	struct shaper_pair late = pair;

	KUNIT_EXPECT_GT(test, shaper_clock_to_tsc(&pair, SHAPER_MONOTONIC, S64_MAX), pair.tsc);
	late.tsc = U64_MAX - 1;
	KUNIT_EXPECT_EQ(test, shaper_clock_to_tsc(&late, SHAPER_MONOTONIC, S64_MAX), U64_MAX);
}

static void looks_come_nearer(struct kunit *test)
{
	u64 near = 100000, at = 10ULL * NSEC_PER_SEC, now = 0, look;
	unsigned int looks = 0;

	while ((look = shaper_clock_look(now, at, near))) {
		KUNIT_ASSERT_GT(test, look, now);
		KUNIT_ASSERT_LT(test, look, at);
		now = look;
		looks++;
	}
	KUNIT_EXPECT_LE(test, at - now, near);
	/* 10 s, 625 ms, 39 ms, 2.4 ms, 153 us, 9.5 us */
	KUNIT_EXPECT_EQ(test, looks, 5U);
	KUNIT_EXPECT_EQ(test, shaper_clock_look(at, at, near), 0ULL);
	KUNIT_EXPECT_EQ(test, shaper_clock_look(at + 1, at, near), 0ULL);
	KUNIT_EXPECT_EQ(test, shaper_clock_look(0, U64_MAX, near), U64_MAX - (U64_MAX >> 4) - 1);
}

static void lead_grows_at_once(struct kunit *test)
{
	struct shaper_lead lead;

	shaper_lead_init(&lead, 1000, 8000);
	shaper_lead_learn(&lead, 2000);
	KUNIT_EXPECT_GE(test, lead.cycles, 2000U);
	KUNIT_EXPECT_LT(test, lead.cycles, 2300U);
}

static void lead_shrinks_after_two_windows(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int i;

	shaper_lead_init(&lead, 1000, 8000);
	shaper_lead_learn(&lead, 2000);
	for (i = 0; i < 200; i++)
		shaper_lead_learn(&lead, 300 + i % 5);
	KUNIT_EXPECT_GE(test, lead.cycles, 304U);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
}

static void lead_forgets_what_is_no_lead(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int i;

	shaper_lead_init(&lead, 1000, 8000);
	for (i = 0; i < 1000; i++)
		shaper_lead_learn(&lead, i % 2 ? 300 : 8001 + i);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
	shaper_lead_learn(&lead, U64_MAX);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
	shaper_lead_learn(&lead, 8000);
	KUNIT_EXPECT_EQ(test, lead.cycles, 8000U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_clock_has_its_zero),
	KUNIT_CASE(fractions_are_rounded_up),
	KUNIT_CASE(converted_back),
	KUNIT_CASE(before_zero_is_zero),
	KUNIT_CASE(far_future_is_far),
	KUNIT_CASE(looks_come_nearer),
	KUNIT_CASE(lead_grows_at_once),
	KUNIT_CASE(lead_shrinks_after_two_windows),
	KUNIT_CASE(lead_forgets_what_is_no_lead),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_clock",
	.test_cases = cases,
};

kunit_test_suite(suite);
