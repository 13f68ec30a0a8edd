// SPDX-License-Identifier: GPL-2.0
/*
 * The queue: order, deletion, search, and the cost of insertion.
 */
#include <kunit/test.h>
#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/prandom.h>

#include "lib/queue.h"

static struct apic_timer_list *next_leader(struct apic_timer_list *timer)
{
	while (timer && !timer->group)
		timer = timer->next;
	return timer;
}

/*
 * Return the depth of a node's subtree; -1 if the index does not have the
 * leaders in the order of the list.
 */
static int walk(struct rb_node *node, struct apic_timer_list **next)
{
	int left, right;

	if (!node)
		return 0;
	left = walk(node->rb_left, next);
	if (left < 0 || *next != rb_entry(node, struct apic_timer_list, node))
		return -1;
	*next = next_leader((*next)->next);
	right = walk(node->rb_right, next);
	return right < 0 ? -1 : 1 + max(left, right);
}

/* Check the sorted timers: in order, linked both ways, groups small enough. Return their number. */
static unsigned long check_sorted(struct kunit *test,
				  const struct apic_timer_queue *queue)
{
	struct apic_timer_list *timer, *prev = NULL, *next;
	const struct apic_timer_list *last = NULL;
	const struct rb_node *first;
	unsigned long count = 0, leaders = 0;
	unsigned int room = queue->unindexed;
	int depth;

	KUNIT_ASSERT_LE(test, room, (unsigned int)APIC_TIMER_QUEUE_GROUP);
	for (timer = queue->first; timer; prev = timer, timer = timer->next) {
		KUNIT_ASSERT_PTR_EQ(test, timer->prev, prev);
		if (prev)
			KUNIT_ASSERT_LE(test, prev->key, timer->key);
		KUNIT_ASSERT_LE(test, ++count, queue->count);
		if (timer->group) {
			leaders++;
			last = timer;
			room = timer->group;
			KUNIT_ASSERT_LE(test, room,
					(unsigned int)APIC_TIMER_QUEUE_GROUP);
		}
		KUNIT_ASSERT_GE(test, room--, 1U);
	}

	KUNIT_ASSERT_PTR_EQ(test, queue->last, last);
	next = next_leader(queue->first);
	first = rb_first_cached(&queue->index);
	KUNIT_ASSERT_PTR_EQ(test, first, next ? &next->node : NULL);
	depth = walk(queue->index.rb_root.rb_node, &next);
	KUNIT_ASSERT_GE(test, depth, 0);
	KUNIT_ASSERT_PTR_EQ(test, next, NULL);
	KUNIT_ASSERT_LE(test, depth, 2 * (int)order_base_2(leaders + 1));
	return count;
}

/* Check arrivals: each in its slot, none before the head or the bound. Return their number. */
static unsigned long check_arrivals(struct kunit *test,
				    const struct apic_timer_queue *queue)
{
	const struct apic_timer_list *timer;
	unsigned long count = 0;
	unsigned int slot;

	KUNIT_ASSERT_LT(test, queue->slot,
			(unsigned int)APIC_TIMER_QUEUE_ARRIVALS);
	KUNIT_ASSERT_LE(test, queue->room,
			(unsigned int)APIC_TIMER_QUEUE_ARRIVALS);
	for (slot = 0; slot < queue->room; slot++)
		KUNIT_ASSERT_FALSE(test, ror32(queue->arrived, queue->slot) &
					 BIT(slot));
	for (slot = 0; slot < APIC_TIMER_QUEUE_ARRIVALS; slot++) {
		if (!(queue->arrived & BIT(slot)))
			continue;
		timer = queue->arrivals[slot];
		KUNIT_ASSERT_EQ(test, timer->group,
				APIC_TIMER_QUEUE_ARRIVED + slot);
		KUNIT_ASSERT_EQ(test, timer->key, queue->expires[slot]);
		KUNIT_ASSERT_GE(test, timer->key, queue->soonest);
		KUNIT_ASSERT_NOT_NULL(test, queue->first);
		KUNIT_ASSERT_GE(test, timer->key, queue->first->key);
		count++;
	}
	return count;
}

