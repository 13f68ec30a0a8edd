// SPDX-License-Identifier: GPL-2.0
/*
 * Distance between two TSCs, from round trips whose truth is known.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "bounds.h"

#define ROUNDS	300

/* Duration of a message, cycles: sometimes it is delayed. */
static u64 way(struct rnd_state *rnd)
{
	u64 took = 20 + prandom_u32_state(rnd) % 30;

	return prandom_u32_state(rnd) % 50 ? took : took + prandom_u32_state(rnd) % 500000;
}

/* Round trips in both roles; B's TSC is ahead by @truth, and by @later in the second half. */
static struct apic_clock_bounds simulate(struct rnd_state *rnd, s64 truth, s64 later, u64 quantum)
{
	struct apic_clock_bounds bounds = APIC_CLOCK_BOUNDS_NONE;
	u64 now = 1ULL << 40, t1, t2, t3;
	unsigned int i;

	bounds.slack = 2 * max(quantum, 1ULL);
	for (i = 0; i < 2 * ROUNDS; i++) {
		bool reverse = i % 2;

		if (i == ROUNDS)
			truth = later;
		now += way(rnd);
		t1 = now + (reverse ? truth : 0);
		now += way(rnd);
		t2 = now + (reverse ? 0 : truth);
		now += way(rnd);
		t3 = now + (reverse ? truth : 0);
		if (quantum) {
			t1 -= t1 % quantum;
			t2 -= t2 % quantum;
			t3 -= t3 % quantum;
		}
		if (reverse)
			apic_clock_bounds_add_reverse(&bounds, t1, t2, t3);
		else
			apic_clock_bounds_add(&bounds, t1, t2, t3);
	}
	return bounds;
}

static const s64 truths[] = {
	0, 1, -1, 7, 50, 300, 1000, -1000, 100000, -100000, 1LL << 40, -(1LL << 39),
};

/* The truth is within the bounds, whichever messages were delayed, and near their middle. */
static void truth_inside_test(struct kunit *test)
{
	struct apic_clock_bounds bounds;
	struct rnd_state rnd;
	unsigned int i, n;

	prandom_seed_state(&rnd, 21);
	for (i = 0; i < ARRAY_SIZE(truths); i++) {
		for (n = 0; n < 100; n++) {
			bounds = simulate(&rnd, truths[i], truths[i], 0);
			KUNIT_ASSERT_LE(test, bounds.low, truths[i]);
			KUNIT_ASSERT_GE(test, bounds.high, truths[i]);
			KUNIT_ASSERT_FALSE(test, apic_clock_bounds_contradict(&bounds));
			KUNIT_ASSERT_LE(test, abs(apic_clock_bounds_middle(&bounds) - truths[i]),
					3LL);
			KUNIT_ASSERT_EQ(test, bounds.rounds, 2 * ROUNDS);
		}
	}
}

/*
 * The middle of the bounds depends on one round trip at each end. The estimate from many fast
 * ones is nearer to the truth most of the time.
 */
static void estimate_test(struct kunit *test)
{
	struct apic_clock_bounds bounds;
	u64 estimate = 0, middle = 0;
	struct rnd_state rnd;
	unsigned int i, n;

	prandom_seed_state(&rnd, 22);
	for (i = 0; i < ARRAY_SIZE(truths); i++) {
		for (n = 0; n < 100; n++) {
			bounds = simulate(&rnd, truths[i], truths[i], 13);
			estimate += abs(apic_clock_bounds_estimate(&bounds) - truths[i]);
			middle += abs(apic_clock_bounds_middle(&bounds) - truths[i]);
		}
	}
	kunit_info(test, "off by %llu in all, the middles of the bounds by %llu", estimate, middle);
	KUNIT_EXPECT_LT(test, estimate * 3, middle * 2);
}

/* One role alone is not enough: the CPU that answers may take longer to see a message. */
static void roles_test(struct kunit *test)
{
	struct apic_clock_bounds bounds = APIC_CLOCK_BOUNDS_NONE;
	unsigned int i;

	/* A message takes 30, the answer 10; B is ahead by 1000. */
	for (i = 0; i < 10; i++)
		apic_clock_bounds_add(&bounds, 5000, 6030, 5040);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_estimate(&bounds),
			apic_clock_bounds_middle(&bounds));
	for (i = 0; i < 10; i++)
		apic_clock_bounds_add_reverse(&bounds, 6000, 5030, 6040);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_estimate(&bounds), 1000LL);
	/* A delayed round trip is ignored, a faster one replaces all others. */
	apic_clock_bounds_add_reverse(&bounds, 6000, 6010, 7040);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_estimate(&bounds), 1000LL);
	apic_clock_bounds_add(&bounds, 5000, 6010, 5020);
	apic_clock_bounds_add_reverse(&bounds, 6000, 5010, 6020);
	KUNIT_EXPECT_EQ(test, bounds.trips[0].count, 1U);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_estimate(&bounds), 1000LL);
}

