// SPDX-License-Identifier: GPL-2.0
/*
 * Conversions from the reference CPU's TSC to another's, and back.
 */
#include <kunit/test.h>
#include <linux/apic_clock.h>
#include <linux/errno.h>
#include <linux/limits.h>

#define AHEAD	1
#define BEHIND	2
#define UNKNOWN	3

/* Return the skew that the test defines. */
int apic_clock_get_skew(int cpu, struct apic_clock_skew *skew)
{
	static const struct apic_clock_skew known[] = {
		[0] = {},
		[AHEAD] = { .offset = 1000, .low = 988, .high = 1010 },
		[BEHIND] = { .offset = -1000, .low = -1010, .high = -999 },
	};

	if (cpu >= UNKNOWN)
		return -ENODATA;
	*skew = known[cpu];
	return 0;
}

static void both_ways_test(struct kunit *test)
{
	static const u64 values[] = { 1000, 5000, 1ULL << 40, U64_MAX - 1001 };
	unsigned int i;
	int cpu;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		for (cpu = 0; cpu <= UNKNOWN; cpu++)
			KUNIT_EXPECT_EQ(test, values[i],
					apic_clock_from_cpu(cpu, apic_clock_to_cpu(cpu, values[i],
										   NULL), NULL));
	KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(0, 5000, NULL), 5000ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(AHEAD, 5000, NULL), 6000ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(BEHIND, 5000, NULL), 4000ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_from_cpu(AHEAD, 5000, NULL), 4000ULL);
}

/* The error is the farther end of the bounds, and U64_MAX without bounds. */
static void error_test(struct kunit *test)
{
	u64 error = 5;

	apic_clock_to_cpu(0, 5000, &error);
	KUNIT_EXPECT_EQ(test, error, 0ULL);
	apic_clock_to_cpu(AHEAD, 5000, &error);
	KUNIT_EXPECT_EQ(test, error, 12ULL);
	apic_clock_from_cpu(BEHIND, 5000, &error);
	KUNIT_EXPECT_EQ(test, error, 10ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(UNKNOWN, 5000, &error), 5000ULL);
	KUNIT_EXPECT_EQ(test, error, U64_MAX);
	error = 5;
	KUNIT_EXPECT_EQ(test, apic_clock_from_cpu(UNKNOWN, 5000, &error), 5000ULL);
	KUNIT_EXPECT_EQ(test, error, U64_MAX);
}

/* Never stays never, and does not wrap to a near moment; a moment at the beginning stays there. */
static void ends_test(struct kunit *test)
{
	int cpu;

	for (cpu = 0; cpu <= UNKNOWN; cpu++) {
		KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(cpu, U64_MAX, NULL), U64_MAX);
		KUNIT_EXPECT_EQ(test, apic_clock_from_cpu(cpu, U64_MAX, NULL), U64_MAX);
	}
	KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(AHEAD, U64_MAX - 5, NULL), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_clock_from_cpu(BEHIND, U64_MAX - 5, NULL), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_clock_to_cpu(BEHIND, 5, NULL), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_from_cpu(AHEAD, 5, NULL), 0ULL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(both_ways_test),
	KUNIT_CASE(error_test),
	KUNIT_CASE(ends_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_clock_convert",
	.test_cases = cases,
};

kunit_test_suite(suite);
