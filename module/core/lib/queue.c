// SPDX-License-Identifier: GPL-2.0
/*
 * The less frequent paths of the queue: sort arrivals, split groups, find the next
 * head.
 */
#include <linux/bitops.h>
#include <linux/limits.h>

#include "lib/queue.h"
#include "tsc/tsc.h"

#define node_timer(n) rb_entry(n, struct apic_timer_list, node)

/* A place in the index, and the leader before it. */
struct place {
	struct rb_node *parent, **link;
	struct apic_timer_list *leader;
};

/**
 * apic_timer_queue_init() - make a queue empty
 * @queue:	the queue
 */
void apic_timer_queue_init(struct apic_timer_queue *queue)
{
	*queue = (struct apic_timer_queue) {
		.index = RB_ROOT_CACHED,
		.soonest = U64_MAX,
		.room = APIC_TIMER_QUEUE_ARRIVALS,
	};
}

/*
 * Split a group that is too large by its count. Deletions are not counted, so the
 * group may actually be small; then it stays. A group is halved, except for the
 * last one: it grows at its end and is left full, so that timers added in order
 * make few groups.
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
	rb_insert_color_cached(&middle->node, &queue->index, !place->leader);
	return left;
}

static struct place before_first(struct apic_timer_queue *queue)
{
	struct rb_node *first = rb_first_cached(&queue->index);

	return (struct place) {
		.parent = first,
		.link = first ? &first->rb_left : &queue->index.rb_root.rb_node,
	};
}

static struct place left_of(struct rb_node *node, struct rb_node *prev)
{
	return (struct place) { node, &node->rb_left, node_timer(prev) };
}

static struct place right_of(struct rb_node *node)
{
	return (struct place) { node, &node->rb_right, node_timer(node) };
}

static bool is_after(u64 key, const struct rb_node *node)
{
	return key >= node_timer(node)->key;
}

/*
 * Find the place that is after all leaders that do not expire later.
 *
 * Where timers were added in order, the path from the root to that end is twice as
 * long as others, and most searches are for a place near an end. So go down from the
 * root and up from the end at the same time, until one of them has to leave that path:
 * with cold caches their misses overlap.
 */
static struct place search(struct apic_timer_queue *queue, u64 key)
{
	struct rb_node *down = queue->index.rb_root.rb_node, *up, *above;
	struct place place;

	if (!down)
		return before_first(queue);
	if (is_after(key, down)) {
		up = &queue->last->node;
		if (is_after(key, up))
			return right_of(up);
		for (;; up = above, down = down->rb_right) {
			above = rb_parent(up);
			if (is_after(key, above)) {
				place = left_of(up, above);
				break;
			}
			if (!is_after(key, down->rb_right)) {
				place = left_of(down->rb_right, down);
				break;
			}
		}
	} else {
		up = rb_first_cached(&queue->index);
		if (!is_after(key, up))
			return before_first(queue);
		for (;; up = above, down = down->rb_left) {
			above = rb_parent(up);
			if (!is_after(key, above)) {
				place = right_of(up);
				break;
			}
			if (is_after(key, down->rb_left)) {
				place = right_of(down->rb_left);
				break;
			}
		}
	}
	while (*place.link) {
		place.parent = *place.link;
		if (is_after(key, place.parent))
			place = right_of(place.parent);
		else
			place.link = &place.parent->rb_left;
	}
	return place;
}

/**
 * apic_timer_queue_split_unindexed() - split the timers before the first leader
 * @queue:	not empty, its first timer not a leader
 *
 * Rarely needed: not inlined, so that callers need no stack frame.
 */
noinline void apic_timer_queue_split_unindexed(struct apic_timer_queue *queue)
{
	struct place place = before_first(queue);

	queue->unindexed = split(queue, queue->first, &place);
}

/* Insert a timer into the sorted list. It is in no list, and not earlier than the head. */
static void sort(struct apic_timer_queue *queue, struct apic_timer_list *timer)
{
	struct place place = search(queue, timer->key);
	struct apic_timer_list *leader = place.leader, *prev, *next;
	u64 key = timer->key;

	/* The next leader expires later, so this ends within the group. */
	prev = leader ?: queue->first;
	while ((next = prev->next) && next->key <= key)
		prev = next;

	timer->group = 0;
	timer->prev = prev;
	timer->next = next;
	prev->next = timer;
	if (next)
		next->prev = timer;

	if (!leader) {
		if (++queue->unindexed > APIC_TIMER_QUEUE_GROUP)
			queue->unindexed = split(queue, queue->first, &place);
	} else if (++leader->group > APIC_TIMER_QUEUE_GROUP) {
		leader->group = split(queue, leader, &place);
	}
}

/* Find the slot with the oldest arrival among @slots. */
static unsigned int oldest(const struct apic_timer_queue *queue, u32 slots)
{
	return (queue->slot + __ffs(ror32(slots, queue->slot))) %
	       APIC_TIMER_QUEUE_ARRIVALS;
}

/**
 * apic_timer_queue_sort_one() - sort an arrival
 * @queue:	the queue
 *
 * Take the oldest, so that equal timers keep the order of their arrival.
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
 * apic_timer_queue_make_room() - spare the next addition from sorting another
 * timer
 * @queue:	the queue
 *
 * For callers whose addition is only one of several steps under lock.
 */