/* A TSC that moves meanwhile by more than the width of the bounds is detected. */
static void contradiction_test(struct kunit *test)
{
	static const s64 moves[] = { 60, -60, 1000, -1000, 100000 };
	struct apic_clock_bounds bounds;
	struct rnd_state rnd;
	unsigned int i, n;

	prandom_seed_state(&rnd, 22);
	for (i = 0; i < ARRAY_SIZE(moves); i++) {
		for (n = 0; n < 100; n++) {
			bounds = simulate(&rnd, 500, 500 + moves[i], 0);
			KUNIT_ASSERT_TRUE(test, apic_clock_bounds_contradict(&bounds));
		}
	}
}

/* With TSCs that count in steps, the estimate is one of the possible values. */
static void snap_test(struct kunit *test)
{
	struct apic_clock_bounds bounds = { .low = -130, .high = 156 };
	struct rnd_state rnd;
	unsigned int n, exact = 0;
	s64 truth, found;

	/* 13 or 39 for 13 modulo 26: the middle is 13. */
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 26, 13), 13LL);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 26, 1), 1LL);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 26, 25), -1LL + 26);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 1, 0), 13LL);
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 0, 0), 13LL);
	bounds = (struct apic_clock_bounds) { .low = -7, .high = -3 };
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 26, 22), -4LL);
	/* None within the bounds. */
	KUNIT_EXPECT_EQ(test, apic_clock_bounds_snap(&bounds, 26, 0), -5LL);

	prandom_seed_state(&rnd, 23);
	for (n = 0; n < 1000; n++) {
		truth = 26 * (s64)(prandom_u32_state(&rnd) % 1000) - 13000;
		bounds = simulate(&rnd, truth, truth, 26);
		found = apic_clock_bounds_snap(&bounds, 26, 0);
		KUNIT_ASSERT_GE(test, truth, bounds.low);
		KUNIT_ASSERT_LE(test, truth, bounds.high);
		KUNIT_ASSERT_EQ(test, found % 26, 0LL);
		exact += found == truth;
	}
	KUNIT_EXPECT_GT(test, exact, 990U);
}

/* A correction of a TSC must improve it for every possible truth. */
static void sure_test(struct kunit *test)
{
	s64 truth, left = 0;

	KUNIT_EXPECT_TRUE(test, apic_clock_skew_is_sure(988, 1010, 998));
	KUNIT_EXPECT_TRUE(test, apic_clock_skew_is_sure(-1010, -988, -1000));
	KUNIT_EXPECT_TRUE(test, apic_clock_skew_is_sure(12, 34, 23));
	KUNIT_EXPECT_FALSE(test, apic_clock_skew_is_sure(11, 33, 22));
	KUNIT_EXPECT_TRUE(test, apic_clock_skew_is_sure(-34, -12, -23));
	KUNIT_EXPECT_FALSE(test, apic_clock_skew_is_sure(-33, -11, -22));
	KUNIT_EXPECT_FALSE(test, apic_clock_skew_is_sure(-12, 10, -1));
	KUNIT_EXPECT_FALSE(test, apic_clock_skew_is_sure(0, 0, 0));
	KUNIT_EXPECT_FALSE(test, apic_clock_skew_is_sure(S64_MIN, S64_MAX, 0));
	KUNIT_EXPECT_FALSE(test, apic_clock_skew_is_sure(S64_MIN, -1, -500));
	for (truth = 12; truth <= 34; truth++) {
		left = max(left, abs(truth - 23));
		KUNIT_EXPECT_LT(test, left, truth);
	}
}

static void ring_test(struct kunit *test)
{
	const struct apic_clock_bounds a = { .low = 90, .high = 110 };
	const struct apic_clock_bounds b = { .low = -60, .high = -40 };
	struct apic_clock_bounds pair = { .low = -160, .high = -140 };

	KUNIT_EXPECT_TRUE(test, apic_clock_bounds_ring(&a, &b, &pair));
	pair = (struct apic_clock_bounds) { .low = -200, .high = -170 };
	KUNIT_EXPECT_TRUE(test, apic_clock_bounds_ring(&a, &b, &pair));
	pair.high = -171;
	KUNIT_EXPECT_FALSE(test, apic_clock_bounds_ring(&a, &b, &pair));
	pair = (struct apic_clock_bounds) { .low = -129, .high = -100 };
	KUNIT_EXPECT_FALSE(test, apic_clock_bounds_ring(&a, &b, &pair));
	pair.low = -130;
	KUNIT_EXPECT_TRUE(test, apic_clock_bounds_ring(&a, &b, &pair));
}

static void gcd_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, apic_clock_gcd(0, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_gcd(0, 26), 26ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_gcd(26, 0), 26ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_gcd(26 * 15, 26 * 4), 26ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_gcd(U64_MAX, U64_MAX - 1), 1ULL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(truth_inside_test),
	KUNIT_CASE(estimate_test),
	KUNIT_CASE(roles_test),
	KUNIT_CASE(contradiction_test),
	KUNIT_CASE(snap_test),
	KUNIT_CASE(sure_test),
	KUNIT_CASE(ring_test),
	KUNIT_CASE(gcd_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_clock_bounds",
	.test_cases = cases,
};

kunit_test_suite(suite);
