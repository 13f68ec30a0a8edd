// SPDX-License-Identifier: GPL-2.0
/* The lead: how early the work on a packet begins. */
#include <kunit/test.h>

#include "../../module/shaper/lead.h"

#define GUESS	4000
#define LEAST	3000
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

	shaper_lead_init(&lead, GUESS, 0, LONGEST, WINDOW);
	KUNIT_EXPECT_EQ(test, lead.cycles, (u32)GUESS);
	learn(&lead, 1, 5000, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, 5000U);
	KUNIT_EXPECT_LT(test, lead.cycles, 5700U);
	learn(&lead, 1, LONGEST, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_EQ(test, lead.cycles, (u32)LONGEST);
}

/* The first window is enough for usual preparations; a rare one is remembered for long. */
static void lead_shrinks_by_windows(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int n = 0;

	shaper_lead_init(&lead, GUESS, 0, LONGEST, WINDOW);
	learn(&lead, SHAPER_LEAD_WINDOW - 1, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, (u32)GUESS);
	learn(&lead, 1, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, 300U);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);

	/* Up to the longest window, and the first window without the rare preparation. */
	learn(&lead, 100 * WINDOW, 300, SHAPER_LEAD_KERNEL);
	learn(&lead, 1, 2000, SHAPER_LEAD_KERNEL);
	while (lead.cycles >= 2000 && n++ < 10 * WINDOW)
		learn(&lead, 1, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, n, (unsigned int)WINDOW);
	KUNIT_EXPECT_LE(test, n, 2U * WINDOW);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
}

/* The state of the CPU predicts what the next packet needs. */
static void lead_by_what_was_found(struct kunit *test)
{
	struct shaper_lead lead;

	shaper_lead_init(&lead, GUESS, 0, LONGEST, WINDOW);
	learn(&lead, SHAPER_LEAD_WINDOW, 2000, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_LT(test, lead.cycles, 2300U);
	/* Nothing is known of this class: the other classes stand in for it, not the guess. */
	learn(&lead, SHAPER_LEAD_PROGRAMS + 1, 2000, SHAPER_LEAD_USER);
	KUNIT_EXPECT_GE(test, lead.cycles, 2000U);
	KUNIT_EXPECT_LT(test, lead.cycles, 2300U);
	learn(&lead, SHAPER_LEAD_WINDOW, 500, SHAPER_LEAD_USER);
	KUNIT_EXPECT_LT(test, lead.cycles, 600U);
	/* The preparation counts for the class that was armed for, not for the state found. */
	learn(&lead, 1, 700, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.cycles, 2000U);
	learn(&lead, SHAPER_LEAD_PROGRAMS + 1, 500, SHAPER_LEAD_USER);
	KUNIT_EXPECT_GE(test, lead.cycles, 700U);
	KUNIT_EXPECT_LT(test, lead.cycles, 900U);
}

static void lead_forgets_what_is_no_lead(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int i;

	shaper_lead_init(&lead, GUESS, 0, LONGEST, WINDOW);
	for (i = 0; i < 1000; i++)
		learn(&lead, 1, i % 2 ? 300 : LONGEST + 1 + i, SHAPER_LEAD_IDLE);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
	learn(&lead, 1, U64_MAX, SHAPER_LEAD_IDLE);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
}

/* The lead covers rare delays as well, but not where a program wants the CPU. */
static void lead_is_not_less(struct kunit *test)
{
	struct shaper_lead lead;

	shaper_lead_init(&lead, GUESS, LEAST, LONGEST, WINDOW);
	learn(&lead, 4 * WINDOW, 300, SHAPER_LEAD_IDLE);
	KUNIT_EXPECT_EQ(test, lead.cycles, (u32)LEAST);
	learn(&lead, 4 * WINDOW, 300, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_EQ(test, lead.cycles, (u32)LEAST);
	KUNIT_EXPECT_LT(test, lead.usual, 500U);
	learn(&lead, 1, GUESS, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GT(test, lead.cycles, (u32)GUESS);
	learn(&lead, SHAPER_LEAD_PROGRAMS + SHAPER_LEAD_WINDOW + 1, 300, SHAPER_LEAD_USER);
	KUNIT_EXPECT_LT(test, lead.cycles, 380U);
}

/* A program that only some packets find does not shorten the lead: the next meets the kernel. */
static void lead_next_to_some_programs(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int i;

	shaper_lead_init(&lead, GUESS, LEAST, LONGEST, WINDOW);
	for (i = 0; i < 100 * WINDOW; i++) {
		learn(&lead, 1, 300, i % 10 ? SHAPER_LEAD_KERNEL : SHAPER_LEAD_USER);
		KUNIT_ASSERT_GE(test, lead.cycles, (u32)LEAST);
	}
}

/* For most packets a little more than the mean is enough; rare delays hardly move the mean. */
static void lead_usual(struct kunit *test)
{
	struct shaper_lead lead;
	unsigned int i;

	shaper_lead_init(&lead, GUESS, 0, LONGEST, WINDOW);
	KUNIT_EXPECT_EQ(test, lead.usual, (u32)GUESS);
	for (i = 0; i < 1000; i++) {
		learn(&lead, 1, i % 50 ? 600 : 5000, SHAPER_LEAD_KERNEL);
		if (i < 100)
			continue;
		KUNIT_EXPECT_GE(test, lead.usual, 700U);
		KUNIT_EXPECT_LE(test, lead.usual, 900U);
		KUNIT_EXPECT_GE(test, lead.cycles, 5000U);
	}
	/* It is never more than the whole lead, and it grows again from nothing. */
	learn(&lead, 4 * WINDOW, 0, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_LE(test, lead.usual, lead.cycles);
	learn(&lead, 1000, 600, SHAPER_LEAD_KERNEL);
	KUNIT_EXPECT_GE(test, lead.usual, 700U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(lead_grows_at_once),
	KUNIT_CASE(lead_shrinks_by_windows),
	KUNIT_CASE(lead_by_what_was_found),
	KUNIT_CASE(lead_forgets_what_is_no_lead),
	KUNIT_CASE(lead_is_not_less),
	KUNIT_CASE(lead_next_to_some_programs),
	KUNIT_CASE(lead_usual),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_lead",
	.test_cases = cases,
};

kunit_test_suite(suite);
