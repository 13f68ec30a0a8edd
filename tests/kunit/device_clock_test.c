// SPDX-License-Identifier: GPL-2.0
/*
 * device/clock.h: the arithmetic of the time page.
 */
#include <kunit/test.h>
#include <linux/clocksource.h>
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "device/clock.h"

static struct rnd_state rnd;

static u64 random_u64(void)
{
	return (u64)prandom_u32_state(&rnd) << 32 | prandom_u32_state(&rnd);
}

/* Make a page as the kernel's timekeeping would fill it for a TSC of @khz. */
static struct apic_timer_page page_of(u32 khz)
{
	struct apic_timer_page page = {
		.tsc = random_u64() >> 10,
		.mono = random_u64() >> 12,
	};

	clocks_calc_mult_shift(&page.mult, &page.shift, khz, NSEC_PER_SEC / 1000, 600);
	page.mono_shifted = random_u64() >> (64 - page.shift);
	return page;
}

static const u32 rates[] = { 1000000, 2399998, 3700000, 5000000, 800000, 1000 };

static int device_clock_test_init(struct kunit *test)
{
	prandom_seed_state(&rnd, 19970401);
	return 0;
}

/* Compute as the kernel does, with all digits. */
static u64 slow_mono(const struct apic_timer_page *page, u64 tsc)
{
	unsigned __int128 sum = tsc > page->tsc ? tsc - page->tsc : 0;

	sum = sum * page->mult + page->mono_shifted;
	return page->mono + (u64)(sum >> page->shift);
}

static void mono_test(struct kunit *test)
{
	unsigned int r, i;

	for (r = 0; r < ARRAY_SIZE(rates); r++) {
		for (i = 0; i < 10000; i++) {
			struct apic_timer_page page = page_of(rates[r]);
			u64 tsc = page.tsc + (random_u64() >> (20 + i % 44));

			KUNIT_ASSERT_EQ(test, device_clock_mono(&page, tsc),
					slow_mono(&page, tsc));
		}
	}
}

/* The result is the first TSC value at which the clock shows the moment. */
static void first_test(struct kunit *test)
{
	unsigned int r, i;

	for (r = 0; r < ARRAY_SIZE(rates); r++) {
		for (i = 0; i < 10000; i++) {
			struct apic_timer_page page = page_of(rates[r]);
			u64 far = (U64_MAX >> 1) >> page.shift;
			u64 mono = page.mono + (random_u64() >> (i % 64)) % far;
			u64 tsc = device_clock_tsc(&page, mono);

			KUNIT_ASSERT_GE(test, slow_mono(&page, tsc), mono);
			if (tsc > page.tsc)
				KUNIT_ASSERT_LT(test, slow_mono(&page, tsc - 1), mono);
		}
	}
}

/* A moment too far to be converted gives one on the way, never a later one. */
static void far_test(struct kunit *test)
{
	unsigned int r, i;

	for (r = 0; r < ARRAY_SIZE(rates); r++) {
		struct apic_timer_page page = page_of(rates[r]);

		for (i = 0; i < 64; i++) {
			u64 mono = page.mono + (~0ULL >> i >> 1);
			u64 tsc;

			if (mono < page.mono)
				continue;
			tsc = device_clock_tsc(&page, mono);
			KUNIT_EXPECT_LE(test, slow_mono(&page, tsc), mono + 1000);
			/* Either farther than a second, or exact. */
			if (slow_mono(&page, tsc) < mono)
				KUNIT_EXPECT_GT(test, tsc - page.tsc, rates[r] * 1000ULL);
		}
	}
}

static void past_test(struct kunit *test)
{
	struct apic_timer_page page = page_of(rates[0]);

	KUNIT_EXPECT_EQ(test, device_clock_tsc(&page, 0), page.tsc);
	KUNIT_EXPECT_EQ(test, device_clock_tsc(&page, page.mono), page.tsc);
	KUNIT_EXPECT_EQ(test, device_clock_mono(&page, 0), page.mono);
}

static struct kunit_case device_clock_test_cases[] = {
	KUNIT_CASE(mono_test),
	KUNIT_CASE(first_test),
	KUNIT_CASE(far_test),
	KUNIT_CASE(past_test),
	{}
};

static struct kunit_suite device_clock_test_suite = {
	.name = "apic_timer_device_clock",
	.init = device_clock_test_init,
	.test_cases = device_clock_test_cases,
};

kunit_test_suite(device_clock_test_suite);
