// SPDX-License-Identifier: GPL-2.0
/*
 * The less frequent paths of the queue: sorting, splitting groups, finding the
 * next head.
 */
#include <linux/bitops.h>
#include <linux/limits.h>

#include "lib/queue.h"
#include "tsc/tsc.h"

#define node_timer(n) rb_entry(n, struct apic_timer_list, node)

/* A place in the index. */
struct place {
	struct rb_node *parent, **link;
};

/**
 * apic_timer_queue_init() - make a queue empty
 * @queue:	the queue
 */
void apic_timer_queue_init(struct apic_timer_queue *queue)
{
	*queue = (struct apic_timer_queue) {
		.index = RB_ROOT,
		.soonest = U64_MAX,
		.room = APIC_TIMER_QUEUE_ARRIVALS,
	};
}

/*
 * Split a group that has grown, if it has indeed: nobody counts the timers that
 * are deleted from it. In halves, but for the last group: it grows at its end,
 * and is left full, so that timers added in order make few groups.
 *
 * Return: number of timers left in the group that begins at @timer. The rest
 * has become a group of its own, at @place in the index.
 */
static unsigned int split(struct apic_timer_queue *queue,
			  struct apic_timer_list *timer,
			  const struct place *place)
{
	struct apic_timer_list *middle = timer, *end;
	unsigned int size = 1, left;

	for (end = timer->next; end && !end->group; end = end->next)
		if (++size & 1)
			middle = middle->next;
	if (size <= APIC_TIMER_QUEUE_GROUP / 2)
		return size;

	left = (size + 1) / 2;
	middle = middle->next;
	if (!end) {
		left = size - 1;
		while (middle->next)
			middle = middle->next;
		queue->last = middle;
	}
	middle->group = size - left;
	rb_link_node(&middle->node, place->parent, place->link);
	rb_insert_color(&middle->node, &queue->index);
	return left;
}

/**
 * apic_timer_queue_split_lead() - halve what precedes the first leader
 * @queue:	not empty, its first timer not a leader
 *
 * Seldom needed: not inlined, so that who calls it needs no stack frame.
 */
noinline void apic_timer_queue_split_lead(struct apic_timer_queue *queue)
{
	struct place place = { .link = &queue->index.rb_node };
	struct apic_timer_list *leader = queue->first;

	while (leader && !leader->group)
		leader = leader->next;
	/* The first of the index: nothing is on its left. */
	if (leader)
		place = (struct place) { &leader->node, &leader->node.rb_left };
	queue->lead = split(queue, queue->first, &place);
}

/* Sort a timer in. It has been in no list, and isn't the head. */
static void sort(struct apic_timer_queue *queue, struct apic_timer_list *timer)
{
	struct apic_timer_list *leader = queue->last, *prev, *next;
	struct place place = { .link = &queue->index.rb_node };
	u64 expires = timer->expires;

	if (leader && expires >= leader->expires)
		place = (struct place) { &leader->node, &leader->node.rb_right };
	else
		leader = NULL;
	while (*place.link) {
		place.parent = *place.link;
		if (expires < node_timer(place.parent)->expires) {
			place.link = &place.parent->rb_left;
		} else {
			leader = node_timer(place.parent);
			place.link = &place.parent->rb_right;
		}
	}

	/* The next leader expires later, so that this ends in the group. */
	prev = leader ?: queue->first;
	while ((next = prev->next) && next->expires <= expires)
		prev = next;

	timer->group = 0;
	timer->prev = prev;
	timer->next = next;
	prev->next = timer;
	if (next)
		next->prev = timer;

	if (!leader) {
		if (++queue->lead > APIC_TIMER_QUEUE_GROUP)
			queue->lead = split(queue, queue->first, &place);
	} else if (++leader->group > APIC_TIMER_QUEUE_GROUP) {
		leader->group = split(queue, leader, &place);
	}
}

/* Of these slots, the one whose arrival is the oldest. */
static unsigned int oldest(const struct apic_timer_queue *queue, u32 slots)
{
	return (queue->slot + __ffs(ror32(slots, queue->slot))) %
	       APIC_TIMER_QUEUE_ARRIVALS;
}

/**
 * apic_timer_queue_sort_one() - sort an arrival
 * @queue:	the queue
 *
 * The oldest, so that equal timers are sorted as they have arrived.
 *
 * Return: false if there is none.
 */