/* Check that each walk will continue with a leader. */
static void check_cursors(struct kunit *test,
			  const struct apic_timer_queue *queue)
{
	const struct apic_timer_queue_cursor *cursor;

	for (cursor = queue->cursors; cursor; cursor = cursor->link) {
		KUNIT_ASSERT_TRUE(test, cursor->registered);
		if (!cursor->next)
			continue;
		KUNIT_ASSERT_GE(test, cursor->next->group, 1U);
		KUNIT_ASSERT_LE(test, cursor->next->group,
				(unsigned int)APIC_TIMER_QUEUE_GROUP);
	}
}

static void check(struct kunit *test, const struct apic_timer_queue *queue)
{
	unsigned long sorted = check_sorted(test, queue);

	KUNIT_ASSERT_EQ(test, queue->count,
			sorted + check_arrivals(test, queue));
	check_cursors(test, queue);
}

static void settle(struct apic_timer_queue *queue)
{
	while (apic_timer_queue_sort_one(queue))
		;
}

static struct apic_timer_list *timers(struct kunit *test, unsigned int n)
{
	struct apic_timer_list *array;

	array = kunit_kcalloc(test, n, sizeof(*array), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, array);
	return array;
}

static void fill(struct kunit *test, struct apic_timer_queue *queue,
		 struct apic_timer_list *array, const u64 *expires,
		 unsigned int n)
{
	unsigned int i;

	apic_timer_queue_init(queue);
	for (i = 0; i < n; i++) {
		array[i].expires = expires[i];
		apic_timer_queue_add(queue, &array[i]);
		check(test, queue);
	}
}

static void empty_test(struct kunit *test)
{
	struct apic_timer_queue queue;

	memset(&queue, 0xa5, sizeof(queue));
	apic_timer_queue_init(&queue);
	check(test, &queue);
	KUNIT_EXPECT_PTR_EQ(test, queue.first, NULL);
}

static void order_test(struct kunit *test)
{
	static const u64 expires[] = { 50, 10, 90, 50, 0, U64_MAX, 10, 70 };
	static const int order[] = { 4, 1, 6, 0, 3, 7, 2, 5 };
	struct apic_timer_list *array = timers(test, ARRAY_SIZE(expires));
	struct apic_timer_list *timer;
	struct apic_timer_queue queue;
	unsigned int i;

	fill(test, &queue, array, expires, ARRAY_SIZE(expires));
	settle(&queue);
	check(test, &queue);
	timer = queue.first;
	for (i = 0; i < ARRAY_SIZE(order); i++, timer = timer->next)
		KUNIT_ASSERT_EQ(test, (int)(timer - array), order[i]);
}

static void equal_fifo_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 300), *timer;
	struct apic_timer_queue queue;
	unsigned int i, before;
	u64 moment;

	/* Three alternating moments: the timers of each keep their order. */
	apic_timer_queue_init(&queue);
	for (i = 0; i < 300; i++) {
		array[i].expires = i % 3;
		apic_timer_queue_add(&queue, &array[i]);
	}
	check(test, &queue);
	settle(&queue);
	check(test, &queue);

	timer = queue.first;
	for (moment = 0; moment < 3; moment++) {
		before = moment;
		for (i = 0; i < 100; i++, before += 3, timer = timer->next)
			KUNIT_ASSERT_EQ(test, (unsigned int)(timer - array),
					before);
	}
}

static void new_head_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 5);
	struct apic_timer_queue queue;

	apic_timer_queue_init(&queue);
	array[0].expires = 50;
	array[1].expires = 60;
	array[2].expires = 50;	/* behind its equal */
	array[3].expires = 49;
	array[4].expires = 0;
	KUNIT_EXPECT_TRUE(test, apic_timer_queue_add(&queue, &array[0]));
	KUNIT_EXPECT_FALSE(test, apic_timer_queue_add(&queue, &array[1]));
	KUNIT_EXPECT_FALSE(test, apic_timer_queue_add(&queue, &array[2]));
	KUNIT_EXPECT_TRUE(test, apic_timer_queue_add(&queue, &array[3]));
	KUNIT_EXPECT_TRUE(test, apic_timer_queue_add(&queue, &array[4]));
	check(test, &queue);
}

