// SPDX-License-Identifier: GPL-2.0
/*
 * estimate.c: mean and high quantile of a latency.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include <linux/apic_timer_estimate.h>

#define QUANTILE	9900

static struct apic_timer_estimate estimate;
static struct rnd_state rnd;

static int estimate_test_init(struct kunit *test)
{
	prandom_seed_state(&rnd, 20010701);
	apic_timer_estimate_init(&estimate, 3000, QUANTILE);
	return 0;
}

static void add(u64 sample)
{
	apic_timer_estimate_add(&estimate, sample);
}

/* Random number from @low to @low + @range - 1, evenly distributed. */
static u64 around(u64 low, u32 range)
{
	return low + mul_u64_u32_shr(range, prandom_u32_state(&rnd), 32);
}

static u64 mean(void)
{
	return apic_timer_estimate_mean(&estimate);
}

static u64 high(void)
{
	return apic_timer_estimate_high(&estimate);
}

#define EXPECT_WITHIN(test, value, low, top) do {			\
	u64 __value = (value);						\
									\
	KUNIT_EXPECT_GE(test, __value, (u64)(low));			\
	KUNIT_EXPECT_LE(test, __value, (u64)(top));			\
} while (0)

/* Nothing is known at first: no mean, and a high guess. */
static void empty_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, mean(), 0ULL);
	EXPECT_WITHIN(test, high(), 3000, 3100);
}

/* The first sample already is a mean. */
static void first_test(struct kunit *test)
{
	add(700);
	KUNIT_EXPECT_EQ(test, mean(), 700ULL);
	EXPECT_WITHIN(test, high(), 2900, 3100);
}

/* Within 100 samples the mean converges to that of the latency. */
static void mean_converges_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		add(around(450, 41));
	EXPECT_WITHIN(test, mean(), 466, 474);
	for (i = 0; i < 10000; i++) {
		add(around(450, 41));
		EXPECT_WITHIN(test, mean(), 464, 476);
	}
}

/* A wild sample among the first ones doesn't spoil the mean. */
static void wild_first_test(struct kunit *test)
{
	unsigned int wild, i;

	for (wild = 0; wild < APIC_TIMER_ESTIMATE_FIRST; wild++) {
		estimate_test_init(test);
		for (i = 0; i < 100; i++)
			add(i == wild ? 5000000 : around(450, 41));
		EXPECT_WITHIN(test, mean(), 460, 490);
	}
}

/* One sample in 200 is wild: the mean hardly moves, the quantile little. */
static void outliers_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 20000; i++)
		add(i % 200 == 150 ? 3000000 : around(450, 41));
	EXPECT_WITHIN(test, mean(), 460, 490);
	EXPECT_WITHIN(test, high(), 480, 1500);
}

/* The latency steps up, or down: the mean is there within 100 samples. */
static void mean_steps_test(struct kunit *test)
{
	static const u64 steps[] = { 400, 460, 1000, 300, 5000, 4800, 400, 20,
				     100000, 400 };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		for (n = 0; n < 100; n++)
			add(around(steps[i], 5));
		EXPECT_WITHIN(test, mean(), steps[i] - 2, steps[i] + 6);
		for (n = 0; n < 1000; n++)
			add(around(steps[i], 5));
		EXPECT_WITHIN(test, mean(), steps[i] + 1, steps[i] + 3);
	}
}

/* Once the guess has faded, only the expected number of samples exceeds the quantile. */
static void quantile_test(struct kunit *test)
{
	static const unsigned int quantiles[] = { 9000, 9900, 9990, 9999 };
	unsigned int q, i, above, rest;
	u64 sample;

	for (q = 0; q < ARRAY_SIZE(quantiles); q++) {
		rest = APIC_TIMER_QUANTILE_ONE - quantiles[q];
		apic_timer_estimate_init(&estimate, 3000, quantiles[q]);
		for (i = 0; i < 50000; i++)
			apic_timer_estimate_add(&estimate, around(500, 1000));
		above = 0;
		for (i = 0; i < 200000; i++) {
			sample = around(500, 1000);
			above += sample > high();
			apic_timer_estimate_add(&estimate, sample);
		}
		/* The estimate errs on the high side, by its step. */
		KUNIT_EXPECT_LE_MSG(test, above, 200000 / 10000 * rest * 3 / 2,
				    "quantile %u", quantiles[q]);
		if (rest >= 1000)
			KUNIT_EXPECT_GE_MSG(test, above,
					    200000 / 10000 * rest / 4,
					    "quantile %u", quantiles[q]);
		EXPECT_WITHIN(test, high(), 1300, 1700);
	}
}

