// SPDX-License-Identifier: GPL-2.0
/* Classes below a rate: which packet leaves when, with classes that always have packets. */
#include <kunit/test.h>

#include "../../module/shaper/cb.h"
#include "../../module/shaper/class.h"

#define TSC_HZ		1000000000ULL
#define START		1000000ULL
#define CLASSES		21

/* A qdisc whose clock is the moment at which a packet leaves. */
struct model {
	struct shaper_classes classes;
	struct shaper_edf rest;
	struct shaper_plan root;
	struct shaper_class class[CLASSES];
	u64 sent[CLASSES + 1];		/* bytes; the last: without a class */
	u64 at[CLASSES + 1];		/* latest departure */
	bool ended[CLASSES + 1];	/* sends no more packets */
	struct sk_buff skb[4 * (CLASSES + 1)];
	unsigned int used;
	u64 now;
};

static struct model *new_model(struct kunit *test, u64 root_rate)
{
	struct model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, model);
	shaper_classes_init(&model->classes);
	shaper_edf_init(&model->rest);
	shaper_plan_set(&model->root, TSC_HZ, root_rate, 0, 0);
	model->now = START;
	return model;
}

static void add_class(struct kunit *test, struct model *model, unsigned int n, u64 rate, u32 burst)
{
	struct shaper_class *class = &model->class[n];

	class->classid = 0x10000 + n + 1;
	shaper_edf_init(&class->edf);
	shaper_plan_set(&class->plan, TSC_HZ, rate, burst, 0);
	KUNIT_ASSERT_EQ(test, 0, xa_insert(&model->classes.all, n + 1, class, GFP_KERNEL));
	model->classes.count++;
}

static void end(struct model *model)
{
	xa_destroy(&model->classes.all);
}

/* Queue a packet, in class @n or, for CLASSES, without one. */
static void queue(struct model *model, unsigned int n, struct sk_buff *skb, u32 len, u64 want)
{
	*shaper_cb(skb) = (struct shaper_cb) { .want = want, .flags = SHAPER_AT_ONCE };
	qdisc_skb_cb(skb)->pkt_len = len;
	if (n == CLASSES) {
		shaper_edf_insert(&model->rest, skb);
		return;
	}
	shaper_class_account(&model->class[n], skb, len);
	shaper_class_insert(&model->classes, &model->root, skb);
}

static void fill(struct model *model, unsigned int n, u32 len, unsigned int count)
{
	while (count--)
		queue(model, n, &model->skb[model->used++], len, START);
}

/*
 * Let the first packet leave, as send.c does, and queue it again at once, unless its class has
 * ended.
 *
 * Return: its class, or CLASSES.
 */
static unsigned int step(struct model *model)
{
	struct sk_buff *skb = shaper_classes_first(&model->classes, &model->rest, &model->root);
	struct shaper_class *class = shaper_class_of(&model->classes, skb);
	unsigned int n = class ? class - model->class : CLASSES;
	bool at_once = shaper_cb(skb)->flags & SHAPER_AT_ONCE;
	u64 want = shaper_cb(skb)->want, at = shaper_plan_at(&model->root, want);
	u32 len = qdisc_pkt_len(skb);
	bool planned = !at_once || at != want;

	model->now = max(model->now, at);
	if (class)
		shaper_class_take(&model->classes, skb);
	else
		shaper_edf_erase(&model->rest, skb);
	if (class)
		shaper_class_left(&model->classes, &model->root, model->now, planned, len);
	shaper_plan_sent(&model->root, planned ? at : model->now, model->now, len);
	if (!class)
		shaper_classes_rest_left(&model->classes, &model->root);
	model->sent[n] += len;
	model->at[n] = model->now;
	if (!model->ended[n])
		queue(model, n, skb, len, model->now);
	return n;
}

