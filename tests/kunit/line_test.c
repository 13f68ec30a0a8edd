// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's clocks as functions of the TSC, and their inverse.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "tsc/line.h"

#define LINES	200
#define VALUES	500

static u64 random64(struct rnd_state *rnd)
{
	return (u64)prandom_u32_state(rnd) << 32 | prandom_u32_state(rnd);
}

/* Random number of up to 64 bits; all sizes are equally likely. */
static u64 random_size(struct rnd_state *rnd)
{
	return random64(rnd) >> prandom_u32_state(rnd) % 64;
}

/* A line as in the kernel: fraction below a second, a clock source of 1 MHz to 10 GHz. */
static struct apic_timer_line random_line(struct rnd_state *rnd)
{
	struct apic_timer_line line = {
		.last = random64(rnd) >> 1 >> prandom_u32_state(rnd) % 40,
		.base = random64(rnd) >> 2 >> prandom_u32_state(rnd) % 40,
		.shift = 1 + prandom_u32_state(rnd) % 32,
	};

	line.mult = max(prandom_u32_state(rnd) >> (32 - line.shift) / 2, 1U);
	line.frac = random64(rnd) % ((u64)NSEC_PER_SEC << line.shift);
	return line;
}

/* The result is the first TSC at which the clock has reached a moment. */
static void inverse_test(struct kunit *test)
{
	struct apic_timer_line line;
	struct rnd_state rnd;
	unsigned int i, n, inside = 0;
	u64 tsc;
	s64 ns;

	prandom_seed_state(&rnd, 11);
	for (i = 0; i < LINES; i++) {
		line = random_line(&rnd);
		for (n = 0; n < VALUES; n++) {
			ns = line.base + (s64)random_size(&rnd) / 2;
			if (ns <= -KTIME_MAX || ns >= KTIME_MAX)
				continue;
			tsc = apic_timer_line_tsc(&line, ns);
			if (tsc == U64_MAX)
				continue;
			KUNIT_ASSERT_GE(test, apic_timer_line_read(&line, tsc), ns);
			if (!tsc)
				continue;
			KUNIT_ASSERT_LT(test, apic_timer_line_read(&line, tsc - 1), ns);
			inside++;
		}
	}
	KUNIT_EXPECT_GT(test, inside, LINES * VALUES / 4U);
}

/* The time at a TSC value is first reached then, or before, with no other in between. */
static void read_test(struct kunit *test)
{
	struct apic_timer_line line;
	struct rnd_state rnd;
	unsigned int i, n;
	u64 tsc, first;
	s64 ns;

	prandom_seed_state(&rnd, 12);
	for (i = 0; i < LINES; i++) {
		line = random_line(&rnd);
		for (n = 0; n < VALUES; n++) {
			tsc = random_size(&rnd);
			tsc = n % 2 || tsc > line.last ? line.last + tsc / 2 : line.last - tsc;
			ns = apic_timer_line_read(&line, tsc);
			if (ns == KTIME_MAX || ns == -KTIME_MAX)
				continue;
			first = apic_timer_line_tsc(&line, ns);
			KUNIT_ASSERT_LE(test, first, tsc);
			if (first)
				KUNIT_ASSERT_EQ(test, apic_timer_line_read(&line, first), ns);
		}
	}
}

