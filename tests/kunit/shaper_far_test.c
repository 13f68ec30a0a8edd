// SPDX-License-Identifier: GPL-2.0
/* Packets whose departure times are far. */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "../../module/shaper/cb.h"
#include "../../module/shaper/far.h"
#include "machine.h"

#define PACKETS	60
#define NEAR	100000ULL

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI };

/* The result is later by the conversion's error. The host may interrupt one of the two calls. */
static bool error_is_added(clockid_t clock, s64 distance)
{
	unsigned int tries = 10;

	while (tries--) {
		ktime_t now = apic_timer_tsc_to_clock(clock, apic_timer_now());
		ktime_t when = ktime_add_ns(now, distance);
		u64 from_afar, at, middle, error;
		bool far, near;

		from_afar = shaper_far_to_tsc(clock, when, 0, &far);
		at = shaper_far_to_tsc(clock, when, U64_MAX, &near);
		middle = apic_timer_clock_to_tsc(clock, when, &error);
		if (near || !error || at <= middle + error / 2)
			continue;
		/* A past moment is never far. */
		if (distance < 0 || (far && from_afar < middle + error / 2))
			return true;
	}
	return false;
}

static void never_early(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		KUNIT_EXPECT_TRUE(test, error_is_added(clocks[i], 100 * NSEC_PER_MSEC));
		KUNIT_EXPECT_TRUE(test, error_is_added(clocks[i], -100 * NSEC_PER_MSEC));
	}
}

/* The older a moment, the larger its conversion's error, but the result is never ahead of now. */
static void long_ago_has_passed(struct kunit *test)
{
	static const ktime_t times[] = { KTIME_MIN, -KTIME_MAX / 2, -NSEC_PER_SEC, 0 };
	u64 error, at;
	unsigned int i, n;
	bool far;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		for (n = 0; n < ARRAY_SIZE(times); n++) {
			at = shaper_far_to_tsc(clocks[i], times[n], U64_MAX, &far);
			KUNIT_EXPECT_LE(test, at, apic_timer_now());
			KUNIT_EXPECT_FALSE(test, far);
		}
		/* No TSC value is that early. */
		KUNIT_EXPECT_EQ(test, apic_timer_clock_to_tsc(clocks[i], KTIME_MIN, &error), 0ULL);
		KUNIT_EXPECT_EQ(test, error, 0ULL);
	}
}

struct model {
	struct shaper_far far;
	struct sk_buff skb[PACKETS];
};

static struct model *new_model(struct kunit *test)
{
	struct model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, model);
	shaper_far_init(&model->far);
	return model;
}

/* Insert packet @i, of one of three clocks by its number, @ns from now. */
static bool insert(struct model *model, unsigned int i, u64 ns)
{
	clockid_t clock = clocks[i % ARRAY_SIZE(clocks)];
	struct sk_buff *skb = &model->skb[i];

	skb->tstamp = ktime_add_ns(apic_timer_tsc_to_clock(clock, apic_timer_now()), ns);
	return shaper_far_insert(&model->far, skb, clock);
}

static void looks_come_nearer(struct kunit *test)
{
	struct model *model = new_model(test);
	u64 now = apic_timer_now() + 1, look;
	struct sk_buff *skb = NULL;
	unsigned int looks = 0;

	KUNIT_EXPECT_EQ(test, shaper_far_look(&model->far), U64_MAX);
	KUNIT_EXPECT_TRUE(test, insert(model, 0, 10ULL * NSEC_PER_SEC));
	/* The first conversion is due at once. */
	KUNIT_EXPECT_LE(test, shaper_far_look(&model->far), now);
	KUNIT_EXPECT_NE(test, shaper_far_look(&model->far), 0ULL);
	while (!skb && looks < 20) {
		skb = shaper_far_pop(&model->far, now, NEAR, 0);
		look = shaper_far_look(&model->far);
		if (!skb) {
			KUNIT_ASSERT_GT(test, look, now);
			now = look;
			looks++;
		}
	}
	KUNIT_ASSERT_PTR_EQ(test, skb, &model->skb[0]);
	KUNIT_EXPECT_EQ(test, look, U64_MAX);
	KUNIT_EXPECT_EQ(test, model->far.count, 0U);
	/* 10 s, 625 ms, 39 ms, 2.4 ms, 153 us, 9.5 us */
	KUNIT_EXPECT_GE(test, looks, 4U);
	KUNIT_EXPECT_LE(test, looks, 7U);
}

