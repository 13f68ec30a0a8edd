// SPDX-License-Identifier: GPL-2.0
/* Departure times of the kernel's clocks as TSC values. */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/time64.h>

#include "../../module/shaper/clock.h"
#include "../../module/shaper/lead.h"

/* Later by what the conversion may be off; one of the two may be held up by the host. */
static bool error_is_added(clockid_t clock, s64 distance)
{
	unsigned int tries = 10;

	while (tries--) {
		ktime_t now = apic_timer_tsc_to_clock(clock, apic_timer_now());
		ktime_t when = ktime_add_ns(now, distance);
		u64 at = shaper_clock_to_tsc(clock, when), error;
		u64 middle = apic_timer_clock_to_tsc(clock, when, &error);

		if (error && at > middle + error / 2)
			return true;
	}
	return false;
}

static void never_early(struct kunit *test)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		KUNIT_EXPECT_TRUE(test, error_is_added(clocks[i], 100 * NSEC_PER_MSEC));
		KUNIT_EXPECT_TRUE(test, error_is_added(clocks[i], -100 * NSEC_PER_MSEC));
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

#define GUESS	4000
#define LONGEST	8000
#define WINDOW	(16 * SHAPER_LEAD_WINDOW)

static void learn(struct shaper_lead *lead, unsigned int n, u64 took, enum shaper_lead_found found)
{
	while (n--)
		shaper_lead_learn(lead, took, found);
}

static void lead_grows_at_once(struct kunit *test)
{
	struct shaper_lead lead;

	shaper_lead_init(&lead, GUESS, LONGEST, WINDOW);
	KUNIT_EXPECT_EQ(test, lead.cycles, (u32)GUESS);
	learn(&lead, 1, 5000, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, 5000U);
	KUNIT_EXPECT_LT(test, lead.cycles, 5700U);
	learn(&lead, 1, LONGEST, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_EQ(test, lead.cycles, (u32)LONGEST);
}

/* The first window suffices for what is usual; what was rare stays for long. */
static void lead_shrinks_by_windows(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int n = 0;

	shaper_lead_init(&lead, GUESS, LONGEST, WINDOW);
	learn(&lead, SHAPER_LEAD_WINDOW - 1, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, (u32)GUESS);
	learn(&lead, 1, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, 300U);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);

	/* Up to the longest window, and the one that is the first without it. */
	learn(&lead, 100 * WINDOW, 300, SHAPER_LEAD_KERNEL);
	learn(&lead, 1, 2000, SHAPER_LEAD_KERNEL);
	while (lead.cycles >= 2000 && n++ < 10 * WINDOW)
		learn(&lead, 1, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, n, (unsigned int)WINDOW);
	KUNIT_EXPECT_LE(test, n, 2U * WINDOW);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
}

/* What the CPU was at says what the next packet needs. */
static void lead_by_what_was_found(struct kunit *test)
{
	struct shaper_lead lead;

	shaper_lead_init(&lead, GUESS, LONGEST, WINDOW);
	learn(&lead, SHAPER_LEAD_WINDOW, 2000, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_LT(test, lead.cycles, 2300U);
	/* Nothing is known of this one: what is known of others will do, and not the guess. */
	learn(&lead, 1, 2000, SHAPER_LEAD_USER);
	KUNIT_EXPECT_GE(test, lead.cycles, 2000U);
	KUNIT_EXPECT_LT(test, lead.cycles, 2300U);
	learn(&lead, SHAPER_LEAD_WINDOW, 500, SHAPER_LEAD_USER);
	KUNIT_EXPECT_LT(test, lead.cycles, 600U);
	/* Learnt of the class that it was armed for, which is not what is found. */
	learn(&lead, 1, 700, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, 2000U);
	learn(&lead, 1, 500, SHAPER_LEAD_USER);
	KUNIT_EXPECT_GE(test, lead.cycles, 700U);
	KUNIT_EXPECT_LT(test, lead.cycles, 900U);
}

static void lead_forgets_what_is_no_lead(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int i;

	shaper_lead_init(&lead, GUESS, LONGEST, WINDOW);
	for (i = 0; i < 1000; i++)
		learn(&lead, 1, i % 2 ? 300 : LONGEST + 1 + i, SHAPER_LEAD_IDLE);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
	learn(&lead, 1, U64_MAX, SHAPER_LEAD_IDLE);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(never_early),
	KUNIT_CASE(looks_come_nearer),
	KUNIT_CASE(lead_grows_at_once),
	KUNIT_CASE(lead_shrinks_by_windows),
	KUNIT_CASE(lead_by_what_was_found),
	KUNIT_CASE(lead_forgets_what_is_no_lead),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_clock",
	.test_cases = cases,
};

kunit_test_suite(suite);