/* Expect a share, with a deviation of up to one part in @part. */
static void expect_share(struct kunit *test, struct model *model, unsigned int n, u64 rate,
			 u32 part)
{
	u64 want = div64_u64((model->now - START) * rate, 8 * TSC_HZ);

	kunit_info(test, "class %u: %llu bytes of %llu", n, model->sent[n], want);
	KUNIT_EXPECT_GE(test, model->sent[n], want - want / part);
	KUNIT_EXPECT_LE(test, model->sent[n], want + want / part);
}

/* Two rates in one burst, without a rate of the qdisc: each class is exact, to the cycle. */
static void two_classes_are_exact(struct kunit *test)
{
	static const u64 gaps[] = { 800000, 320000 };
	struct model *model = new_model(test, 0);
	u64 counts[2] = {}, i;

	add_class(test, model, 0, 10000000, 0);
	add_class(test, model, 1, 25000000, 0);
	fill(model, 0, 1000, 3);
	fill(model, 1, 1000, 3);
	for (i = 0; i < 100000; i++) {
		unsigned int n = step(model);

		KUNIT_ASSERT_EQ(test, model->at[n], START + counts[n]++ * gaps[n]);
	}
	end(model);
}

/*
 * Classes that together do not exceed the rate get all that they ask for, although each is
 * delayed by the others: a fast class among twenty slow ones.
 */
static void feasible_rates_do_not_drift(struct kunit *test)
{
	struct model *model = new_model(test, 30000000);
	u64 count = 0, late = 0;
	unsigned int i;

	for (i = 0; i < CLASSES; i++) {
		add_class(test, model, i, i ? 1000000 : 10000000, 0);
		fill(model, i, 1000, 2);
	}
	for (i = 0; i < 300000; i++) {
		if (step(model))
			continue;
		/* 800,000 cycles each, and one or two packets of other classes in the way. */
		late = max(late, model->at[0] - START - count * 800000);
		count++;
	}
	KUNIT_EXPECT_LE(test, late, 800000 + 2 * 266667ULL);
	KUNIT_EXPECT_GE(test, count, 99998ULL);
	end(model);
}

/* The same for packets of all sizes, with the rate used up to the last bit. */
static void feasible_sizes_do_not_drift(struct kunit *test)
{
	static const u32 sizes[] = { 1500, 100, 700, 64, 1000, 1500 };
	struct model *model = new_model(test, 60000000);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		add_class(test, model, i, 10000000, 0);
		/* Enough packets to catch up. */
		fill(model, i, sizes[i], 14);
	}
	for (i = 0; i < 300000; i++)
		step(model);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		expect_share(test, model, i, 10000000, 1000);
	end(model);
}

/* A shortage is shared in proportion to the rates, independently of packet sizes. */
static void shortage_is_shared_by_rate(struct kunit *test)
{
	struct model *model = new_model(test, 15000000);
	unsigned int i;

	add_class(test, model, 0, 10000000, 0);
	add_class(test, model, 1, 20000000, 0);
	add_class(test, model, 2, 30000000, 0);
	fill(model, 0, 1500, 2);
	fill(model, 1, 100, 2);
	fill(model, 2, 700, 2);
	for (i = 0; i < 200000; i++)
		step(model);
	expect_share(test, model, 0, 2500000, 100);
	expect_share(test, model, 1, 5000000, 100);
	expect_share(test, model, 2, 7500000, 100);
	end(model);
}

/* Packets without a class count as a class with the qdisc's rate: none starves. */
static void rest_shares_too(struct kunit *test)
{
	struct model *model = new_model(test, 30000000);
	unsigned int i;

	add_class(test, model, 0, 10000000, 0);
	fill(model, 0, 1000, 2);
	fill(model, CLASSES, 1000, 4);
	for (i = 0; i < 100000; i++)
		step(model);
	expect_share(test, model, 0, 7500000, 100);
	expect_share(test, model, CLASSES, 22500000, 100);
	end(model);
}

