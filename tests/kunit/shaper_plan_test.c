// SPDX-License-Identifier: GPL-2.0
/* Departures at a rate: exact after any number of packets. */
#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/time64.h>

#include "../../module/shaper/plan.h"

#define HZ_SLOW		1000000000ULL
#define HZ_FAST		5000000000ULL
#define START		123456789ULL
#define DAY		86400ULL	/* seconds */

/* Send packets of @len bytes as soon as they may leave. Return: when the next one may. */
static u64 send(struct shaper_plan *plan, u64 count, u32 len)
{
	u64 at = shaper_plan_at(plan, START);

	while (count--) {
		shaper_plan_sent(plan, at, at + 3, len);
		at = shaper_plan_at(plan, START);
	}
	return at;
}

/* TSC cycles of a number of packets, by a single division, rounded down. */
static u64 whole(u64 count, u32 len, u64 hz, u64 rate)
{
	u64 bits = count * len * 8, seconds, millions, rest;

	seconds = div64_u64_rem(bits, rate, &rest);
	/* In two steps, because rest * hz does not fit for high rates. */
	millions = div64_u64_rem(rest * div_u64(hz, 1000000), rate, &rest);
	return seconds * hz + millions * 1000000 + div64_u64(rest * 1000000, rate);
}

static const struct {
	u64 rate;
	u32 len;
} day[] = {
	{ 1, 1500 }, { 1, 64 }, { 7, 65535 }, { 1000, 1500 }, { 9600, 1500 }, { 1000003, 9000 },
};

/* The number of packets that fit into a day. */
static void day_of_packets_does_not_drift(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(day); i++) {
		u64 count = div64_u64(DAY * day[i].rate, day[i].len * 8) + 10;
		struct shaper_plan plan = {};
		u64 next;

		shaper_plan_set(&plan, HZ_FAST, day[i].rate, 0, 0);
		next = send(&plan, count, day[i].len);
		KUNIT_EXPECT_EQ(test, next - START,
				whole(count, day[i].len, HZ_FAST, day[i].rate));
	}
}

static const u64 rates[] = {
	1, 3, 50000000, 1000000000, 2500000000ULL, 10000000000ULL, 99999999977ULL,
	400000000000ULL, 1ULL << 40,
};

/* A million packets: at 400 Gbit/s each takes 150 cycles of 5 GHz, and a fraction. */
static void any_rate_is_exact(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct shaper_plan plan = {};
		u64 next, count = rates[i] < 1000 ? 1000 : 1000000;

		shaper_plan_set(&plan, HZ_FAST, rates[i], 0, 0);
		next = send(&plan, count, 1500);
		KUNIT_EXPECT_EQ(test, next - START, whole(count, 1500, HZ_FAST, rates[i]));
	}
}

/*
 * A day at 400 Gbit/s has 4 * 10^12 packets. After the second sent here there is no remainder,
 * so every other second of the day is the same.
 */
static void fast_second_is_a_second(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 at, n;

	shaper_plan_set(&plan, HZ_FAST, 400000000000ULL, 0, 0);
	/* 33,333,333 packets of 1,500 bytes, and a third of one. */
	for (n = 0; n < 33333333; n++) {
		at = shaper_plan_at(&plan, START);
		shaper_plan_sent(&plan, at, at, 1500);
	}
	at = shaper_plan_at(&plan, START);
	shaper_plan_sent(&plan, at, at, 500);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), START + HZ_FAST);
	KUNIT_EXPECT_EQ(test, plan.rest, 0ULL);
}

static void paper_figure_5(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 at[3];
	int i;

	shaper_plan_set(&plan, HZ_SLOW, 50000000, 0, 0);
	for (i = 0; i < 3; i++) {
		at[i] = shaper_plan_at(&plan, START);
		shaper_plan_sent(&plan, at[i], at[i], 667);
	}
	KUNIT_EXPECT_EQ(test, at[1] - at[0], 106720ULL);
	KUNIT_EXPECT_EQ(test, at[2] - at[1], 106720ULL);
}

static void without_rate_nothing_waits(struct kunit *test)
{
	struct shaper_plan plan = {};

	shaper_plan_set(&plan, HZ_SLOW, 0, 0, 0);
	shaper_plan_sent(&plan, START, START, 1500);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), START);
}

static void pause_saves_burst_and_no_more(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 later = START + HZ_SLOW, at;
	int i;

	/* 1 Mbit/s: 1,000 bytes take 8 ms. */
	shaper_plan_set(&plan, HZ_SLOW, 1000000, 3000, 0);
	send(&plan, 1, 1000);
	for (i = 0; i < 4; i++) {
		at = shaper_plan_at(&plan, later);
		KUNIT_EXPECT_EQ(test, at, later);
		shaper_plan_sent(&plan, at, at, 1000);
	}
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, later), later + 8000000);
}

static void without_burst_pause_saves_nothing(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 later = START + HZ_SLOW;

	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, 0);
	send(&plan, 1, 1000);
	shaper_plan_sent(&plan, later, later, 1000);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, later), later + 8000000);
}

/* The queue was stopped for a second, with packets in it. */
static void stop_makes_no_burst(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 late = START + HZ_SLOW, at;

	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, 0);
	send(&plan, 1, 1000);
	at = shaper_plan_at(&plan, START);
	KUNIT_EXPECT_EQ(test, at, START + 8000000);
	shaper_plan_sent(&plan, at, late, 1000);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), late + 8000000);
}