static void delete_test(struct kunit *test)
{
	static const u64 expires[] = { 0, 1, 2, 3, 4 };
	struct apic_timer_list *array = timers(test, 5);
	/* middle, head, tail, then two that are both head and tail */
	static const int victims[] = { 2, 0, 4, 1, 3 };
	static const int heads[] = { 0, 1, 1, 3, -1 };
	struct apic_timer_queue queue;
	unsigned int i, sorted;

	for (sorted = 0; sorted < 2; sorted++) {
		fill(test, &queue, array, expires, 5);
		if (sorted)
			settle(&queue);
		for (i = 0; i < 5; i++) {
			apic_timer_queue_del(&queue, &array[victims[i]]);
			check(test, &queue);
			KUNIT_EXPECT_EQ(test, queue.count, 4UL - i);
			KUNIT_EXPECT_PTR_EQ(test, queue.first,
					    heads[i] < 0 ? NULL :
							   &array[heads[i]]);
		}
	}
}

/* A queue, and its timers in an array that is sorted by other means. */
struct model {
	struct apic_timer_queue queue;
	struct apic_timer_list *sorted[400];
	unsigned int n;
};

static void model_add(struct kunit *test, struct model *model,
		      struct apic_timer_list *timer, u64 expires)
{
	struct apic_timer_list **sorted = model->sorted;
	unsigned int i = model->n++;

	for (; i && sorted[i - 1]->expires > expires; i--)
		sorted[i] = sorted[i - 1];
	sorted[i] = timer;
	timer->expires = expires;
	KUNIT_ASSERT_EQ(test, !i, apic_timer_queue_add(&model->queue, timer));
}

static void model_del(struct model *model, struct apic_timer_list *timer)
{
	struct apic_timer_list **sorted = model->sorted;
	unsigned int i = 0;

	apic_timer_queue_del(&model->queue, timer);
	while (sorted[i] != timer)
		i++;
	memmove(&sorted[i], &sorted[i + 1], (--model->n - i) * sizeof(*sorted));
}

/* While arrivals aren't sorted, model and queue agree on the head. */
static void model_check(struct kunit *test, struct model *model)
{
	KUNIT_ASSERT_EQ(test, model->queue.count, (unsigned long)model->n);
	KUNIT_ASSERT_PTR_EQ(test, model->queue.first,
			    model->n ? model->sorted[0] : NULL);
	check(test, &model->queue);
}

/* Once the arrivals are sorted, they agree on everything. */
static void model_settle(struct kunit *test, struct model *model)
{
	struct apic_timer_list *timer;
	unsigned int i;

	settle(&model->queue);
	timer = model->queue.first;
	for (i = 0; i < model->n; i++, timer = timer->next)
		KUNIT_ASSERT_PTR_EQ(test, timer, model->sorted[i]);
	KUNIT_ASSERT_PTR_EQ(test, timer, NULL);
}

/*
 * Random additions, deletions, changes and expiries, with few and with many
 * timers, with few and many of them equal, and sorted more or less often.
 */
static void random_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 400), *timer;
	struct model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	unsigned int step, size = 1, moments = 1, calm = 1;
	struct rnd_state rnd;
	bool in[400] = {};

	KUNIT_ASSERT_NOT_NULL(test, model);
	prandom_seed_state(&rnd, 1);
	apic_timer_queue_init(&model->queue);

#define RANDOM(n) (prandom_u32_state(&rnd) % (n))
	for (step = 0; step < 300000; step++) {
		unsigned int pick;

		if (step % 2000 == 0) {
			size = 1 + RANDOM(400);
			moments = 1 << RANDOM(12);
			calm = 1 << RANDOM(12);
		}
		pick = RANDOM(size);
		timer = &array[pick];
		if (!in[pick]) {
			model_add(test, model, timer, RANDOM(moments));
			in[pick] = true;
		} else if (RANDOM(2)) {
			model_del(model, timer);
			model_add(test, model, timer, RANDOM(moments));
		} else {
			if (RANDOM(2))
				timer = model->sorted[0];
			model_del(model, timer);
			in[timer - array] = false;
		}
		if (step % 16 == 0)
			model_check(test, model);
		KUNIT_ASSERT_PTR_EQ(test, model->queue.first,
				    model->n ? model->sorted[0] : NULL);
		if (RANDOM(calm) == 0)
			model_settle(test, model);
	}
#undef RANDOM

	/* The remaining timers are removed in order. */
	model_settle(test, model);
	while (model->n) {
		KUNIT_ASSERT_PTR_EQ(test, model->queue.first, model->sorted[0]);
		model_del(model, model->sorted[0]);
		check(test, &model->queue);
	}
}

/* A walk, with the timers that it must visit and has visited, by number. */
struct walk {
	struct apic_timer_queue_cursor cursor;
	bool under_way;
	u64 last;
	bool owed[400], seen[400];
};

