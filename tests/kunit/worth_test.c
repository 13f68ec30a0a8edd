// SPDX-License-Identifier: GPL-2.0
/*
 * The verdict about the TSC, concluded from facts.
 */
#include <kunit/test.h>
#include <linux/errno.h>

#include "worth.h"

static const struct apic_clock_verdict good = {
	.kind = APIC_TIMER_TSC_NONSTOP, .stable = true, .clocksource = true,
};

static const struct apic_clock_skew reference = { .quantum = 52 };
static const struct apic_clock_skew near = { .low = -9, .high = 11, .offset = 1, .quantum = 26 };
static const struct apic_clock_skew far = {
	.low = 990, .high = 1010, .offset = 1000, .quantum = 26,
};

static struct apic_clock_verdict judge(struct apic_clock_verdict verdict,
				       const struct apic_clock_skew *skew, int ret)
{
	apic_clock_worth_add(&verdict, &reference, 0);
	apic_clock_worth_add(&verdict, skew, ret);
	apic_clock_worth_conclude(&verdict);
	return verdict;
}

static void reason_test(struct kunit *test)
{
	struct apic_clock_verdict verdict = judge(good, &near, 0);

	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict), "no evidence against it");
	verdict = judge(good, &far, 0);
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict),
			   "the CPUs' TSCs are known to differ");
	verdict = good;
	verdict.adjusted = true;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict),
			   "TSC_ADJUST differs between CPUs");
	verdict = good;
	verdict.virtual = true;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict), "a hypervisor may move CPUs");
	verdict = good;
	verdict.stops = 1;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict),
			   "another counter suggests that it stopped or was set");
	verdict.proven = 1;
	apic_clock_worth_conclude(&verdict);
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict),
			   "another counter shows that it stopped or was set");
	/* The kernel's judgement outweighs our findings. */
	verdict.stable = false;
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict),
			   "the kernel has marked it unstable");
	verdict = judge(good, &near, -ESTALE);
	KUNIT_EXPECT_STREQ(test, apic_clock_worth_reason(&verdict),
			   "TSCs moved while their skew was measured");
}

static void exact_test(struct kunit *test)
{
	struct apic_clock_verdict verdict = judge(good, &near, 0);

	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_EXACT);
	KUNIT_EXPECT_EQ(test, verdict.within, 22ULL);
	KUNIT_EXPECT_EQ(test, verdict.measured, 2U);
	KUNIT_EXPECT_FALSE(test, verdict.apart);
	KUNIT_EXPECT_EQ(test, verdict.quantum, 26ULL);
}

static void corrected_test(struct kunit *test)
{
	struct apic_clock_verdict verdict = judge(good, &far, 0);

	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_CORRECTED);
	KUNIT_EXPECT_EQ(test, verdict.within, 2020ULL);
	KUNIT_EXPECT_TRUE(test, verdict.apart);

	verdict = good;
	verdict.adjusted = true;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_CORRECTED);
}

static void bounded_test(struct kunit *test)
{
	struct apic_clock_verdict verdict = good;

	verdict.virtual = true;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);
	KUNIT_EXPECT_EQ(test, verdict.within, 22ULL);

	verdict = good;
	verdict.packages = true;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);

	verdict = good;
	verdict.kind = APIC_TIMER_TSC_CONSTANT;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);

	/* The TSC is declared never to stop, but once seemed to have stopped. */
	verdict = good;
	verdict.stops = 1;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);
	KUNIT_EXPECT_EQ(test, verdict.within, 22ULL);

	verdict = good;
	verdict.ahead = 1;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);

	/* For a CPU that was not measured, nothing is promised. */
	verdict = judge(good, &near, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);
	KUNIT_EXPECT_EQ(test, verdict.within, U64_MAX);
	KUNIT_EXPECT_EQ(test, verdict.unknown, 1U);
	KUNIT_EXPECT_EQ(test, verdict.unmeasured, 0U);
	verdict = judge(good, &near, -ENODATA);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_BOUNDED);
	KUNIT_EXPECT_EQ(test, verdict.unknown, 1U);
	KUNIT_EXPECT_EQ(test, verdict.unmeasured, 1U);
}

static void untrusted_test(struct kunit *test)
{
	struct apic_clock_verdict verdict = judge(good, &near, -ESTALE);

	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_UNTRUSTED);
	KUNIT_EXPECT_EQ(test, verdict.within, U64_MAX);

	verdict = good;
	verdict.stable = false;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_UNTRUSTED);

	verdict = good;
	verdict.kind = APIC_TIMER_TSC_PLAIN;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_UNTRUSTED);

	verdict = good;
	verdict.rate_moved = 1;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_UNTRUSTED);

	/* A stop that no reading explains: earlier measurements are void. */
	verdict = good;
	verdict.stops = 1;
	verdict.proven = 1;
	verdict = judge(verdict, &near, 0);
	KUNIT_EXPECT_EQ(test, (int)verdict.worth, APIC_CLOCK_UNTRUSTED);
	KUNIT_EXPECT_EQ(test, verdict.within, U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(exact_test),
	KUNIT_CASE(corrected_test),
	KUNIT_CASE(bounded_test),
	KUNIT_CASE(untrusted_test),
	KUNIT_CASE(reason_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_clock_worth",
	.test_cases = cases,
};

kunit_test_suite(suite);
