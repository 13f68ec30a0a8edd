// SPDX-License-Identifier: GPL-2.0
/*
 * Periodic timers: the next moment of start + n * period that is ahead.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "machine.h"
#include "timers/period.h"

static struct apic_timer_list timer;

static void nothing(unsigned long long now, unsigned long data)
{
}

static u64 forward(u64 expires, u64 now, u64 period)
{
	timer.expires = expires;
	return apic_timer_forward(&timer, now, period);
}

static void forward_test(struct kunit *test)
{
	/* still ahead */
	KUNIT_EXPECT_EQ(test, forward(1000, 0, 100), 0ULL);
	KUNIT_EXPECT_EQ(test, forward(1000, 999, 100), 0ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1000ULL);
	/* now == expires counts as past */
	KUNIT_EXPECT_EQ(test, forward(1000, 1000, 100), 1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1100ULL);
	/* in time */
	KUNIT_EXPECT_EQ(test, forward(1000, 1099, 100), 1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1100ULL);
	/* overrun */
	KUNIT_EXPECT_EQ(test, forward(1000, 1100, 100), 2ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1200ULL);
	KUNIT_EXPECT_EQ(test, forward(1000, 5555, 100), 46ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 5600ULL);
	/* a period of one cycle */
	KUNIT_EXPECT_EQ(test, forward(0, 1ULL << 40, 1), (1ULL << 40) + 1);
	KUNIT_EXPECT_EQ(test, timer.expires, (1ULL << 40) + 1);
}

/* The queue is sorted by expiry: only mod_apic_timer() may change that of a pending timer. */
static void forward_pending_test(struct kunit *test)
{
	struct apic_timer_period period = { .period_ns = 1000 };
	struct apic_timer_list *first = &timer, second = *first;
	u64 refused = machine_stat(REFUSED), now = apic_timer_sim.now;

	init_apic_timer(first);
	init_apic_timer(&second);
	first->function = nothing;
	second.function = nothing;
	first->expires = now + 1000;
	second.expires = now + 2000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(first), 0);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&second), 0);

	period.start = now;
	KUNIT_EXPECT_EQ(test, apic_timer_forward(first, now + 5000, 1000), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(first, &period, now + 5000), 0ULL);
	KUNIT_EXPECT_EQ(test, first->expires, now + 1000);
	KUNIT_EXPECT_EQ(test, period.n, 0ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 2);
	KUNIT_EXPECT_PTR_EQ(test, machine_base()->queue.first, first);

	KUNIT_EXPECT_EQ(test, del_apic_timer(first), 1);
	KUNIT_EXPECT_EQ(test, apic_timer_forward(first, now + 5000, 1000), 5ULL);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&second), 1);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 2);
}

/* A period of 0 is rejected, not treated as a moment that is still ahead. */
static void forward_no_period_test(struct kunit *test)
{
	struct apic_timer_period period = { .start = 7 };
	u64 refused = machine_stat(REFUSED);

	KUNIT_EXPECT_EQ(test, forward(1000, 2000, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 2000), 0ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1000ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 2);
}

static void forward_saturates_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, forward(1000, 1000, U64_MAX), 1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, U64_MAX);
	KUNIT_EXPECT_EQ(test, forward(1ULL << 63, (1ULL << 63) + 5, 1ULL << 63),
			1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, U64_MAX);
	/* n * period doesn't fit */
	forward(0, U64_MAX - 1, (1ULL << 63) + 1);
	KUNIT_EXPECT_EQ(test, timer.expires, U64_MAX);
	forward(0, U64_MAX, 1ULL << 32);
	KUNIT_EXPECT_EQ(test, timer.expires, U64_MAX);
}

static void forward_random_test(struct kunit *test)
{
	u64 expires, now, period, n;
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < 100000; i++) {
		expires = prandom_u32_state(&rnd);
		now = prandom_u32_state(&rnd);
		period = 1 + (prandom_u32_state(&rnd) >>
			      prandom_u32_state(&rnd) % 32);
		n = forward(expires, now, period);
		KUNIT_ASSERT_EQ(test, timer.expires, expires + n * period);
		if (expires > now) {
			KUNIT_ASSERT_EQ(test, n, 0ULL);
			continue;
		}
		KUNIT_ASSERT_GT(test, timer.expires, now);
		KUNIT_ASSERT_LE(test, timer.expires - period, now);
	}
}

/* Called in time a billion times (of which some are tested), it is never a cycle off. */
static void no_drift_test(struct kunit *test)
{
	/* 1/3 us at 2.999999 GHz: not a whole number of cycles */
	struct apic_timer_period period = {
		.start = 12345, .period_ns = 333,
	};
	u64 n, exact;

	apic_timer_sim.machine.tsc_khz = 2999999;
	timer.expires = period.start;
	for (n = 0; n < 1000000; n++) {
		KUNIT_ASSERT_EQ(test,
				apic_timer_forward_period(&timer, &period,
							  timer.expires + 7),
				1ULL);
		KUNIT_ASSERT_EQ(test, period.n, n + 1);
		exact = period.start + (n + 1) * 333 * 2999999 / 1000000;
		KUNIT_ASSERT_EQ(test, timer.expires, exact);
	}
	/* the rest of the billion, in leaps */
	while (period.n < 1000000000) {
		n = period.n;
		exact = period.start + (n + 999) * 333 * 2999999 / 1000000;
		KUNIT_ASSERT_EQ(test,
				apic_timer_forward_period(&timer, &period,
							  exact),
				1000ULL);
		KUNIT_ASSERT_EQ(test, period.n, n + 1000);
	}
	exact = period.start + 1000000000ULL * 333 * 2999999 / 1000000;
	KUNIT_EXPECT_EQ(test, timer.expires, exact);
	apic_timer_sim.machine = machine_plain;
}