/* Also next to a class whose rate is above the qdisc's. */
static void rest_is_not_starved(struct kunit *test)
{
	struct model *model = new_model(test, 10000000);
	unsigned int i;

	add_class(test, model, 0, 30000000, 0);
	fill(model, 0, 1000, 2);
	fill(model, CLASSES, 1000, 2);
	for (i = 0; i < 100000; i++)
		step(model);
	expect_share(test, model, 0, 7500000, 100);
	expect_share(test, model, CLASSES, 2500000, 100);
	end(model);
}

/* A turn that has begun goes on when its packet is dropped, or overtaken. */
static void turn_outlives_its_packet(struct kunit *test)
{
	struct model *model = new_model(test, 10000000);

	add_class(test, model, 0, 10000000, 0);
	add_class(test, model, 1, 25000000, 0);
	fill(model, 1, 1000, 2);
	fill(model, 0, 1000, 2);
	KUNIT_EXPECT_EQ(test, step(model), 1U);
	KUNIT_EXPECT_EQ(test, step(model), 1U);
	/* Its turn ends after 2.5 packets of the other one. */
	shaper_class_drop(&model->classes, &model->root, model->class[0].next, 1000);
	queue(model, 0, &model->skb[model->used++], 1000, START - 1);
	KUNIT_EXPECT_EQ(test, step(model), 0U);
	end(model);
}

/* A class whose only packet was dropped has its turn again. */
static void turn_of_a_dropped_packet(struct kunit *test)
{
	struct model *model = new_model(test, 10000000);

	add_class(test, model, 0, 10000000, 0);
	add_class(test, model, 1, 25000000, 0);
	fill(model, 1, 1000, 2);
	fill(model, 0, 1000, 1);
	shaper_class_drop(&model->classes, &model->root, model->class[0].next, 1000);
	KUNIT_EXPECT_EQ(test, model->class[0].queued, 0U);
	fill(model, 0, 1000, 1);
	/* Its turn ends after 2.5 packets of the other one, not after five. */
	KUNIT_EXPECT_EQ(test, step(model), 1U);
	KUNIT_EXPECT_EQ(test, step(model), 1U);
	KUNIT_EXPECT_EQ(test, step(model), 0U);
	end(model);
}

/* A class is not compensated for a shortage: its rate is a ceiling. */
static void shortage_leaves_no_credit(struct kunit *test)
{
	struct model *model = new_model(test, 15000000);
	u64 begin, sent;
	unsigned int i;

	add_class(test, model, 0, 10000000, 0);
	add_class(test, model, 1, 100000000, 0);
	fill(model, 0, 1000, 2);
	fill(model, 1, 1000, 2);
	for (i = 0; i < 10000; i++)
		step(model);
	/* The other class has no more packets. */
	model->ended[1] = true;
	while (model->class[1].queued)
		step(model);
	begin = model->now;
	sent = model->sent[0];
	for (i = 0; i < 1000; i++)
		step(model);
	/* Less than two packets of credit, and one for the boundaries. */
	KUNIT_EXPECT_LE(test, model->sent[0] - sent,
			div64_u64((model->now - begin) * 10000000, 8 * TSC_HZ) + 3000);
	end(model);
}

/* Count the packets that leave before the next one of class @n, or without a class. */
static unsigned int steps_until(struct model *model, unsigned int n)
{
	unsigned int count = 0;

	while (step(model) != n && count < 100000)
		count++;
	return count;
}

/* A turn of a low rate of the qdisc does not hold up packets without a class later. */
static void rest_forgets_a_low_rate(struct kunit *test)
{
	struct model *model = new_model(test, 100000);

	add_class(test, model, 0, 10000000, 0);
	add_class(test, model, 1, 25000000, 0);
	fill(model, 0, 1000, 2);
	fill(model, 1, 1000, 2);
	fill(model, CLASSES, 1000, 2);
	KUNIT_EXPECT_LE(test, steps_until(model, CLASSES), 1U);
	shaper_plan_set(&model->root, TSC_HZ, 10000000, 0, 0);
	shaper_classes_rate_set(&model->classes);
	/* In proportion there are three or four in between. */
	KUNIT_EXPECT_LE(test, steps_until(model, CLASSES), 5U);
	end(model);
}