void apic_timer_queue_make_room(struct apic_timer_queue *queue)
{
	if (!queue->room && queue->arrived & 1U << queue->slot)
		apic_timer_queue_sort_one(queue);
}

/**
 * apic_timer_queue_arrive_late() - make a timer an arrival when slots may be full
 * @queue:	the queue, whose @room is 0
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
	/* Slots are in the order of arrival: this one has the oldest. */
	queue->room = 1;
	apic_timer_queue_arrive(queue, timer);
	sort(queue, other);
}

/* Make an arrival the head; no other arrival expires before @soonest. */
static __always_inline void lead_off(struct apic_timer_queue *queue,
				     unsigned int slot, u64 soonest)
{
	queue->soonest = soonest;
	apic_timer_queue_leave_slot(queue, slot);
	apic_timer_queue_push(queue, queue->arrivals[slot]);
}

/* Of several arrivals with the earliest expiry, make the oldest the head. */
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
 * Make the earliest arrival the head if no sorted timer is as early; of equal ones
 * the oldest. There is at least one arrival.
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
	if (queue->first && queue->first->key <= least)
		return;
	if (likely(second != least))
		lead_off(queue, earliest, second);
	else
		refill_equal(queue);
}

/* Remove the head, which is not in the index, and find the next. */
static __always_inline void pop(struct apic_timer_queue *queue)
{
	struct apic_timer_list *next = queue->first->next;

	queue->unindexed--;
	queue->first = next;
	if (next)
		next->prev = NULL;
	/* Among equal expiries, sorted timers arrived earlier. */
	if (!queue->arrived)
		queue->soonest = U64_MAX;
	else if (!next || next->key > queue->soonest)
		refill(queue);
}

/**
 * apic_timer_queue_del_first() - remove the head and find the next
 * @queue:	not empty, its head not in the index; the next may be an arrival
 */
void apic_timer_queue_del_first(struct apic_timer_queue *queue)
{
	pop(queue);
}

/* Remove from the index a leader with no other timer in its group. */
static __always_inline void erase(struct apic_timer_queue *queue,
				  struct apic_timer_list *leader)
{
	struct rb_node *prev;

	if (queue->last == leader) {
		prev = rb_prev(&leader->node);
		queue->last = prev ? node_timer(prev) : NULL;
	}
	rb_erase_cached(&leader->node, &queue->index);
}

/* Remove a leader that is not the head, or is the head while the next timer has to lead. */
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
			rb_replace_node_cached(&timer->node, &next->node,
					       &queue->index);
			return;
		}
	}
	erase(queue, timer);
}

/*
 * Remove a leader while walks are in progress. Walks that would continue with it
 * continue with the next timer, which then leads, even if it is the head.
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
	if (queue->arrived && (!next || next->key > queue->soonest))
		refill(queue);
}

/**
 * apic_timer_queue_del_leader() - remove a timer that is in the index
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
		/* Its group has become the group without a leader. */
		queue->unindexed = timer->group;
		erase(queue, timer);
		pop(queue);
	}
}

/**
 * apic_timer_queue_cursor_init() - set a cursor to the beginning of a queue
 * @cursor:	the cursor, not used by a walk
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
 * @cursor:	position of the walk
 * @timers:	filled in: the timers of this step, in the order of expiry. Room
 *		for APIC_TIMER_QUEUE_GROUP.
 * @n:		filled in: their number, which may be 0
 *
 * The time of a step is bounded, for any number of timers and any expiries.
 * Between steps the queue may be unlocked and changed. The walk visits once each
 * timer that has been in the queue since it began; it may or may not visit timers
 * that were added since. The timers in @timers may be deleted.
 *
 * Return: true if there are more steps. End with apic_timer_queue_walk_end().
 */
bool apic_timer_queue_walk(struct apic_timer_queue *queue,
			   struct apic_timer_queue_cursor *cursor,
			   struct apic_timer_list **timers, unsigned int *n)
{
	struct apic_timer_list *timer = cursor->next;

	*n = 0;
	if (!cursor->registered) {
		/* Oldest first: after that, all arrivals of the beginning are sorted. */
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
 * apic_timer_queue_walk_end() - end a walk, at any position
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

static void shift_timer(struct apic_timer_list *timer, s64 shift)
{
	timer->key = apic_timer_tsc_shift(timer->key, shift);
	timer->expires = timer->key;
}

/**
 * apic_timer_queue_shift() - shift the expiry of all timers
 * @queue:	the queue
 * @shift:	TSC cycles, see apic_timer_tsc_shift()
 *
 * Their order is kept: expiries that saturate become equal.
 */
void apic_timer_queue_shift(struct apic_timer_queue *queue, s64 shift)
{
	struct apic_timer_list *timer;
	unsigned long left = queue->arrived;
	unsigned int slot;

	for (timer = queue->first; timer; timer = timer->next)
		shift_timer(timer, shift);
	for_each_set_bit(slot, &left, APIC_TIMER_QUEUE_ARRIVALS) {
		timer = queue->arrivals[slot];
		shift_timer(timer, shift);
		queue->expires[slot] = timer->key;
	}
	queue->soonest = apic_timer_tsc_shift(queue->soonest, shift);
}