/*
 * A far packet follows one that has come near: when to convert it is known without another
 * conversion, and in time.
 */
static void next_is_foreseen(struct kunit *test)
{
	struct model *model = new_model(test);
	unsigned int second = ARRAY_SIZE(clocks), i;
	u64 now, at, look;

	for (i = 0; i < 2; i++)
		insert(model, i * second, NSEC_PER_SEC + i * 10 * NSEC_PER_MSEC);
	at = apic_timer_clock_to_tsc(clocks[0], model->skb[second].tstamp, NULL);
	now = apic_timer_clock_to_tsc(clocks[0], model->skb[0].tstamp, NULL) - NEAR / 2;
	KUNIT_ASSERT_PTR_EQ(test, shaper_far_pop(&model->far, now, NEAR, 0), &model->skb[0]);
	look = shaper_far_look(&model->far);
	KUNIT_EXPECT_GT(test, look, now);
	KUNIT_EXPECT_LT(test, look, at);
	KUNIT_EXPECT_PTR_EQ(test, shaper_far_pop(&model->far, now, NEAR, 0), NULL);
	KUNIT_EXPECT_EQ(test, shaper_far_look(&model->far), look);
	/* Setting the clock invalidates that. */
	shaper_far_look_again(&model->far);
	KUNIT_EXPECT_LE(test, shaper_far_look(&model->far), now);
	KUNIT_EXPECT_PTR_EQ(test, shaper_far_pop(&model->far, at, NEAR, 0), &model->skb[second]);
	KUNIT_EXPECT_EQ(test, shaper_far_look(&model->far), U64_MAX);
}

/* With offload a packet is handed over before its moment: the hand-over must be near. */
static void ahead_of_its_moment(struct kunit *test)
{
	u64 ahead = apic_timer_ns_to_tsc(NSEC_PER_MSEC), now, at, error;
	struct model *model = new_model(test);
	struct sk_buff *skb;

	insert(model, 0, NSEC_PER_SEC);
	at = apic_timer_clock_to_tsc(clocks[0], model->skb[0].tstamp, &error);
	for (now = apic_timer_now(); !(skb = shaper_far_pop(&model->far, now, NEAR, ahead));
	     now = shaper_far_look(&model->far))
		KUNIT_ASSERT_LT(test, shaper_far_look(&model->far), at + error - ahead);
	KUNIT_EXPECT_PTR_EQ(test, skb, &model->skb[0]);
}

/* Packets keep the order of their clock, however they are queued and come near. */
static void in_the_order_of_their_clock(struct kunit *test)
{
	struct model *model = new_model(test);
	ktime_t last[ARRAY_SIZE(clocks)] = {};
	unsigned int i, n, came = 0;
	struct rnd_state rnd;
	struct sk_buff *skb;
	u64 now;

	prandom_seed_state(&rnd, 42);
	for (i = 0; i < PACKETS; i++)
		insert(model, i, NSEC_PER_SEC + prandom_u32_state(&rnd) % NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, model->far.count, (u32)PACKETS);
	for (now = apic_timer_now(); now != U64_MAX; now = shaper_far_look(&model->far)) {
		while ((skb = shaper_far_pop(&model->far, now, NEAR, 0))) {
			n = (skb - model->skb) % ARRAY_SIZE(clocks);
			KUNIT_EXPECT_GE(test, skb->tstamp, last[n]);
			last[n] = skb->tstamp;
			came++;
		}
	}
	KUNIT_EXPECT_EQ(test, came, (unsigned int)PACKETS);
	KUNIT_EXPECT_EQ(test, model->far.count, 0U);
}