/* Nor does a turn of a low rate of its own hold up a class. */
static void class_forgets_a_low_rate(struct kunit *test)
{
	struct model *model = new_model(test, 1000000);

	add_class(test, model, 0, 1000, 0);
	add_class(test, model, 1, 10000000, 0);
	fill(model, 0, 1000, 2);
	KUNIT_EXPECT_EQ(test, step(model), 0U);
	fill(model, 1, 1000, 2);
	shaper_plan_change(&model->class[0].plan, model->now, TSC_HZ, 10000000, 0, 0);
	shaper_class_rate_set(&model->classes, &model->class[0], &model->root);
	/* At the old rate the next packet would leave 8 s after that one. */
	KUNIT_EXPECT_LE(test, steps_until(model, 0), 2U);
	KUNIT_EXPECT_LE(test, steps_until(model, 0), 2U);
	end(model);
}

/* Its next packet is the one that wants to leave first, as before, when the new rate lets it. */
static void next_packet_follows_the_rate(struct kunit *test)
{
	struct model *model = new_model(test, 0);

	add_class(test, model, 0, 1000000, 0);
	fill(model, 0, 1000, 3);
	model->ended[0] = true;
	step(model);
	KUNIT_EXPECT_EQ(test, shaper_cb(model->class[0].next)->want, START + 8000000);
	shaper_plan_change(&model->class[0].plan, START, TSC_HZ, 8000000, 0, 0);
	shaper_class_rate_set(&model->classes, &model->class[0], &model->root);
	KUNIT_EXPECT_PTR_EQ(test, model->class[0].next, &model->skb[1]);
	KUNIT_EXPECT_EQ(test, shaper_cb(&model->skb[1])->want, START + 1000000);
	step(model);
	step(model);
	KUNIT_EXPECT_EQ(test, model->at[0], START + 2000000);
	KUNIT_EXPECT_EQ(test, model->class[0].queued, 0U);
	end(model);
}

static void burst_of_a_class(struct kunit *test)
{
	struct model *model = new_model(test, 0);
	unsigned int i;

	model->ended[0] = true;
	add_class(test, model, 0, 1000000, 3000);
	fill(model, 0, 1000, 1);
	step(model);
	/* After a pause, three packets more than the one that is due. */
	model->now = START + TSC_HZ;
	model->used = 0;
	for (i = 0; i < 5; i++)
		queue(model, 0, &model->skb[i], 1000, model->now);
	for (i = 0; i < 4; i++) {
		step(model);
		KUNIT_EXPECT_EQ(test, model->at[0], START + TSC_HZ);
	}
	step(model);
	KUNIT_EXPECT_EQ(test, model->at[0], START + TSC_HZ + 8000000);
	end(model);
}

/* A packet that wants to leave earlier overtakes the next one of its class. */
static void earlier_packet_becomes_next(struct kunit *test)
{
	struct model *model = new_model(test, 0);

	model->ended[0] = true;
	add_class(test, model, 0, 1000000, 0);
	queue(model, 0, &model->skb[0], 1000, START + 5000);
	queue(model, 0, &model->skb[1], 1000, START + 3000);
	queue(model, 0, &model->skb[2], 1000, START + 4000);
	KUNIT_EXPECT_PTR_EQ(test, model->class[0].next, &model->skb[1]);
	step(model);
	KUNIT_EXPECT_EQ(test, model->at[0], START + 3000);
	KUNIT_EXPECT_PTR_EQ(test, model->class[0].next, &model->skb[2]);
	/* A dropped packet does not count for the rate. */
	shaper_class_drop(&model->classes, &model->root, &model->skb[2], 1000);
	KUNIT_EXPECT_PTR_EQ(test, model->class[0].next, &model->skb[0]);
	step(model);
	KUNIT_EXPECT_EQ(test, model->at[0], START + 3000 + 8000000);
	KUNIT_EXPECT_EQ(test, model->class[0].queued, 0U);
	KUNIT_EXPECT_EQ(test, model->class[0].backlog, 0U);
	end(model);
}