static void forward_period_test(struct kunit *test)
{
	struct apic_timer_period period = {
		.start = 1000, .period_ns = 100,
	};

	/* at 1 GHz cycles are ns; moment 0 is ahead */
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 999),
			0ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1000ULL);
	/* now == expires counts as past */
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 1000),
			1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1100ULL);
	KUNIT_EXPECT_EQ(test, period.n, 1ULL);
	/* overrun */
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 1555),
			5ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1600ULL);
	KUNIT_EXPECT_EQ(test, period.n, 6ULL);
	/* an earlier now changes nothing */
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 0),
			0ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1600ULL);
}

static void forward_period_random_test(struct kunit *test)
{
	static const u32 rates[] = { 24000, 700000, 2999999, 4999999 };
	struct apic_timer_period period;
	struct rnd_state rnd;
	u64 now, n, moved;
	unsigned int i;
	u32 khz;

	prandom_seed_state(&rnd, 8);
	for (i = 0; i < 100000; i++) {
		khz = rates[prandom_u32_state(&rnd) % ARRAY_SIZE(rates)];
		apic_timer_sim.machine.tsc_khz = khz;
		period = (struct apic_timer_period) {
			.start = prandom_u32_state(&rnd),
			.period_ns = 1 + (prandom_u32_state(&rnd) >>
					  prandom_u32_state(&rnd) % 32),
			.n = prandom_u32_state(&rnd) % 1000,
		};
		n = period.n;
		now = prandom_u32_state(&rnd);
		moved = apic_timer_forward_period(&timer, &period, now);
		KUNIT_ASSERT_EQ(test, period.n, n + moved);
		KUNIT_ASSERT_GT(test, timer.expires, now);
		KUNIT_ASSERT_EQ(test, timer.expires,
				apic_timer_period_moment(&period, period.n,
							 khz));
		/* No moment that is ahead was skipped. */
		if (moved)
			KUNIT_ASSERT_LE(test,
					apic_timer_period_moment(&period,
								 period.n - 1,
								 khz),
					now);
	}
	apic_timer_sim.machine = machine_plain;
}

static void moment_test(struct kunit *test)
{
	struct apic_timer_period period = {
		.start = 99, .period_ns = 125000,
	};
	u64 n;

	for (n = 0; n < 1000000000; n = n * 2 + 1)
		KUNIT_EXPECT_EQ(test,
				apic_timer_period_moment(&period, n, 3333333),
				99 + n * 125 * 3333333 / 1000);
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, U64_MAX, 1000),
			U64_MAX);
	period.start = S64_MAX;
	period.period_ns = S64_MAX;
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 1, 1000000),
			U64_MAX - 1);
	period.period_ns += 2;
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 1, 1000000),
			U64_MAX);
	/* never */
	period.start = U64_MAX;
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 0, 1000000), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 1, 1000000), U64_MAX);
}

/*
 * The TSC has restarted in a suspend, and the start was moved with it, to before the TSC's
 * zero. The moments that are still ahead stay the same.
 */
static void start_before_zero_test(struct kunit *test)
{
	struct apic_timer_period period = {
		.start = -1000000000ULL, .period_ns = 1000, .n = 1000500,
	};

	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 0, 1000000), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 1000000, 1000000), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_period_moment(&period, 1000001, 1000000), 1000ULL);

	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 500000 + 7), 1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 501000ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 501000 - 1), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 503000), 3ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 504000ULL);

	/* From moments before the zero. */
	period.n = 5;
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 0), 999996ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, 1000ULL);
}

static void forward_period_saturates_test(struct kunit *test)
{
	struct apic_timer_period period = {
		.start = S64_MAX, .period_ns = 3ULL << 61,
	};

	KUNIT_EXPECT_EQ(test,
			apic_timer_forward_period(&timer, &period, S64_MAX), 1ULL);
	KUNIT_EXPECT_EQ(test, timer.expires, S64_MAX + (3ULL << 61));
	apic_timer_forward_period(&timer, &period, timer.expires);
	KUNIT_EXPECT_EQ(test, timer.expires, U64_MAX);
	/* and stays there */
	apic_timer_forward_period(&timer, &period, U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, timer.expires, U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(forward_test),
	KUNIT_CASE(forward_pending_test),
	KUNIT_CASE(forward_no_period_test),
	KUNIT_CASE(forward_saturates_test),
	KUNIT_CASE(forward_random_test),
	KUNIT_CASE(forward_period_test),
	KUNIT_CASE(forward_period_random_test),
	KUNIT_CASE(moment_test),
	KUNIT_CASE(start_before_zero_test),
	KUNIT_CASE(no_drift_test),
	KUNIT_CASE(forward_period_saturates_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_period",
	.init = machine_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
