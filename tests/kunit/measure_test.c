// SPDX-License-Identifier: GPL-2.0
/*
 * The instruments: how they count, and how they choose distances.
 */
#include <kunit/test.h>

#include "measure/counts.h"
#include "measure/random.h"
#include "measure/ways.h"

static const struct {
	s32 value;
	unsigned int bucket;
} places[] = {
	{ 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 3 }, { 7, 3 }, { 8, 4 }, { 1023, 10 },
	{ 1024, 11 }, { (1 << 22) - 1, 22 }, { 1 << 22, 23 }, { 1 << 30, 23 }, { S32_MAX, 23 },
};

static void a_value_is_counted_in_its_power_of_2(struct kunit *test)
{
	struct apic_measure_counts counts;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		memset(&counts, 0, sizeof(counts));
		measure_count(&counts, places[i].value);
		for (j = 0; j < APIC_MEASURE_BUCKETS; j++)
			KUNIT_EXPECT_EQ_MSG(test, counts.bucket[j], j == places[i].bucket,
					    "%d in bucket %u", places[i].value, j);
		KUNIT_EXPECT_EQ(test, counts.largest, (u32)places[i].value);
		KUNIT_EXPECT_EQ(test, counts.early, 0);
	}
}

static void early_ones_are_in_no_bucket(struct kunit *test)
{
	struct apic_measure_counts counts = {};
	unsigned int i;

	measure_count(&counts, -1);
	measure_count(&counts, S32_MIN);
	KUNIT_EXPECT_EQ(test, counts.early, 2);
	KUNIT_EXPECT_EQ(test, counts.largest, 0);
	for (i = 0; i < APIC_MEASURE_BUCKETS; i++)
		KUNIT_EXPECT_EQ(test, counts.bucket[i], 0);
}

static void a_difference_that_does_not_fit_is_the_nearest_that_does(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, measure_clamp(-5), -5);
	KUNIT_EXPECT_EQ(test, measure_clamp(1LL << 40), S32_MAX);
	KUNIT_EXPECT_EQ(test, measure_clamp(-(1LL << 40)), S32_MIN);
	KUNIT_EXPECT_EQ(test, measure_clamp(S64_MIN), S32_MIN);
}

static void distances_are_within_bounds_and_everywhere(struct kunit *test)
{
	static const struct {
		u32 least, most;
	} ranges[] = {
		{ 20000, 1020000 }, { 7, 7 }, { 0, 9 }, { 0, U32_MAX }, { U32_MAX, U32_MAX },
	};
	unsigned int i, j, tenth[10];
	u64 state, size;
	u32 number;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		memset(tenth, 0, sizeof(tenth));
		size = (u64)ranges[i].most - ranges[i].least + 1;
		state = 88172645463325252ULL;
		for (j = 0; j < 10000; j++) {
			number = measure_random(&state, ranges[i].least, ranges[i].most);
			KUNIT_ASSERT_GE(test, number, ranges[i].least);
			KUNIT_ASSERT_LE(test, number, ranges[i].most);
			tenth[div64_u64((number - ranges[i].least) * 10ULL, size)]++;
		}
		for (j = 0; size >= 10 && j < 10; j++)
			KUNIT_EXPECT_TRUE_MSG(test, tenth[j] > 850 && tenth[j] < 1150,
					      "%u in tenth %u of %u to %u", tenth[j], j,
					      ranges[i].least, ranges[i].most);
	}
}

static void a_seed_repeats(struct kunit *test)
{
	u64 a = 5, b = 5, c = 6;
	unsigned int i, alike = 0;
	u32 number;

	for (i = 0; i < 100; i++) {
		number = measure_random(&a, 0, 999999);
		KUNIT_EXPECT_EQ(test, number, measure_random(&b, 0, 999999));
		alike += number == measure_random(&c, 0, 999999);
	}
	KUNIT_EXPECT_LT(test, alike, 3);
}

static void turns_take_no_longer_than_there_is_time(struct kunit *test)
{
	static const u32 turn[] = { 100, 719, 1024, 2048, 5000 };
	unsigned int i;
	u64 cycles;

	for (i = 0; i < ARRAY_SIZE(turn); i++)
		for (cycles = 8; cycles < 1000; cycles += 7) {
			u64 turns = measure_turns(cycles, turn[i]);

			KUNIT_EXPECT_LE(test, (turns * turn[i]) >> 10, cycles);
			KUNIT_EXPECT_GT(test, ((turns + 1) * turn[i]) >> 10, cycles - 1);
		}
	/* The loop ends when its count reaches 0: a count of 0 would be 2^64 turns. */
	KUNIT_EXPECT_EQ(test, measure_turns(0, 1024), 1);
	KUNIT_EXPECT_EQ(test, measure_turns(100, 0), 1);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_value_is_counted_in_its_power_of_2),
	KUNIT_CASE(early_ones_are_in_no_bucket),
	KUNIT_CASE(a_difference_that_does_not_fit_is_the_nearest_that_does),
	KUNIT_CASE(distances_are_within_bounds_and_everywhere),
	KUNIT_CASE(a_seed_repeats),
	KUNIT_CASE(turns_take_no_longer_than_there_is_time),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_measure",
	.test_cases = cases,
};

kunit_test_suite(suite);
