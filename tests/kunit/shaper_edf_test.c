// SPDX-License-Identifier: GPL-2.0
/* The queue of packets, compared with a sorted array. */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "../../module/shaper/cb.h"
#include "../../module/shaper/edf.h"

#define PACKETS		64
#define STEPS		20000

struct model {
	struct shaper_edf edf;
	struct sk_buff *free[PACKETS];
	struct sk_buff *sorted[PACKETS];
	unsigned int nfree;
	unsigned int nsorted;
};

static struct model *new_model(struct kunit *test)
{
	struct model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	struct sk_buff *skb = kunit_kzalloc(test, PACKETS * sizeof(*skb), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, model);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	shaper_edf_init(&model->edf);
	for (i = 0; i < PACKETS; i++)
		model->free[model->nfree++] = skb + i;
	return model;
}

/* Insert a packet after those that want the same moment, or before them if @again. */
static bool sorted_insert(struct model *model, struct sk_buff *skb, bool again)
{
	u64 want = shaper_cb(skb)->want;
	unsigned int at = model->nsorted++;

	while (at && (shaper_cb(model->sorted[at - 1])->want > want ||
		      (again && shaper_cb(model->sorted[at - 1])->want == want))) {
		model->sorted[at] = model->sorted[at - 1];
		at--;
	}
	model->sorted[at] = skb;
	return !at;
}

static void sorted_erase(struct model *model, unsigned int at)
{
	model->nsorted--;
	memmove(model->sorted + at, model->sorted + at + 1,
		(model->nsorted - at) * sizeof(*model->sorted));
}

static void expect_same(struct kunit *test, struct model *model)
{
	struct rb_node *node = rb_first_cached(&model->edf.root);
	unsigned int i;

	for (i = 0; i < model->nsorted; i++, node = rb_next(node)) {
		KUNIT_ASSERT_NOT_NULL(test, node);
		KUNIT_ASSERT_PTR_EQ(test, rb_to_skb(node), model->sorted[i]);
	}
	KUNIT_ASSERT_NULL(test, node);
}

static void random_operations(struct kunit *test)
{
	struct model *model = new_model(test);
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 42);
	for (i = 0; i < STEPS; i++) {
		u32 r = prandom_u32_state(&rnd);
		struct sk_buff *skb;

		if (model->nfree && (r % 3 || !model->nsorted)) {
			bool again = r & BIT(20);

			skb = model->free[--model->nfree];
			/* Few values, so that many are equal. */
			shaper_cb(skb)->want = r >> 8 & 15;
			KUNIT_ASSERT_EQ(test, sorted_insert(model, skb, again),
					again ? shaper_edf_insert_again(&model->edf, skb) :
						shaper_edf_insert(&model->edf, skb));
		} else {
			unsigned int at = r & BIT(21) ? 0 : (r >> 8) % model->nsorted;

			skb = model->sorted[at];
			if (!at)
				KUNIT_ASSERT_PTR_EQ(test, shaper_edf_first(&model->edf), skb);
			shaper_edf_erase(&model->edf, skb);
			KUNIT_ASSERT_NULL(test, skb->next);
			KUNIT_ASSERT_NULL(test, skb->prev);
			sorted_erase(model, at);
			model->free[model->nfree++] = skb;
		}
		expect_same(test, model);
	}
}

static void empty_has_no_first(struct kunit *test)
{
	struct model *model = new_model(test);

	KUNIT_EXPECT_NULL(test, shaper_edf_first(&model->edf));
}

static void epoch_shifts_all(struct kunit *test)
{
	struct model *model = new_model(test);
	unsigned int i;

	for (i = 0; i < PACKETS; i++) {
		shaper_cb(model->free[i])->want = i < 8 ? i : U64_MAX - PACKETS + i;
		shaper_edf_insert(&model->edf, model->free[i]);
		sorted_insert(model, model->free[i], false);
	}
	shaper_edf_shift(&model->edf, -4);
	expect_same(test, model);
	KUNIT_EXPECT_EQ(test, shaper_cb(model->sorted[2])->want, 0ULL);
	KUNIT_EXPECT_EQ(test, shaper_cb(model->sorted[7])->want, 3ULL);
	shaper_edf_shift(&model->edf, 10);
	expect_same(test, model);
	KUNIT_EXPECT_EQ(test, shaper_cb(model->sorted[7])->want, 13ULL);
	KUNIT_EXPECT_EQ(test, shaper_cb(model->sorted[PACKETS - 1])->want, U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(random_operations),
	KUNIT_CASE(empty_has_no_first),
	KUNIT_CASE(epoch_shifts_all),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_edf",
	.test_cases = cases,
};

kunit_test_suite(suite);