/* A step up of any size is covered within some samples. */
static void high_step_up_test(struct kunit *test)
{
	u64 latency = 500;
	unsigned int i, n;

	for (i = 0; i < 2000; i++)
		add(latency);
	for (n = 0; n < 4; n++) {
		latency *= 4;
		for (i = 0; high() < latency; i++)
			add(latency);
		KUNIT_EXPECT_LE(test, i, 10U);
		KUNIT_EXPECT_LE(test, high(), latency * 5 / 4);
	}
}

/* A step down is followed within some windows. */
static void high_step_down_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 2000; i++)
		add(10000);
	EXPECT_WITHIN(test, high(), 10000, 11000);
	for (i = 0; i < 5000; i++)
		add(500);
	EXPECT_WITHIN(test, high(), 500, 700);
}

/* Rare samples are covered if the quantile asks for it. */
static void rare_test(struct kunit *test)
{
	unsigned int i, late = 0;

	apic_timer_estimate_init(&estimate, 3000, 9999);
	for (i = 1; i <= 200000; i++) {
		u64 sample = i % 1000 ? around(450, 20) : 1000;

		late += sample > apic_timer_estimate_high(&estimate);
		apic_timer_estimate_add(&estimate, sample);
	}
	KUNIT_EXPECT_LE(test, late, 20U);
	EXPECT_WITHIN(test, high(), 980, 1200);
}

/* The largest of the last samples: the first of a rare kind may exceed it; outliers don't count. */
static void all_test(struct kunit *test)
{
	unsigned int i, late = 0;
	u64 sample;

	apic_timer_estimate_init(&estimate, 3000, APIC_TIMER_QUANTILE_ONE);
	for (i = 1; i <= 400000; i++) {
		sample = i % 20000 ? around(450, 20) : 1000;
		late += sample > high();
		apic_timer_estimate_add(&estimate, sample);
	}
	KUNIT_EXPECT_LE(test, late, 2U);
	EXPECT_WITHIN(test, high(), 1000, 1100);

	apic_timer_estimate_add(&estimate, 1000000);
	EXPECT_WITHIN(test, high(), 1000, 1400);
	for (i = 0; i < 400000; i++)
		apic_timer_estimate_add(&estimate, 450);
	EXPECT_WITHIN(test, high(), 450, 500);
}

/* The guess fades in windows of 10, 100, 1,000 ... samples, by half of the rest in each. */
static void windows_test(struct kunit *test)
{
	static const struct {
		unsigned int samples;
		u64 low, top;
	} steps[] = {
		{ 9, 4000, 4100 }, { 10, 2200, 2350 }, { 109, 2200, 2350 },
		{ 110, 1300, 1450 }, { 1110, 880, 1000 }, { 11110, 660, 780 },
		{ 51110, 550, 660 },
	};
	unsigned int i, n, pass;

	for (pass = 0; pass < 2; pass++) {
		apic_timer_estimate_init(&estimate, 4000, APIC_TIMER_QUANTILE_ONE);
		add(500);
		/* The guess fades in the same way with its own samples and with others. */
		for (i = 0, n = !pass; i < ARRAY_SIZE(steps); i++) {
			for (; n < steps[i].samples; n++) {
				if (pass)
					apic_timer_estimate_pass(&estimate);
				else
					add(500);
			}
			EXPECT_WITHIN(test, high(), steps[i].low, steps[i].top);
		}
	}
}

/* A waiting guess stays for the longest window; with hurry, it fades like any other. */
static void wait_test(struct kunit *test)
{
	unsigned int i;

	apic_timer_estimate_init(&estimate, 4000, APIC_TIMER_QUANTILE_ONE);
	apic_timer_estimate_wait(&estimate);
	for (i = 1; i < 40000; i++) {
		add(500);
		apic_timer_estimate_pass(&estimate);
	}
	EXPECT_WITHIN(test, high(), 4000, 4100);
	add(500);
	EXPECT_WITHIN(test, high(), 2200, 2350);

	apic_timer_estimate_hurry(&estimate);
	for (i = 1; i <= 110; i++) {
		/* Once is enough: windows still grow. */
		apic_timer_estimate_hurry(&estimate);
		add(500);
	}
	EXPECT_WITHIN(test, high(), 880, 1000);
}