static void walk_begin(struct walk *walk, const bool *in)
{
	*walk = (struct walk) { .under_way = true };
	memcpy(walk->owed, in, sizeof(walk->owed));
	apic_timer_queue_cursor_init(&walk->cursor);
}

static void walk_step(struct kunit *test, struct walk *walk,
		      struct apic_timer_queue *queue,
		      struct apic_timer_list *array, const bool *in)
{
	struct apic_timer_list *found[APIC_TIMER_QUEUE_GROUP];
	unsigned int i, n, pick;
	bool more;

	more = apic_timer_queue_walk(queue, &walk->cursor, found, &n);
	KUNIT_ASSERT_LE(test, n, (unsigned int)APIC_TIMER_QUEUE_GROUP);
	for (i = 0; i < n; i++) {
		pick = found[i] - array;
		KUNIT_ASSERT_TRUE(test, in[pick]);
		KUNIT_ASSERT_FALSE(test, walk->seen[pick]);
		KUNIT_ASSERT_GE(test, found[i]->expires, walk->last);
		walk->last = found[i]->expires;
		walk->seen[pick] = true;
		walk->owed[pick] = false;
	}
	if (more)
		return;
	for (i = 0; i < ARRAY_SIZE(walk->owed); i++)
		KUNIT_ASSERT_FALSE(test, walk->owed[i]);
	apic_timer_queue_walk_end(queue, &walk->cursor);
	walk->under_way = false;
}

#define WALKS	3

/*
 * Several walks at a time through a queue that changes in all possible ways.
 * Each walk visits the timers that were in the queue when it began and still
 * are, once, in order.
 */
static void walk_random_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 400), *timer;
	struct apic_timer_queue queue;
	unsigned int step, i, pick, size = 1, moments = 1, often = 1, walked = 0;
	struct walk *walks;
	struct rnd_state rnd;
	bool in[400] = {};

	walks = kunit_kcalloc(test, WALKS, sizeof(*walks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, walks);
	prandom_seed_state(&rnd, 3);
	apic_timer_queue_init(&queue);

#define RANDOM(n) (prandom_u32_state(&rnd) % (n))
	for (step = 0; step < 300000; step++) {
		if (step % 2000 == 0) {
			size = 1 + RANDOM(400);
			moments = 1 << RANDOM(12);
			often = 1 + RANDOM(20);
		}
		pick = RANDOM(size);
		timer = &array[pick];
		if (in[pick]) {
			/* Half of the time, the head, which expires. */
			if (RANDOM(2))
				timer = queue.first;
			apic_timer_queue_del(&queue, timer);
			pick = timer - array;
			in[pick] = false;
			/* A timer that is added again counts as a new one. */
			for (i = 0; i < WALKS; i++) {
				walks[i].owed[pick] = false;
				walks[i].seen[pick] = false;
			}
		} else {
			timer->expires = RANDOM(moments);
			apic_timer_queue_add(&queue, timer);
			in[pick] = true;
		}
		if (RANDOM(often) == 0) {
			struct walk *walk = &walks[RANDOM(WALKS)];

			if (!walk->under_way) {
				walk_begin(walk, in);
			} else if (RANDOM(50) == 0) {
				apic_timer_queue_walk_end(&queue,
							  &walk->cursor);
				walk->under_way = false;
			} else {
				walk_step(test, walk, &queue, array, in);
				walked += !walk->under_way;
			}
		}
		if (step % 16 == 0)
			check(test, &queue);
	}
#undef RANDOM
	KUNIT_EXPECT_GT(test, walked, 500U);
	for (i = 0; i < WALKS; i++)
		apic_timer_queue_walk_end(&queue, &walks[i].cursor);
	KUNIT_EXPECT_PTR_EQ(test, queue.cursors, NULL);
}

