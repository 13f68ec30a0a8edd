// SPDX-License-Identifier: GPL-2.0
/*
 * Conversions between TSC cycles, ns, us and ktime.
 */
#include <kunit/test.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/prandom.h>

#include "machine.h"
#include "tsc/gtod.h"
#include "tsc/tsc.h"

static const u32 rates[] = {
	1, 3, 1000, 333333, 700000, 999999, 1000000, 1000001, 2899999, 3100000,
	4294967, 4294968, 4500000, 5000000, 8000000, 1U << 31, U32_MAX,
};

/* a * b / c by the exact 128-bit way, rounded down, saturated */
static u64 exact(u64 a, u64 b, u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	unsigned __int128 rest = 0, quotient = 0;
	int bit;

	for (bit = 127; bit >= 0; bit--) {
		rest = rest << 1 | (product >> bit & 1);
		quotient <<= 1;
		if (rest >= c) {
			rest -= c;
			quotient |= 1;
		}
	}
	return quotient > U64_MAX ? U64_MAX : quotient;
}

static void exact_test(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i, n;
	u64 value;

	prandom_seed_state(&rnd, 5);
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (n = 0; n < 5000; n++) {
			prandom_bytes_state(&rnd, &value, sizeof(value));
			value >>= prandom_u32_state(&rnd) % 64;
			KUNIT_ASSERT_EQ_MSG(test,
					    apic_timer_tsc_from_ns(value,
								   rates[i]),
					    exact(value, rates[i], 1000000),
					    "%llu ns at %u kHz", value,
					    rates[i]);
			KUNIT_ASSERT_EQ_MSG(test,
					    apic_timer_tsc_to_ns_at(value,
								    rates[i]),
					    exact(value, 1000000, rates[i]),
					    "%llu cycles at %u kHz", value,
					    rates[i]);
		}
	}
}

/* The fast conversion used for kernel events. */
static void fast_test(struct kunit *test)
{
	u64 ns, mult, cycles, least, most;
	struct rnd_state rnd;
	unsigned int i, n;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		mult = apic_timer_tsc_mult(rates[i]);
		for (n = 0; n < 20000; n++) {
			prandom_bytes_state(&rnd, &ns, sizeof(ns));
			ns >>= prandom_u32_state(&rnd) % 64;
			ns %= apic_timer_tsc_fast_max(mult) + 1;
			if (n < 2)
				ns = n ? apic_timer_tsc_fast_max(mult) : 0;
			cycles = apic_timer_tsc_from_ns_fast(ns, mult);
			least = exact(ns, rates[i], 1000000);
			most = least + (ns >> APIC_TIMER_TSC_FAST_SHIFT) + 1;
			KUNIT_ASSERT_GE_MSG(test, cycles, least,
					    "%llu ns at %u kHz", ns, rates[i]);
			KUNIT_ASSERT_LE_MSG(test, cycles, most,
					    "%llu ns at %u kHz", ns, rates[i]);
		}
	}
	/* Idle CPUs needn't wake more often than once a minute. */
	KUNIT_EXPECT_GE(test, apic_timer_tsc_fast_max(apic_timer_tsc_mult(8000000)),
			60ULL * NSEC_PER_SEC);
}

/* The last value that fits, and the first that doesn't. */
static void saturation_test(struct kunit *test)
{
	u64 low, high, middle;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		KUNIT_EXPECT_EQ(test, apic_timer_tsc_from_ns(0, rates[i]), 0ULL);
		KUNIT_EXPECT_EQ(test, apic_timer_tsc_to_ns_at(0, rates[i]), 0ULL);
		if (rates[i] <= 1000000) {
			KUNIT_EXPECT_EQ(test,
					apic_timer_tsc_from_ns(U64_MAX, rates[i]),
					exact(U64_MAX, rates[i], 1000000));
			continue;
		}
		low = 0;
		high = U64_MAX;
		while (high - low > 1) {
			middle = low + (high - low) / 2;
			if (apic_timer_tsc_from_ns(middle, rates[i]) == U64_MAX)
				high = middle;
			else
				low = middle;
		}
		KUNIT_EXPECT_EQ(test, apic_timer_tsc_from_ns(low, rates[i]),
				exact(low, rates[i], 1000000));
		KUNIT_EXPECT_EQ(test, exact(high, rates[i], 1000000), U64_MAX);
		KUNIT_EXPECT_EQ(test, apic_timer_tsc_from_ns(U64_MAX, rates[i]),
				U64_MAX);
	}
}

static void add_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, apic_timer_add_tsc(0, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_add_tsc(5, 7), 12ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_add_tsc(U64_MAX - 1, 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_timer_add_tsc(U64_MAX - 1, 2), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_timer_add_tsc(U64_MAX, U64_MAX), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_timer_add_tsc(1ULL << 63, 1ULL << 63),
			U64_MAX);
}

static void units_test(struct kunit *test)
{
	unsigned int i;
	u64 us;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		apic_timer_sim.machine.tsc_khz = rates[i];
		for (us = 1; us < 1ULL << 50; us = us * 3 + 1)
			KUNIT_ASSERT_EQ(test, apic_timer_us_to_tsc(us),
					exact(us, rates[i], 1000));
		KUNIT_EXPECT_EQ(test, apic_timer_us_to_tsc(U64_MAX),
				exact(U64_MAX, rates[i], 1000));
		KUNIT_EXPECT_EQ(test, apic_timer_ns_to_tsc(NSEC_PER_SEC),
				rates[i] * 1000ULL);
		KUNIT_EXPECT_EQ(test, apic_timer_tsc_to_ns(rates[i] * 1000ULL),
				(u64)NSEC_PER_SEC);
	}
	apic_timer_sim.machine = machine_plain;
}