/* A packet that is queued later, already near, waits for those that leave no later. */
static void nobody_overtakes(struct kunit *test)
{
	struct model *model = new_model(test);
	ktime_t time;

	KUNIT_EXPECT_FALSE(test, shaper_far_precedes(&model->far, clocks[0], KTIME_MAX));
	insert(model, 0, NSEC_PER_SEC);
	time = model->skb[0].tstamp;
	KUNIT_EXPECT_FALSE(test, shaper_far_precedes(&model->far, clocks[0], time - 1));
	KUNIT_EXPECT_TRUE(test, shaper_far_precedes(&model->far, clocks[0], time));
	KUNIT_EXPECT_FALSE(test, shaper_far_precedes(&model->far, clocks[1], KTIME_MAX));
	/* A program may ask for a time before the clock's beginning. */
	KUNIT_EXPECT_FALSE(test, shaper_far_precedes(&model->far, clocks[0], -1));
	/* Packets that want the same moment stay in the order in which they were queued. */
	model->skb[3].tstamp = time;
	KUNIT_EXPECT_FALSE(test, shaper_far_insert(&model->far, &model->skb[3], clocks[0]));
	KUNIT_EXPECT_PTR_EQ(test, shaper_far_pop(&model->far, U64_MAX, NEAR, 0), &model->skb[0]);
	KUNIT_EXPECT_PTR_EQ(test, shaper_far_pop(&model->far, U64_MAX, NEAR, 0), &model->skb[3]);
}

/* The packet that has to leave next, of those marked as @queued. */
static struct sk_buff *expected(struct model *model, const bool *queued)
{
	struct sk_buff *first = NULL;
	unsigned int i;

	for (i = 0; i < PACKETS; i++)
		if (queued[i] && (!first || model->skb[i].tstamp < first->tstamp))
			first = &model->skb[i];
	return first;
}

static void pop_expected(struct kunit *test, struct model *model, bool *queued)
{
	struct sk_buff *skb = expected(model, queued);

	KUNIT_EXPECT_PTR_EQ(test, shaper_far_pop(&model->far, U64_MAX, NEAR, 0), skb);
	if (skb)
		queued[skb - model->skb] = false;
}

static void remove_class(struct model *model, u32 class, bool *queued)
{
	unsigned int budget = PACKETS + 1;
	struct sk_buff *skb;

	shaper_far_rewind(&model->far);
	while ((skb = shaper_far_find(&model->far, class, &budget)))
		queued[skb - model->skb] = false;
}

/*
 * Some packets are queued in order, some are not, and many want the same moment. Meanwhile others
 * come near, and a class is deleted.
 */
static void first_in_first_out(struct kunit *test)
{
	ktime_t begin = ktime_add_ns(apic_timer_tsc_to_clock(clocks[0], apic_timer_now()),
				     NSEC_PER_SEC);
	struct model *model = new_model(test);
	unsigned int i, round, step, spread;
	bool queued[PACKETS] = {};
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 43);
	for (round = 0; round < 200; round++) {
		spread = 1 + prandom_u32_state(&rnd) % 5;
		step = prandom_u32_state(&rnd) % 3;
		for (i = 0; i < PACKETS; i++) {
			struct sk_buff *skb = &model->skb[i];

			skb->tstamp = begin + i * step / 2 + prandom_u32_state(&rnd) % spread;
			shaper_cb(skb)->flags =
				(1 + prandom_u32_state(&rnd) % 3) << SHAPER_CLASS_SHIFT;
			shaper_far_insert(&model->far, skb, clocks[0]);
			queued[i] = true;
			if (prandom_u32_state(&rnd) % 4 == 0)
				pop_expected(test, model, queued);
			if (prandom_u32_state(&rnd) % 32 == 0)
				remove_class(model, 1 + round % 3, queued);
		}
		while (expected(model, queued))
			pop_expected(test, model, queued);
		KUNIT_ASSERT_EQ(test, model->far.count, 0U);
		KUNIT_EXPECT_EQ(test, shaper_far_look(&model->far), U64_MAX);
	}
}

