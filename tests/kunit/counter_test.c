// SPDX-License-Identifier: GPL-2.0
/*
 * Conversions from TSC cycles to counts of the one-shot counter, at their limits.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "lib/counter.h"
#include "machine.h"

#define HZ_MAX	((1ULL << 40) - 1)

/* Counter and TSC rates in Hz. */
static const struct {
	u64 ticks, cycles;
} rates[] = {
	{ 1000000000, 1000000000 },
	{ 24000000, 3100000000 },
	{ 25000000, 2000000000 },
	{ 133333333, 700000000 },
	{ 100000001, 99999999 },
	{ 1000000000, 300001000 },
	{ 24000000, 500000000 },
	{ 24000000, 8000000000 },
	{ 25000000, 5000000000 },
	{ 100000000, 4294968000 },
	{ 200000000, 8000000000 },
	{ 1000000000, 500000000 },
	{ 1000000000, 8000000000 },
	{ 4095, 1 },
	{ 1, 4095 },
	{ HZ_MAX, HZ_MAX },
	{ HZ_MAX, HZ_MAX / 4096 + 1 },
	{ HZ_MAX / 4096 + 1, HZ_MAX },
};

static void init_refuses_test(struct kunit *test)
{
	static const struct {
		u64 ticks, cycles;
	} absurd[] = {
		{ 0, 1000 }, { 1000, 0 }, { 0, 0 },
		{ HZ_MAX + 1, HZ_MAX }, { HZ_MAX, HZ_MAX + 1 },
		{ U64_MAX, U64_MAX },
		{ 4096, 1 }, { 1, 4096 },
		{ 4096000, 1000 }, { 1000, 4096000 },
	};
	struct apic_timer_counter counter;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(absurd); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    apic_timer_counter_init(&counter,
							    absurd[i].ticks,
							    absurd[i].cycles),
				    -ERANGE, "%llu Hz and a TSC of %llu Hz",
				    absurd[i].ticks, absurd[i].cycles);
	for (i = 0; i < ARRAY_SIZE(rates); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    apic_timer_counter_init(&counter,
							    rates[i].ticks,
							    rates[i].cycles),
				    0, "%llu Hz and a TSC of %llu Hz",
				    rates[i].ticks, rates[i].cycles);
}

/* A counter at the TSC's own rate: ticks are cycles. */
static void one_to_one_test(struct kunit *test)
{
	static const struct {
		u64 cycles;
		u32 count;
		u8 divider;
	} expected[] = {
		{ 0, 1, 0 },
		{ 1, 1, 0 },
		{ 2, 2, 0 },
		{ U32_MAX - 1ULL, U32_MAX - 1, 0 },
		{ U32_MAX, U32_MAX, 0 },
		{ 1ULL << 32, 1U << 31, 1 },
		{ (1ULL << 32) + 1, 1U << 31, 1 },
		{ (1ULL << 33) - 1, U32_MAX, 1 },
		{ 1ULL << 33, 1U << 31, 2 },
		{ 1ULL << 37, 1U << 31, 6 },
		{ (1ULL << 38) - 1, U32_MAX, 6 },
		{ 1ULL << 38, 1U << 31, 7 },
	};
	struct apic_timer_counter counter;
	struct apic_timer_counter_value count;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, apic_timer_counter_init(&counter, 1000000007,
						      1000000007), 0);
	KUNIT_EXPECT_EQ(test, counter.mult, 1ULL << 32);
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		count = apic_timer_counter_convert(&counter,
						   expected[i].cycles);
		KUNIT_EXPECT_EQ_MSG(test, count.count, expected[i].count,
				    "%llu cycles", expected[i].cycles);
		KUNIT_EXPECT_EQ_MSG(test, count.divider, expected[i].divider,
				    "%llu cycles", expected[i].cycles);
	}
}

static void check_count(struct kunit *test,
			const struct apic_timer_counter *counter, u64 cycles)
{
	struct apic_timer_counter_value count =
		apic_timer_counter_convert(counter, cycles);
	unsigned __int128 product =
		(unsigned __int128)min(cycles, counter->max_delta) * counter->mult;
	/* exact ticks, rounded up and down */
	u64 up = (product + U32_MAX) >> 32, down = product >> 32;
	u64 got = (u64)count.count << count.divider;

	/* The bug of 2001: 0 stops the counter, and the timer is lost. */
	KUNIT_ASSERT_GT_MSG(test, count.count, 0U, "%llu cycles", cycles);
	KUNIT_ASSERT_LE(test, count.divider, APIC_TIMER_COUNTER_DIVIDER_MAX);

	if (!count.divider) {
		KUNIT_ASSERT_EQ_MSG(test, got, max(up, 1ULL), "%llu cycles",
				    cycles);
		return;
	}
	/* The finest divider that reaches. */
	KUNIT_ASSERT_GT_MSG(test, up >> (count.divider - 1), (u64)U32_MAX,
			    "%llu cycles, divider %u", cycles, count.divider);
	KUNIT_ASSERT_LE(test, got, up);
	KUNIT_ASSERT_GT_MSG(test, got + (1ULL << count.divider), down,
			    "%llu cycles", cycles);
}