/* A conversion and its reverse give the same value, to within a cycle. */
static void round_trip_test(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i, n;
	u64 ns, back, cycles;

	prandom_seed_state(&rnd, 6);
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (n = 0; n < 2000; n++) {
			ns = (u64)prandom_u32_state(&rnd) << (n % 16);
			cycles = apic_timer_tsc_from_ns(ns, rates[i]);
			back = apic_timer_tsc_to_ns_at(cycles, rates[i]);
			KUNIT_ASSERT_LE(test, back, ns);
			KUNIT_ASSERT_LE(test, ns - back,
					1000000ULL / rates[i] + 1);
		}
	}
}

/* The usage sample of 2001 meant 2 us and got now + 0. */
static void sample_of_2001_test(struct kunit *test)
{
	unsigned long long clock = 700000000;
	u64 now = apic_timer_now();

	apic_timer_sim.machine.tsc_khz = clock / 1000;
	KUNIT_EXPECT_EQ(test, now + clock * (2 / 1000000), now);
	KUNIT_EXPECT_EQ(test, apic_timer_us_to_tsc(2), 1400ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_ns_to_tsc(2000), 1400ULL);
	apic_timer_sim.machine = machine_plain;
}

/*
 * The simulated TSC stands still while the kernel's clock continues, so a
 * moment of that clock comes nearer meanwhile, by less than @SLACK.
 */
#define SLACK	(60ULL * NSEC_PER_SEC)
#define DAY	(86400ULL * NSEC_PER_SEC)

static void ktime_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now, tsc;
	ktime_t time, moment;

	time = ktime_get();
	tsc = apic_timer_ktime_to_tsc(ktime_add_ns(time, DAY));
	KUNIT_EXPECT_LE(test, tsc, now + DAY + 10);
	KUNIT_EXPECT_GE(test, tsc, now + DAY - SLACK);

	moment = apic_timer_tsc_to_ktime(now + DAY);
	KUNIT_EXPECT_GE(test, moment, ktime_add_ns(time, DAY - 10));
	KUNIT_EXPECT_LE(test, moment, ktime_add_ns(time, DAY + SLACK));

	/* the past */
	tsc = apic_timer_ktime_to_tsc(time - 1000);
	KUNIT_EXPECT_LE(test, tsc, now - 900);
	KUNIT_EXPECT_GE(test, tsc, now - SLACK);
	moment = apic_timer_tsc_to_ktime(now - 1000);
	KUNIT_EXPECT_GE(test, moment, time - 1100);
	KUNIT_EXPECT_LE(test, moment, ktime_add_ns(time, SLACK));
}

/* With an unknown clocksource, a moment may be off by the kernel's maximum steering. */
static void gtod_error_test(struct kunit *test)
{
	const struct apic_timer_gtod_source hpet = {
		.mult = 1, .nominal = 1, .tick_ns = 70, .shared = true
	};
	const struct apic_timer_gtod_source unknown = { .tick_ns = TICK_NSEC };

	KUNIT_EXPECT_EQ(test, apic_timer_gtod_error(&hpet, 512000), 70ULL + 1000 + 1);
	KUNIT_EXPECT_GE(test, apic_timer_gtod_error(&unknown, 1000000), TICK_NSEC + 110000ULL);
	KUNIT_EXPECT_GE(test, apic_timer_gtod_error(&hpet, U64_MAX), U64_MAX >> 9);
}

static void ktime_limits_test(struct kunit *test)
{
	/* before the TSC started */
	KUNIT_EXPECT_EQ(test, apic_timer_ktime_to_tsc(KTIME_MIN), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_ktime_to_tsc(-(ktime_t)DAY), 0ULL);
	/* before the clock started */
	KUNIT_EXPECT_LT(test, apic_timer_tsc_to_ktime(0), 0LL);
	/* fits at 1 GHz, because both are slightly above 2^63 */
	KUNIT_EXPECT_GT(test, apic_timer_ktime_to_tsc(KTIME_MAX), 1ULL << 62);
	KUNIT_EXPECT_LT(test, apic_timer_ktime_to_tsc(KTIME_MAX), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_timer_tsc_to_ktime(U64_MAX), KTIME_MAX);

	apic_timer_sim.machine.tsc_khz = 4000000;
	KUNIT_EXPECT_EQ(test, apic_timer_ktime_to_tsc(KTIME_MAX), U64_MAX);
	KUNIT_EXPECT_LT(test, apic_timer_tsc_to_ktime(U64_MAX), KTIME_MAX);

	apic_timer_sim.machine.tsc_khz = 1;
	apic_timer_sim.now = U64_MAX / 2;
	KUNIT_EXPECT_EQ(test, apic_timer_tsc_to_ktime(U64_MAX), KTIME_MAX);
	KUNIT_EXPECT_EQ(test, apic_timer_tsc_to_ktime(0), -KTIME_MAX);
	apic_timer_sim.machine = machine_plain;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(exact_test),
	KUNIT_CASE(fast_test),
	KUNIT_CASE(saturation_test),
	KUNIT_CASE(add_test),
	KUNIT_CASE(units_test),
	KUNIT_CASE(round_trip_test),
	KUNIT_CASE(sample_of_2001_test),
	KUNIT_CASE(ktime_test),
	KUNIT_CASE(gtod_error_test),
	KUNIT_CASE(ktime_limits_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_tsc",
	.init = machine_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