/* Where 64 bits suffice, the result is the same. */
static void near_test(struct kunit *test)
{
	static const s64 edges[] = { -(1LL << 39), -(1LL << 39) + 800000000, -800000000, 0,
				     800000000, 1LL << 39, (1LL << 39) + 800000000 };
	unsigned int i, n, reads = 0, tscs = 0;
	struct apic_timer_line line;
	struct rnd_state rnd;
	u64 tsc, found;
	s64 ns, read;

	prandom_seed_state(&rnd, 13);
	for (i = 0; i < LINES; i++) {
		line = random_line(&rnd);
		for (n = 0; n < VALUES; n++) {
			tsc = line.last + random_size(&rnd);
			ns = random_size(&rnd);
			ns = n % 2 ? line.base - ns : line.base + ns;
			if (apic_timer_line_read_near(&line, tsc, &read)) {
				KUNIT_ASSERT_EQ(test, read, apic_timer_line_read(&line, tsc));
				reads++;
			}
			if (apic_timer_line_tsc_near(&line, ns, &found)) {
				KUNIT_ASSERT_EQ(test, found, apic_timer_line_tsc(&line, ns));
				tscs++;
			}
		}
	}
	KUNIT_EXPECT_GT(test, reads, LINES * VALUES / 10U);
	KUNIT_EXPECT_GT(test, tscs, LINES * VALUES / 10U);

	/* A quarter of an hour ahead, on a TSC of 2.6 GHz. */
	line = (struct apic_timer_line) { .last = 1, .base = 1, .mult = 3226387, .shift = 23 };
	KUNIT_EXPECT_TRUE(test, apic_timer_line_tsc_near(&line, 1000LL * NSEC_PER_SEC, &found));
	KUNIT_EXPECT_TRUE(test, apic_timer_line_read_near(&line, found, &read));

	/* Around what 64 bits hold, before and after the line's beginning, at 3 GHz. */
	line = (struct apic_timer_line) {
		.last = 3000 * NSEC_PER_SEC, .base = 1000 * NSEC_PER_SEC,
		.frac = 800000000ULL << 24, .mult = 5592405, .shift = 24,
	};
	for (i = 0; i < ARRAY_SIZE(edges); i++) {
		for (n = 0; n < VALUES; n++) {
			ns = line.base + edges[i] + n - VALUES / 2;
			if (apic_timer_line_tsc_near(&line, ns, &found))
				KUNIT_EXPECT_EQ(test, found, apic_timer_line_tsc(&line, ns));
		}
	}
}

/* The kernel counts from another TSC value at each tick, which changes no result. */
static void tick_test(struct kunit *test)
{
	struct apic_timer_line line, later;
	struct rnd_state rnd;
	unsigned int i, n;
	u64 seconds, second;
	s64 ns;

	prandom_seed_state(&rnd, 14);
	for (i = 0; i < LINES; i++) {
		line = random_line(&rnd);
		line.last >>= 2;
		line.base >>= 2;
		later = line;
		for (n = 0; n < VALUES; n++) {
			ns = line.base + random_size(&rnd) / 16;
			later.last += 4000000;
			later.frac += 4000000ULL * line.mult;
			second = (u64)NSEC_PER_SEC << line.shift;
			seconds = div64_u64(later.frac, second);
			later.frac -= seconds * second;
			later.base += seconds * NSEC_PER_SEC;
			KUNIT_ASSERT_EQ(test, apic_timer_line_tsc(&line, ns),
					apic_timer_line_tsc(&later, ns));
		}
	}
}

static void limits_test(struct kunit *test)
{
	/* 2 GHz */
	struct apic_timer_line line = {
		.last = 1000000, .base = 5000, .mult = 1 << 23, .shift = 24,
	};

	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, 1000000), 5000LL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, 1000001), 5000LL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, 1000002), 5001LL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, 999999), 4999LL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, 5001), 1000002ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, 4999), 999998ULL);

	/* the TSC's zero */
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, 5000 - 500000), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, 5000 - 499999), 2ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, KTIME_MIN), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, 0), 5000LL - 500000);

	/* KTIME_MAX - 5000 ns are 2^64 - 10002 cycles */
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, KTIME_MAX), U64_MAX);
	line.last = 0;
	KUNIT_EXPECT_EQ(test, apic_timer_line_tsc(&line, KTIME_MAX),
			2 * ((u64)KTIME_MAX - 5000));
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, U64_MAX), KTIME_MAX);
	line.mult = U32_MAX;
	line.shift = 1;
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, U64_MAX), KTIME_MAX);
	line.last = U64_MAX;
	KUNIT_EXPECT_EQ(test, apic_timer_line_read(&line, 0), -KTIME_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(inverse_test),
	KUNIT_CASE(read_test),
	KUNIT_CASE(near_test),
	KUNIT_CASE(tick_test),
	KUNIT_CASE(limits_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_line",
	.test_cases = cases,
};

kunit_test_suite(suite);
