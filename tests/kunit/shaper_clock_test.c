// SPDX-License-Identifier: GPL-2.0
/* Departure times of the kernel's clocks as TSC values. */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/time64.h>

#include "../../module/shaper/clock.h"
#include "../../module/shaper/lead.h"

/* By whatever the conversion is off: converted back, it is that time or later. */
static void never_early(struct kunit *test)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI };
	unsigned int i;
	s64 distance;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		for (distance = -100000000; distance <= 100000000; distance += 999983) {
			ktime_t now = apic_timer_tsc_to_clock(clocks[i], apic_timer_now());
			ktime_t when = ktime_add_ns(now, distance);
			u64 at = shaper_clock_to_tsc(clocks[i], when);

			KUNIT_ASSERT_GE(test, apic_timer_tsc_to_clock(clocks[i], at), when);
		}
	}
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
	KUNIT_CASE(never_early),
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