bool apic_timer_queue_sort_one(struct apic_timer_queue *queue)
{
	unsigned int slot;

	if (!queue->arrived)
		return false;
	slot = oldest(queue, queue->arrived);
	queue->arrived &= ~(1U << slot);
	if (!queue->arrived)
		queue->soonest = U64_MAX;
	sort(queue, queue->arrivals[slot]);
	return true;
}

/**
 * apic_timer_queue_arrive_late() - let a timer wait when there may be no room
 * @queue:	the queue, whose room is 0
 * @timer:	not earlier than the head
 */
void apic_timer_queue_arrive_late(struct apic_timer_queue *queue,
				  struct apic_timer_list *timer)
{
	unsigned int slot = queue->slot;
	struct apic_timer_list *other = queue->arrivals[slot];
	u32 taken = ror32(queue->arrived, slot);

	queue->room = taken ? __ffs(taken) : APIC_TIMER_QUEUE_ARRIVALS;
	if (queue->room) {
		apic_timer_queue_arrive(queue, timer);
		return;
	}
	/* The slot is the oldest's, as slots are in that order. */
	queue->room = 1;
	apic_timer_queue_arrive(queue, timer);
	sort(queue, other);
}

/* An arrival becomes the head, with no other before @soonest. */
static __always_inline void lead_off(struct apic_timer_queue *queue,
				     unsigned int slot, u64 soonest)
{
	queue->soonest = soonest;
	apic_timer_queue_leave_slot(queue, slot);
	apic_timer_queue_push(queue, queue->arrivals[slot]);
}

/* Of equal arrivals, which are the earliest, the oldest becomes the head. */
static noinline void refill_equal(struct apic_timer_queue *queue)
{
	u64 least = queue->soonest;
	u32 left, equal = 0;

	for (left = queue->arrived; left; left &= left - 1)
		if (queue->expires[__ffs(left)] == least)
			equal |= left & -left;
	lead_off(queue, oldest(queue, equal), least);
}

/*
 * Let the earliest arrival be the head if nothing sorted is as early; of equal
 * ones the oldest. There is one.
 */
static noinline void refill(struct apic_timer_queue *queue)
{
	u32 left = queue->arrived;
	unsigned int slot = __ffs(left), earliest = slot;
	u64 least = queue->expires[slot], second = U64_MAX, expires;

	while ((left &= left - 1)) {
		slot = __ffs(left);
		expires = queue->expires[slot];
		if (expires < least) {
			second = least;
			least = expires;
			earliest = slot;
		} else if (expires < second) {
			second = expires;
		}
	}

	queue->soonest = least;
	if (queue->first && queue->first->expires <= least)
		return;
	if (likely(second != least))
		lead_off(queue, earliest, second);
	else
		refill_equal(queue);
}

/* Take out the head, which is not in the index, and find the next. */
static __always_inline void pop(struct apic_timer_queue *queue)
{
	struct apic_timer_list *next = queue->first->next;

	queue->lead--;
	queue->first = next;
	if (next)
		next->prev = NULL;
	/* At the same moment, what is sorted is what came first. */
	if (!queue->arrived)
		queue->soonest = U64_MAX;
	else if (!next || next->expires > queue->soonest)
		refill(queue);
}

/**
 * apic_timer_queue_del_first() - take out the head and find the next
 * @queue:	not empty, its head not in the index; the next may be an arrival
 */
void apic_timer_queue_del_first(struct apic_timer_queue *queue)
{
	pop(queue);
}

/* Take a leader out of the index that has no other timer in its group. */
static __always_inline void erase(struct apic_timer_queue *queue,
				  struct apic_timer_list *leader)
{
	struct rb_node *prev;

	if (queue->last == leader) {
		prev = rb_prev(&leader->node);
		queue->last = prev ? node_timer(prev) : NULL;
	}
	rb_erase(&leader->node, &queue->index);
}

/* Take out a leader that isn't the head; or is, and the next is to lead. */
static __always_inline void del_leader(struct apic_timer_queue *queue,
				       struct apic_timer_list *timer)
{
	struct apic_timer_list *prev = timer->prev, *next = timer->next;

	if (prev)
		prev->next = next;
	if (next) {
		next->prev = prev;
		if (!next->group) {
			next->group = timer->group - 1;
			if (queue->last == timer)
				queue->last = next;
			rb_replace_node(&timer->node, &next->node,
					&queue->index);
			return;
		}
	}
	erase(queue, timer);
}

/*
 * Take out a leader while walks are under way. Those that would go on with it
 * go on with the next: which leads, and does so even if it is the head.
 */
