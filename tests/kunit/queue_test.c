// SPDX-License-Identifier: GPL-2.0
/*
 * The queue: order, deletion, search, and what insertion costs.
 */
#include <kunit/test.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/prandom.h>

#include "queue.h"

/* Depth of a node's subtree; -1 when the index is not in the list's order. */
static int walk(struct rb_node *node, struct apic_timer_list **next)
{
	int left, right;

	if (!node)
		return 0;
	left = walk(node->rb_left, next);
	if (left < 0 || *next != rb_entry(node, struct apic_timer_list, node))
		return -1;
	*next = (*next)->next;
	right = walk(node->rb_right, next);
	return right < 0 ? -1 : 1 + max(left, right);
}

/* The list is ordered and linked both ways, and the index has its order. */
static void check(struct kunit *test, const struct apic_timer_queue *queue)
{
	struct apic_timer_list *timer, *prev = NULL, *next = queue->first;
	unsigned long count = 0;
	int depth;

	for (timer = queue->first; timer; prev = timer, timer = timer->next) {
		KUNIT_ASSERT_PTR_EQ(test, timer->prev, prev);
		if (prev)
			KUNIT_ASSERT_LE(test, prev->expires, timer->expires);
		KUNIT_ASSERT_LE(test, ++count, queue->count);
	}
	KUNIT_ASSERT_PTR_EQ(test, queue->last, prev);
	KUNIT_ASSERT_EQ(test, queue->count, count);

	depth = walk(queue->index.rb_node, &next);
	KUNIT_ASSERT_GE(test, depth, 0);
	KUNIT_ASSERT_PTR_EQ(test, next, NULL);
	KUNIT_ASSERT_LE(test, depth, 2 * (int)order_base_2(count + 1));
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
	KUNIT_EXPECT_PTR_EQ(test, apic_timer_queue_find(&queue, 0), NULL);
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

	/* Three moments by turns: each keeps the order of its own. */
	apic_timer_queue_init(&queue);
	for (i = 0; i < 300; i++) {
		array[i].expires = i % 3;
		apic_timer_queue_add(&queue, &array[i]);
	}
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
	/* middle, head, tail, then two that are both */
	static const int victims[] = { 2, 0, 4, 1, 3 };
	struct apic_timer_list *timer;
	struct apic_timer_queue queue;
	unsigned int i, j;

	fill(test, &queue, array, expires, 5);
	for (i = 0; i < 5; i++) {
		apic_timer_queue_del(&queue, &array[victims[i]]);
		check(test, &queue);
		KUNIT_EXPECT_EQ(test, queue.count, 4UL - i);
		KUNIT_EXPECT_PTR_EQ(test, array[victims[i]].next, NULL);
		KUNIT_EXPECT_PTR_EQ(test, array[victims[i]].prev, NULL);
		for (timer = queue.first; timer; timer = timer->next)
			for (j = 0; j <= i; j++)
				KUNIT_ASSERT_PTR_NE(test, timer,
						    &array[victims[j]]);
	}
	KUNIT_EXPECT_PTR_EQ(test, queue.first, NULL);
	KUNIT_EXPECT_PTR_EQ(test, queue.last, NULL);
}

static void find_test(struct kunit *test)
{
	static const u64 expires[] = { 10, 20, 20, 20, 30, U64_MAX };
	struct apic_timer_list *array = timers(test, 6);
	struct apic_timer_queue queue;

	fill(test, &queue, array, expires, 6);
#define FIND(at) ((int)(apic_timer_queue_find(&queue, at) - array))
	KUNIT_EXPECT_EQ(test, FIND(0), 0);
	KUNIT_EXPECT_EQ(test, FIND(10), 0);
	KUNIT_EXPECT_EQ(test, FIND(11), 1);
	KUNIT_EXPECT_EQ(test, FIND(20), 1);
	KUNIT_EXPECT_EQ(test, FIND(21), 4);
	KUNIT_EXPECT_EQ(test, FIND(31), 5);
	KUNIT_EXPECT_EQ(test, FIND(U64_MAX), 5);
#undef FIND
	apic_timer_queue_del(&queue, &array[5]);
	KUNIT_EXPECT_PTR_EQ(test, apic_timer_queue_find(&queue, 31), NULL);
}