/* Timers are deleted as a walk visits them, of one moment and of many. */
static void walk_delete_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 400);
	struct apic_timer_list *found[APIC_TIMER_QUEUE_GROUP];
	struct apic_timer_queue_cursor cursor;
	struct apic_timer_queue queue;
	unsigned int i, n, keep, moments, gone;
	bool more;

	for (keep = 0; keep < 3; keep++) {
		for (moments = 1; moments <= 400; moments *= 20) {
			apic_timer_queue_init(&queue);
			for (i = 0; i < 400; i++) {
				array[i].expires = i * 7 % moments;
				apic_timer_queue_add(&queue, &array[i]);
			}
			apic_timer_queue_cursor_init(&cursor);
			gone = 0;
			do {
				more = apic_timer_queue_walk(&queue, &cursor,
							     found, &n);
				for (i = 0; i < n; i++) {
					if (keep && (found[i] - array) % (keep + 1))
						continue;
					apic_timer_queue_del(&queue, found[i]);
					gone++;
				}
				check(test, &queue);
			} while (more);
			apic_timer_queue_walk_end(&queue, &cursor);
			KUNIT_EXPECT_EQ(test, gone,
					DIV_ROUND_UP(400, keep + 1));
			KUNIT_EXPECT_EQ(test, queue.count, 400UL - gone);
		}
	}
}

/* Owners write to @expires of queued timers, which they must not: the queue does not notice. */
static void scribbled_test(struct kunit *test)
{
	struct apic_timer_list *found[APIC_TIMER_QUEUE_GROUP];
	struct apic_timer_list *array = timers(test, 400);
	struct apic_timer_queue_cursor cursor;
	unsigned int step, pick, n, seen;
	struct apic_timer_queue queue;
	struct rnd_state rnd;
	bool in[400] = {}, more;
	u64 last;

	prandom_seed_state(&rnd, 7);
	apic_timer_queue_init(&queue);
	for (step = 0; step < 100000; step++) {
		pick = prandom_u32_state(&rnd) % 400;
		if (in[pick])
			apic_timer_queue_del(&queue, &array[pick]);
		array[pick].expires = prandom_u32_state(&rnd) % 1000;
		if (!in[pick])
			apic_timer_queue_add(&queue, &array[pick]);
		in[pick] = !in[pick];
		if (step % 5 == 0 && queue.first)
			queue.first->expires = U64_MAX;
		array[prandom_u32_state(&rnd) % 400].expires = prandom_u32_state(&rnd) % 1000;
		if (step % 100)
			continue;
		check(test, &queue);
		apic_timer_queue_cursor_init(&cursor);
		seen = 0;
		last = 0;
		do {
			more = apic_timer_queue_walk(&queue, &cursor, found, &n);
			KUNIT_ASSERT_LE(test, n, (unsigned int)APIC_TIMER_QUEUE_GROUP);
			for (pick = 0; pick < n; pick++) {
				KUNIT_ASSERT_GE(test, found[pick]->key, last);
				last = found[pick]->key;
			}
			seen += n;
		} while (more);
		apic_timer_queue_walk_end(&queue, &cursor);
		KUNIT_ASSERT_EQ(test, (unsigned long)seen, queue.count);
	}
}

/* Each group is as large as allowed by the place where it grew, and none is larger. */
static void groups_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 2000);
	struct apic_timer_queue queue;
	unsigned int i, at;

	for (at = 0; at < 3; at++) {
		apic_timer_queue_init(&queue);
		for (i = 0; i < 2000; i++) {
			/* at the front, behind the head, at the end */
			array[i].expires = at ? i : 2000 - i;
			if (at == 1)
				array[i].expires = i ? 3000 - i : 0;
			apic_timer_queue_add(&queue, &array[i]);
			settle(&queue);
			if (i % 50 == 0)
				check(test, &queue);
		}
		/* Leave a few of each group, then let it grow again. */
		for (i = 0; i < 2000; i++)
			if (i % 7)
				apic_timer_queue_del(&queue, &array[i]);
		check(test, &queue);
		for (i = 0; i < 2000; i++)
			if (i % 7)
				apic_timer_queue_add(&queue, &array[i]);
		settle(&queue);
		check(test, &queue);
		KUNIT_EXPECT_EQ(test, queue.count, 2000UL);
	}
}

#define MANY	100000
#define BATCH	2000

/*
 * Random ones, and more of them added and deleted in between. How many timers an operation
 * touches is counted by tests/queue.
 */