/* An event once in 50 samples is covered all the time while the guess fades. */
static void fading_covers_test(struct kunit *test)
{
	unsigned int i, late = 0;

	apic_timer_estimate_init(&estimate, 4000, APIC_TIMER_QUANTILE_ONE);
	for (i = 1; i <= 200000; i++) {
		u64 sample = i % 50 ? around(490, 30) : 1050;

		late += sample > high();
		apic_timer_estimate_add(&estimate, sample);
	}
	KUNIT_EXPECT_EQ(test, late, 0U);
	EXPECT_WITHIN(test, high(), 1050, 1150);
}

/* An estimate of zeros, as in static memory, is useless but does no harm. */
static void uninitialised_test(struct kunit *test)
{
	unsigned int n;

	memset(&estimate, 0, sizeof(estimate));
	for (n = 0; n < 1000; n++) {
		add(500 + n);
		apic_timer_estimate_pass(&estimate);
	}
	EXPECT_WITHIN(test, high(), 0, 3000);
}

/* An invalid quantile is replaced by the nearest valid one. */
static void wrong_quantile_test(struct kunit *test)
{
	static const unsigned int wrong[] = { 0, 1, 10000, 10001, UINT_MAX };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		apic_timer_estimate_init(&estimate, 3000, wrong[i]);
		for (n = 0; n < 1000; n++)
			add(500);
		EXPECT_WITHIN(test, mean(), 500, 500);
		EXPECT_WITHIN(test, high(), 0, 3100);
	}
}

/* Without samples a guess fades, down to what has been seen. */
static void pass_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 2000; i++)
		apic_timer_estimate_pass(&estimate);
	EXPECT_WITHIN(test, high(), 0, 20);

	apic_timer_estimate_init(&estimate, 3000, QUANTILE);
	add(800);
	for (i = 0; i < 2000; i++)
		apic_timer_estimate_pass(&estimate);
	EXPECT_WITHIN(test, high(), 800, 820);
}

/* Any sample, in any order: no overflow, nothing wraps. */
static void limits_test(struct kunit *test)
{
	static const u64 extremes[] = { 0, 1, U32_MAX, 1ULL << 40,
					(1ULL << 40) + 1, 1ULL << 63, U64_MAX };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(extremes); i++) {
		apic_timer_estimate_init(&estimate, extremes[i], QUANTILE);
		EXPECT_WITHIN(test, high(), min(extremes[i], 1ULL << 40),
			      (1ULL << 40) / 64 * 65);
		for (n = 0; n < 100; n++)
			add(extremes[i]);
		KUNIT_EXPECT_EQ(test, mean(), min(extremes[i], 1ULL << 40));
	}
	for (n = 0; n < 100000; n++) {
		add(extremes[around(0, ARRAY_SIZE(extremes))] >>
		    around(0, 64));
		KUNIT_ASSERT_LE(test, mean(), 1ULL << 40);
		KUNIT_ASSERT_LE(test, high(), (1ULL << 40) / 16 * 17);
		KUNIT_ASSERT_GT(test, high(), 0ULL);
	}
}

static struct kunit_case estimate_test_cases[] = {
	KUNIT_CASE(empty_test),
	KUNIT_CASE(first_test),
	KUNIT_CASE(mean_converges_test),
	KUNIT_CASE(wild_first_test),
	KUNIT_CASE(outliers_test),
	KUNIT_CASE(mean_steps_test),
	KUNIT_CASE(quantile_test),
	KUNIT_CASE(high_step_up_test),
	KUNIT_CASE(high_step_down_test),
	KUNIT_CASE(rare_test),
	KUNIT_CASE(all_test),
	KUNIT_CASE(windows_test),
	KUNIT_CASE(wait_test),
	KUNIT_CASE(fading_covers_test),
	KUNIT_CASE(uninitialised_test),
	KUNIT_CASE(wrong_quantile_test),
	KUNIT_CASE(pass_test),
	KUNIT_CASE(limits_test),
	{}
};

static struct kunit_suite estimate_test_suite = {
	.name = "apic_timer_estimate",
	.init = estimate_test_init,
	.test_cases = estimate_test_cases,
};

kunit_test_suite(estimate_test_suite);