/* UML's clock is not the TSC: converted times are off by the duration of a read. */
static void late_ones_are_not_overtaken(struct kunit *test)
{
	struct model *model = new_model(test);
	ktime_t time = apic_timer_tsc_to_clock(clocks[0], apic_timer_now()) + NSEC_PER_MSEC;
	struct sk_buff *skb;
	unsigned int i;
	u64 last = 0;

	for (i = 0; i < PACKETS; i++) {
		model->skb[i].tstamp = ktime_add_ns(time, i);
		shaper_far_insert(&model->far, &model->skb[i], clocks[0]);
	}
	for (i = 0; i < PACKETS; i++) {
		skb = shaper_far_pop(&model->far, U64_MAX, NEAR, 0);
		KUNIT_ASSERT_PTR_EQ(test, skb, &model->skb[i]);
		KUNIT_EXPECT_GE(test, shaper_cb(skb)->want, last);
		last = shaper_cb(skb)->want;
	}
}

static void holds_behind_the_one_before(struct kunit *test)
{
	struct model *model = new_model(test);
	struct shaper_far *far = &model->far;

	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 100, 5000), 5000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 101, 4000), 5000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 101, 6000), 6000ULL);
	/* A packet may overtake one that leaves later, or by another clock. */
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[1], 101, 4000), 4000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 90, 4000), 4000ULL);
	/* Other packets still wait for that one. */
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 102, 4500), 6000ULL);
	/* A clock that was set back is followed once they have left. */
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 50, 6500), 6500ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 51, 6400), 6500ULL);
	/* The TSC restarts: near packets keep their moments. */
	shaper_far_shift(far, -6000);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 102, 30), 500ULL);
}

/* One sender queues longer ahead than the others; one packet of each was converted late. */
static void holds_behind_its_own_sender(struct kunit *test)
{
	struct model *model = new_model(test);
	struct shaper_far *far = &model->far;

	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 100, 5000), 5000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 90, 4000), 4000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 91, 3500), 4000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 50, 3000), 3000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 51, 2900), 3000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 92, 3600), 4000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 101, 4900), 5000ULL);
	/* A packet does not delay those before it either. */
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 40, 2000), 2000ULL);
	/* All of them follow the TSC. */
	shaper_far_shift(far, -1000);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 93, 100), 3000ULL);
	KUNIT_EXPECT_EQ(test, shaper_far_in_order(far, clocks[0], 102, 100), 4000ULL);
}

/* A packet that comes near between two steps of a search is not found by it. */
static void found_by_class(struct kunit *test)
{
	unsigned int i, budget, found = 0, came = 0, rounds = 0;
	struct model *model = new_model(test);
	struct sk_buff *skb;

	for (i = 0; i < PACKETS; i++) {
		shaper_cb(&model->skb[i])->flags = (1 + i / 3 % 2) << SHAPER_CLASS_SHIFT;
		insert(model, i, NSEC_PER_SEC);
	}
	shaper_far_rewind(&model->far);
	do {
		budget = 7;
		while ((skb = shaper_far_find(&model->far, 2, &budget))) {
			KUNIT_EXPECT_EQ(test, SHAPER_CLASS(shaper_cb(skb)->flags), 2U);
			found++;
		}
		/* With a later @now, all packets are near. */
		skb = shaper_far_pop(&model->far, U64_MAX, NEAR, 0);
		if (skb) {
			KUNIT_EXPECT_NE(test, SHAPER_CLASS(shaper_cb(skb)->flags), 0U);
			came++;
		}
	} while (!budget && rounds++ < PACKETS);
	KUNIT_EXPECT_NE(test, budget, 0U);
	KUNIT_EXPECT_EQ(test, model->far.count, PACKETS - found - came);
	while ((skb = shaper_far_pop(&model->far, U64_MAX, NEAR, 0)))
		KUNIT_EXPECT_EQ(test, SHAPER_CLASS(shaper_cb(skb)->flags), 1U);
	KUNIT_EXPECT_EQ(test, model->far.count, 0U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(never_early),
	KUNIT_CASE(long_ago_has_passed),
	KUNIT_CASE(looks_come_nearer),
	KUNIT_CASE(next_is_foreseen),
	KUNIT_CASE(ahead_of_its_moment),
	KUNIT_CASE(in_the_order_of_their_clock),
	KUNIT_CASE(nobody_overtakes),
	KUNIT_CASE(first_in_first_out),
	KUNIT_CASE(late_ones_are_not_overtaken),
	KUNIT_CASE(holds_behind_the_one_before),
	KUNIT_CASE(holds_behind_its_own_sender),
	KUNIT_CASE(found_by_class),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_far",
	.init = machine_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