static void every_rate_test(struct kunit *test)
{
	struct apic_timer_counter counter;
	struct rnd_state rnd;
	unsigned int i, bit, n;
	u64 cycles;

	prandom_seed_state(&rnd, 4);
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		KUNIT_ASSERT_EQ(test,
				apic_timer_counter_init(&counter,
							rates[i].ticks,
							rates[i].cycles),
				0);
		for (bit = 0; bit < 64; bit++) {
			check_count(test, &counter, (1ULL << bit) - 1);
			check_count(test, &counter, 1ULL << bit);
			check_count(test, &counter, (1ULL << bit) + 1);
		}
		check_count(test, &counter, counter.max_delta - 1);
		check_count(test, &counter, counter.max_delta);
		check_count(test, &counter, counter.max_delta + 1);
		check_count(test, &counter, U64_MAX);
		for (n = 0; n < 20000; n++) {
			prandom_bytes_state(&rnd, &cycles, sizeof(cycles));
			cycles >>= prandom_u32_state(&rnd) % 64;
			check_count(test, &counter, cycles);
		}
	}
}

/* The short computation gives the same result as the long one, or a tick more. */
static void near_test(struct kunit *test)
{
	struct apic_timer_counter counter;
	struct apic_timer_counter_value count;
	struct rnd_state rnd;
	unsigned int i, n;
	u64 cycles;
	u32 near;

	prandom_seed_state(&rnd, 8);
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		KUNIT_ASSERT_EQ(test,
				apic_timer_counter_init(&counter,
							rates[i].ticks,
							rates[i].cycles),
				0);
		for (n = 0; n < 20000; n++) {
			prandom_bytes_state(&rnd, &cycles, sizeof(cycles));
			cycles >>= prandom_u32_state(&rnd) % 64;
			cycles %= counter.near;
			if (n < 2)
				cycles = n ? counter.near - 1 : 0;
			count = apic_timer_counter_convert(&counter, cycles);
			near = apic_timer_counter_convert_near(&counter, cycles);
			KUNIT_ASSERT_EQ_MSG(test, count.divider, 0,
					    "%llu cycles", cycles);
			KUNIT_ASSERT_LE_MSG(test, near, count.count + 1,
					    "%llu cycles of %llu Hz at %llu Hz",
					    cycles, rates[i].cycles, rates[i].ticks);
			KUNIT_ASSERT_GE_MSG(test, (u64)near + (near >> 29) + 1,
					    (u64)count.count,
					    "%llu cycles of %llu Hz at %llu Hz",
					    cycles, rates[i].cycles, rates[i].ticks);
		}
	}
}

/* Reach is nearly the counter's maximum, and never more. */
static void reach_test(struct kunit *test)
{
	struct apic_timer_counter counter;
	struct apic_timer_counter_value count, beyond;
	unsigned int i;
	u64 exact;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		KUNIT_ASSERT_EQ(test,
				apic_timer_counter_init(&counter,
							rates[i].ticks,
							rates[i].cycles),
				0);
		exact = apic_timer_sim_ticks_to_cycles((u64)U32_MAX << 7,
						       rates[i].cycles,
						       rates[i].ticks);
		/* Slow counters: mult has only 20 bits, and reach even fewer. */
		KUNIT_EXPECT_LE_MSG(test, counter.max_delta, exact + (exact >> 19),
				    "%llu Hz and a TSC of %llu Hz", rates[i].ticks,
				    rates[i].cycles);
		KUNIT_EXPECT_GE_MSG(test, counter.max_delta, exact - (exact >> 11),
				    "%llu Hz and a TSC of %llu Hz", rates[i].ticks,
				    rates[i].cycles);

		count = apic_timer_counter_convert(&counter, counter.max_delta);
		beyond = apic_timer_counter_convert(&counter, U64_MAX);
		KUNIT_EXPECT_EQ(test, count.count, beyond.count);
		KUNIT_EXPECT_EQ(test, count.divider, beyond.divider);
		KUNIT_EXPECT_EQ(test, count.divider, 7);
	}
}

/* Longer distances never give shorter expiries, even where the divider changes. */
static void monotonic_test(struct kunit *test)
{
	struct apic_timer_counter counter;
	struct apic_timer_counter_value count;
	u64 cycles, step, ticks, last;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		KUNIT_ASSERT_EQ(test,
				apic_timer_counter_init(&counter,
							rates[i].ticks,
							rates[i].cycles),
				0);
		last = 0;
		for (cycles = 0; cycles < counter.max_delta; cycles += step) {
			step = 1 + cycles / 5000;
			count = apic_timer_counter_convert(&counter, cycles);
			ticks = (u64)count.count << count.divider;
			/* Except for the rounding of a coarser divider. */
			KUNIT_ASSERT_GE(test,
					ticks + (1ULL << count.divider) - 1,
					last);
			last = ticks;
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(init_refuses_test),
	KUNIT_CASE(one_to_one_test),
	KUNIT_CASE(every_rate_test),
	KUNIT_CASE(near_test),
	KUNIT_CASE(reach_test),
	KUNIT_CASE(monotonic_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_counter",
	.test_cases = cases,
};

kunit_test_suite(suite);