/* Random additions and deletions beside an array kept in order by hand. */
static void random_test(struct kunit *test)
{
	struct apic_timer_list *array = timers(test, 96), *timer;
	struct apic_timer_list *sorted[96];
	unsigned int n = 0, step, pick, i;
	struct apic_timer_queue queue;
	struct rnd_state rnd;
	bool in[96] = {};

	prandom_seed_state(&rnd, 1);
	apic_timer_queue_init(&queue);

	for (step = 0; step < 20000; step++) {
		pick = prandom_u32_state(&rnd) % 96;
		timer = &array[pick];
		if (in[pick]) {
			apic_timer_queue_del(&queue, timer);
			for (i = 0; sorted[i] != timer; i++)
				;
			memmove(&sorted[i], &sorted[i + 1],
				(--n - i) * sizeof(*sorted));
		} else {
			timer->expires = prandom_u32_state(&rnd) % 40;
			for (i = n; i && sorted[i - 1]->expires > timer->expires;
			     i--)
				;
			memmove(&sorted[i + 1], &sorted[i],
				(n++ - i) * sizeof(*sorted));
			sorted[i] = timer;
			KUNIT_ASSERT_EQ(test, i == 0,
					apic_timer_queue_add(&queue, timer));
		}
		in[pick] = !in[pick];

		check(test, &queue);
		for (i = 0, timer = queue.first; i < n; i++, timer = timer->next)
			KUNIT_ASSERT_PTR_EQ(test, timer, sorted[i]);
		KUNIT_ASSERT_EQ(test, queue.count, (unsigned long)n);

		pick = prandom_u32_state(&rnd) % 42;
		for (i = 0; i < n && sorted[i]->expires < pick; i++)
			;
		KUNIT_ASSERT_PTR_EQ(test, apic_timer_queue_find(&queue, pick),
				    i < n ? sorted[i] : NULL);
	}
}

#define MANY	100000
#define BATCH	2000

/* Shortest time, of several, to add and delete BATCH timers somewhere. */
static u64 batch_ns(struct apic_timer_queue *queue,
		    struct apic_timer_list *batch)
{
	u64 best = U64_MAX, began;
	unsigned int round, i;

	for (round = 0; round < 7; round++) {
		began = ktime_get_ns();
		for (i = 0; i < BATCH; i++)
			apic_timer_queue_add(queue, &batch[i]);
		for (i = 0; i < BATCH; i++)
			apic_timer_queue_del(queue, &batch[i]);
		best = min(best, ktime_get_ns() - began);
	}
	return best;
}

/*
 * With 100 times as many timers pending, an insertion that walks the list
 * takes 100 times as long, and one that descends the index less than twice as
 * long but for the caches. The limit is far from both.
 */
static void many_test(struct kunit *test)
{
	struct apic_timer_list *array, *batch;
	struct apic_timer_queue queue;
	struct rnd_state rnd;
	u64 few, many;
	unsigned int i;

	array = kvcalloc(MANY + BATCH, sizeof(*array), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, array);
	batch = array + MANY;
	prandom_seed_state(&rnd, 2);
	for (i = 0; i < MANY + BATCH; i++)
		array[i].expires = prandom_u32_state(&rnd);

	apic_timer_queue_init(&queue);
	for (i = 0; i < MANY / 100; i++)
		apic_timer_queue_add(&queue, &array[i]);
	few = batch_ns(&queue, batch);
	for (; i < MANY; i++)
		apic_timer_queue_add(&queue, &array[i]);
	many = batch_ns(&queue, batch);

	kunit_info(test, "add and delete: %llu ns with %u pending, %llu ns with %u",
		   few / BATCH, MANY / 100, many / BATCH, MANY);
	KUNIT_EXPECT_LT(test, many, 25 * few);
	check(test, &queue);
	KUNIT_EXPECT_EQ(test, queue.count, (unsigned long)MANY);

	while (queue.first)
		apic_timer_queue_del(&queue, queue.first);
	check(test, &queue);
	kvfree(array);
}

/* Timers added in order, as most are, go to the end without a search. */
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
	KUNIT_EXPECT_PTR_EQ(test, queue.last, &array[MANY - 1]);
	while (queue.first)
		apic_timer_queue_del(&queue, queue.last);
	check(test, &queue);
	kvfree(array);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(empty_test),
	KUNIT_CASE(order_test),
	KUNIT_CASE(equal_fifo_test),
	KUNIT_CASE(new_head_test),
	KUNIT_CASE(delete_test),
	KUNIT_CASE(find_test),
	KUNIT_CASE(random_test),
	KUNIT_CASE(many_test),
	KUNIT_CASE(ascending_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_queue",
	.test_cases = cases,
};

kunit_test_suite(suite);