static void many_test(struct kunit *test)
{
	struct apic_timer_list *array;
	struct apic_timer_queue queue;
	struct rnd_state rnd;
	unsigned int i;

	array = kvcalloc(MANY + BATCH, sizeof(*array), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, array);
	prandom_seed_state(&rnd, 2);
	apic_timer_queue_init(&queue);
	for (i = 0; i < MANY + BATCH; i++) {
		array[i].expires = prandom_u32_state(&rnd);
		apic_timer_queue_add(&queue, &array[i]);
	}
	check(test, &queue);
	for (i = MANY; i < MANY + BATCH; i++)
		apic_timer_queue_del(&queue, &array[i]);
	check(test, &queue);
	KUNIT_EXPECT_EQ(test, queue.count, (unsigned long)MANY);

	while (queue.first)
		apic_timer_queue_del(&queue, queue.first);
	check(test, &queue);
	kvfree(array);
}

/* Timers are added in order, as most are, and deleted from the end. */
static void ascending_test(struct kunit *test)
{
	struct apic_timer_queue queue;
	struct apic_timer_list *array;
	unsigned int i;

	array = kvcalloc(MANY, sizeof(*array), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, array);
	apic_timer_queue_init(&queue);
	for (i = 0; i < MANY; i++) {
		array[i].expires = i / 2;
		apic_timer_queue_add(&queue, &array[i]);
	}
	check(test, &queue);
	for (i = MANY; i--;)
		apic_timer_queue_del(&queue, &array[i]);
	check(test, &queue);
	KUNIT_EXPECT_PTR_EQ(test, queue.first, NULL);
	kvfree(array);
}

/*
 * An index that grew at its beginning, and one that grew at its end: timers are sorted
 * to the end of each gap between two others.
 */
static void gaps_test(struct kunit *test)
{
	struct apic_timer_queue queue;
	struct apic_timer_list *array;
	unsigned int i, descending;

	array = kvcalloc(2 * BATCH, sizeof(*array), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, array);
	for (descending = 0; descending < 2; descending++) {
		apic_timer_queue_init(&queue);
		for (i = 0; i < BATCH; i++) {
			array[i].expires = descending ? BATCH - i : i + 1;
			apic_timer_queue_add(&queue, &array[i]);
		}
		while (apic_timer_queue_sort_one(&queue))
			;
		for (; i < 2 * BATCH; i++) {
			array[i].expires = array[i - BATCH].expires;
			apic_timer_queue_add(&queue, &array[i]);
			while (apic_timer_queue_sort_one(&queue))
				;
			KUNIT_ASSERT_PTR_EQ(test, array[i].prev, &array[i - BATCH]);
		}
		check(test, &queue);
	}
	kvfree(array);
}

#define MILLION	1000000

/* A million timers of one moment: all steps of a walk take the same time. */
static void million_equal_test(struct kunit *test)
{
	struct apic_timer_list *found[APIC_TIMER_QUEUE_GROUP], *array, *timer;
	struct apic_timer_queue_cursor cursor;
	struct apic_timer_queue queue;
	unsigned int i, n, seen = 0;
	bool more, ordered = true;

	array = kvcalloc(MILLION, sizeof(*array), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, array);
	apic_timer_queue_init(&queue);
	for (i = 0; i < MILLION; i++) {
		array[i].expires = 1;
		apic_timer_queue_add(&queue, &array[i]);
	}
	check(test, &queue);

	apic_timer_queue_cursor_init(&cursor);
	do {
		more = apic_timer_queue_walk(&queue, &cursor, found, &n);
		for (i = 0; i < n; i++)
			ordered &= found[i] == &array[seen++];
	} while (more);
	apic_timer_queue_walk_end(&queue, &cursor);
	KUNIT_EXPECT_TRUE(test, ordered);
	KUNIT_EXPECT_EQ(test, seen, (unsigned int)MILLION);

	for (i = 0; (timer = queue.first); i++) {
		ordered &= timer == &array[i];
		apic_timer_queue_del(&queue, timer);
	}
	KUNIT_EXPECT_TRUE(test, ordered);
	check(test, &queue);
	kvfree(array);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(empty_test),
	KUNIT_CASE(order_test),
	KUNIT_CASE(equal_fifo_test),
	KUNIT_CASE(new_head_test),
	KUNIT_CASE(delete_test),
	KUNIT_CASE(random_test),
	KUNIT_CASE(walk_random_test),
	KUNIT_CASE(walk_delete_test),
	KUNIT_CASE(scribbled_test),
	KUNIT_CASE(groups_test),
	KUNIT_CASE(many_test),
	KUNIT_CASE(ascending_test),
	KUNIT_CASE(gaps_test),
	KUNIT_CASE(million_equal_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_queue",
	.test_cases = cases,
};

kunit_test_suite(suite);