static void epoch_shifts_all(struct kunit *test)
{
	struct model *model = new_model(test, 0);

	model->ended[0] = true;
	add_class(test, model, 0, 1000000, 0);
	fill(model, 0, 1000, 3);
	step(model);
	shaper_classes_shift(&model->classes, &model->root, 500);
	step(model);
	KUNIT_EXPECT_EQ(test, model->at[0], START + 8000000 + 500);
	step(model);
	KUNIT_EXPECT_EQ(test, model->at[0], START + 16000000 + 500);
	end(model);
}

/* The sender, a thread, was suspended while it had its packet, and keeps it. */
static void epoch_leaves_the_sender_its_packet(struct kunit *test)
{
	struct model *model = new_model(test, 0);
	struct sk_buff *sent;

	add_class(test, model, 0, 1000000, 0);
	fill(model, 0, 1000, 2);
	sent = model->class[0].next;
	shaper_class_take(&model->classes, sent);
	shaper_classes_shift(&model->classes, &model->root, 500);
	KUNIT_EXPECT_PTR_EQ(test, model->class[0].next, sent);
	KUNIT_EXPECT_NULL(test, shaper_classes_first(&model->classes, &model->rest, &model->root));
	shaper_class_left(&model->classes, &model->root, START + 500, true, 1000);
	KUNIT_EXPECT_PTR_EQ(test, model->class[0].next, &model->skb[1]);
	KUNIT_EXPECT_EQ(test, model->class[0].queued, 1U);
	end(model);
}

static void emptied_but_for_the_sender(struct kunit *test)
{
	struct model *model = new_model(test, 0);
	unsigned int count = 0;
	struct shaper_edf edf;
	struct sk_buff *skb;

	add_class(test, model, 0, 1000000, 0);
	fill(model, 0, 1000, 3);
	shaper_class_take(&model->classes, model->class[0].next);
	edf = shaper_class_detach(&model->classes, &model->class[0]);
	while ((skb = shaper_edf_first(&edf))) {
		shaper_edf_erase(&edf, skb);
		count++;
	}
	KUNIT_EXPECT_EQ(test, count, 2U);
	KUNIT_EXPECT_NULL(test, shaper_classes_first(&model->classes, &model->rest, &model->root));
	end(model);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(two_classes_are_exact),
	KUNIT_CASE(feasible_rates_do_not_drift),
	KUNIT_CASE(feasible_sizes_do_not_drift),
	KUNIT_CASE(shortage_is_shared_by_rate),
	KUNIT_CASE(rest_shares_too),
	KUNIT_CASE(rest_is_not_starved),
	KUNIT_CASE(turn_outlives_its_packet),
	KUNIT_CASE(turn_of_a_dropped_packet),
	KUNIT_CASE(shortage_leaves_no_credit),
	KUNIT_CASE(rest_forgets_a_low_rate),
	KUNIT_CASE(class_forgets_a_low_rate),
	KUNIT_CASE(next_packet_follows_the_rate),
	KUNIT_CASE(burst_of_a_class),
	KUNIT_CASE(earlier_packet_becomes_next),
	KUNIT_CASE(epoch_shifts_all),
	KUNIT_CASE(epoch_leaves_the_sender_its_packet),
	KUNIT_CASE(emptied_but_for_the_sender),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_class",
	.test_cases = cases,
};

kunit_test_suite(suite);