/* A delay shorter than the duration of a packet changes nothing. */
static void small_delays_do_not_add_up(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 at = START;
	int i;

	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, 0);
	for (i = 0; i < 1000; i++) {
		at = shaper_plan_at(&plan, START);
		shaper_plan_sent(&plan, at, at + 7999999, 1000);
	}
	KUNIT_EXPECT_EQ(test, at, START + 999 * 8000000ULL);
}

static void another_rate_goes_on_from_there(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 next;

	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, 0);
	next = send(&plan, 3, 1000);
	shaper_plan_set(&plan, HZ_SLOW, 8000000, 0, 0);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), next);
	shaper_plan_sent(&plan, next, next, 1000);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), next + 1000000);
}

/* Packets that wait already: after half of its wait one waits for half of the new one. */
static void waiting_packets_follow_the_rate(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 half;

	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, 0);
	half = send(&plan, 3, 1000) - 4000000;
	shaper_plan_change(&plan, half, HZ_SLOW, 8000000, 0, 0);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), half + 500000);
	shaper_plan_change(&plan, half, HZ_SLOW, 1000, 0, 0);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), half + 4000000000ULL);
	/* Nothing is due for a pause. */
	shaper_plan_change(&plan, half + HZ_FAST, HZ_SLOW, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), half + 4000000000ULL);
}

/* A packet has used up what may leave at once, and 500 bytes more. */
static void waiting_packets_keep_the_burst(struct kunit *test)
{
	struct shaper_plan plan = {};

	shaper_plan_set(&plan, HZ_SLOW, 1000, 2500, 0);
	shaper_plan_sent(&plan, START, START, 3000);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), START + 4 * HZ_SLOW);
	shaper_plan_change(&plan, START, HZ_SLOW, 1000000, 2500, 0);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), START + 4000000);
}

static void without_rate_nothing_is_left_to_wait(struct kunit *test)
{
	struct shaper_plan plan = {};

	shaper_plan_set(&plan, HZ_SLOW, 1, 0, 0);
	send(&plan, 1, 1000);
	shaper_plan_change(&plan, START, HZ_SLOW, 0, 0, 0);
	shaper_plan_change(&plan, START, HZ_SLOW, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, shaper_plan_at(&plan, START), START);
}

/* The longest wait, and one that no packet can cause. */
static void waits_for_the_lowest_rate_fit(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 bits = 8ULL * SHAPER_LEN_MAX;

	shaper_plan_set(&plan, HZ_FAST, SHAPER_RATE_MAX, 0, 0);
	shaper_plan_sent(&plan, START, START, SHAPER_LEN_MAX);
	shaper_plan_change(&plan, START, HZ_FAST, 1, 0, 0);
	/* The fraction of a cycle at the old rate is lost. */
	KUNIT_EXPECT_LE(test, plan.next, START + bits * HZ_FAST);
	KUNIT_EXPECT_GT(test, plan.next, START + bits * HZ_FAST - SHAPER_RATE_MAX);
	plan.next = U64_MAX;
	plan.rate = SHAPER_RATE_MAX;
	shaper_plan_change(&plan, START, HZ_FAST, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, plan.next, U64_MAX);
}

static void overhead_counts(struct kunit *test)
{
	struct shaper_plan plan = {};
	u64 next;

	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, 24);
	next = send(&plan, 1, 976);
	KUNIT_EXPECT_EQ(test, next - START, 8000000ULL);
	/* A packet is never less than a byte. */
	plan = (struct shaper_plan) {};
	shaper_plan_set(&plan, HZ_SLOW, 1000000, 0, -64);
	next = send(&plan, 1, 60);
	KUNIT_EXPECT_EQ(test, next - START, 8000ULL);
}

static void far_future_saturates(struct kunit *test)
{
	struct shaper_plan plan = { .next = U64_MAX - 10 };

	shaper_plan_set(&plan, HZ_FAST, 1, 0, 0);
	shaper_plan_sent(&plan, U64_MAX - 10, U64_MAX - 10, 65535);
	KUNIT_EXPECT_EQ(test, plan.next, U64_MAX);
	shaper_plan_shift(&plan, 100);
	KUNIT_EXPECT_EQ(test, plan.next, U64_MAX);
	shaper_plan_shift(&plan, S64_MIN);
	shaper_plan_shift(&plan, S64_MIN);
	KUNIT_EXPECT_EQ(test, plan.next, 0ULL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(day_of_packets_does_not_drift),
	KUNIT_CASE(any_rate_is_exact),
	KUNIT_CASE(fast_second_is_a_second),
	KUNIT_CASE(paper_figure_5),
	KUNIT_CASE(without_rate_nothing_waits),
	KUNIT_CASE(pause_saves_burst_and_no_more),
	KUNIT_CASE(without_burst_pause_saves_nothing),
	KUNIT_CASE(stop_makes_no_burst),
	KUNIT_CASE(small_delays_do_not_add_up),
	KUNIT_CASE(another_rate_goes_on_from_there),
	KUNIT_CASE(waiting_packets_follow_the_rate),
	KUNIT_CASE(waiting_packets_keep_the_burst),
	KUNIT_CASE(without_rate_nothing_is_left_to_wait),
	KUNIT_CASE(waits_for_the_lowest_rate_fit),
	KUNIT_CASE(overhead_counts),
	KUNIT_CASE(far_future_saturates),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_plan",
	.test_cases = cases,
};

kunit_test_suite(suite);