static noinline void del_leader_on_walk(struct apic_timer_queue *queue,
					struct apic_timer_list *timer)
{
	struct apic_timer_queue_cursor *cursor;
	struct apic_timer_list *next = timer->next;

	for (cursor = queue->cursors; cursor; cursor = cursor->link)
		if (cursor->next == timer)
			cursor->next = next;
	del_leader(queue, timer);
	if (timer->prev)
		return;
	queue->first = next;
	if (queue->arrived && (!next || next->expires > queue->soonest))
		refill(queue);
}

/**
 * apic_timer_queue_del_leader() - take out a timer that is in the index
 * @queue:	the queue
 * @timer:	a leader
 */
void apic_timer_queue_del_leader(struct apic_timer_queue *queue,
				 struct apic_timer_list *timer)
{
	if (unlikely(queue->cursors)) {
		del_leader_on_walk(queue, timer);
	} else if (timer->prev) {
		del_leader(queue, timer);
	} else {
		/* Its group has none before it now. */
		queue->lead = timer->group;
		erase(queue, timer);
		pop(queue);
	}
}

/**
 * apic_timer_queue_cursor_init() - go to the beginning of a queue
 * @cursor:	the cursor, in no walk
 */
void apic_timer_queue_cursor_init(struct apic_timer_queue_cursor *cursor)
{
	*cursor = (struct apic_timer_queue_cursor) {
		.unsorted = APIC_TIMER_QUEUE_ARRIVALS,
	};
}

/**
 * apic_timer_queue_walk() - take the next step of a walk along a queue
 * @queue:	the queue
 * @cursor:	how far the walk has come
 * @timers:	filled in: the timers of this step, in the order of expiry. Room
 *		for APIC_TIMER_QUEUE_GROUP.
 * @n:		filled in: their number, which may be 0
 *
 * A step takes a bounded time, however many timers there are and whatever their
 * expiries. Between steps the queue may be unlocked, and anything done to it:
 * the walk comes to each timer once that is in the queue from its beginning to
 * then. Those added meanwhile may be seen or not. What is in @timers may be
 * deleted.
 *
 * Return: true if there are more steps. Ended by apic_timer_queue_walk_end().
 */
bool apic_timer_queue_walk(struct apic_timer_queue *queue,
			   struct apic_timer_queue_cursor *cursor,
			   struct apic_timer_list **timers, unsigned int *n)
{
	struct apic_timer_list *timer = cursor->next;

	*n = 0;
	if (!cursor->registered) {
		/* In the order of arrival: then all of the beginning are. */
		if (cursor->unsorted && apic_timer_queue_sort_one(queue)) {
			cursor->unsorted--;
			return true;
		}
		cursor->registered = true;
		cursor->link = queue->cursors;
		queue->cursors = cursor;
		timer = queue->first;
	}
	if (!timer)
		return false;
	do {
		timers[(*n)++] = timer;
		timer = timer->next;
	} while (timer && !timer->group);
	cursor->next = timer;
	return timer;
}

/**
 * apic_timer_queue_walk_end() - end a walk, wherever it is
 * @queue:	the queue
 * @cursor:	initialised
 */
void apic_timer_queue_walk_end(struct apic_timer_queue *queue,
			       struct apic_timer_queue_cursor *cursor)
{
	struct apic_timer_queue_cursor **link = &queue->cursors;

	if (!cursor->registered)
		return;
	while (*link != cursor)
		link = &(*link)->link;
	*link = cursor->link;
	cursor->registered = false;
}

/**
 * apic_timer_queue_shift() - move all timers in time
 * @queue:	the queue
 * @shift:	TSC cycles, see apic_timer_tsc_shift()
 *
 * Their order stays: what saturates becomes equal, never reversed.
 */
void apic_timer_queue_shift(struct apic_timer_queue *queue, s64 shift)
{
	struct apic_timer_list *timer;
	unsigned long left = queue->arrived;
	unsigned int slot;

	for (timer = queue->first; timer; timer = timer->next)
		timer->expires = apic_timer_tsc_shift(timer->expires, shift);
	for_each_set_bit(slot, &left, APIC_TIMER_QUEUE_ARRIVALS) {
		timer = queue->arrivals[slot];
		timer->expires = apic_timer_tsc_shift(timer->expires, shift);
		queue->expires[slot] = timer->expires;
	}
	queue->soonest = apic_timer_tsc_shift(queue->soonest, shift);
}
