/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QUEUE_H
#define _APIC_TIMER_QUEUE_H

#include <linux/apic_timer.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/limits.h>

/* Maximum number of unsorted arrivals: the width of a bit mask. */
#define APIC_TIMER_QUEUE_ARRIVALS	32
/*
 * Maximum size of a group, of which one timer is in the index. With larger ones a cold search
 * walks longer; with smaller ones more deletions change the index.
 */
#define APIC_TIMER_QUEUE_GROUP		8

/* &apic_timer_list.group of an arrival is this plus its slot: only arrivals are negative. */
#define APIC_TIMER_QUEUE_ARRIVED	SHRT_MIN

/**
 * struct apic_timer_queue - timers in the order of their expiry
 * @first:	the head, which expires first; NULL when the queue is empty
 * @index:	rbtree over the leaders of the list's groups
 * @unindexed:	number of timers in the list before the first leader, or more
 * @arrived:	bit mask of the slots in use
 * @soonest:	no arrival expires before this
 * @slot:	slot of the next arrival. Cyclically, from here on, the slots are
 *		in the order of arrival.
 * @room:	number of free slots from @slot on, or less
 * @count:	number of timers
 * @cursors:	walks in progress
 * @last:	the last leader, or NULL: timers are often added in order
 * @expires:	expiry of the arrival in each slot
 * @arrivals:	the arrivals
 *
 * Most timers are timeouts, deleted before they expire, and sorting them would be
 * wasted work. It is therefore deferred: only the head of the queue is always
 * known. Any other new timer becomes an arrival, and is sorted when it becomes the
 * head or when its slot is needed. Copies of the arrivals' expiries are adjacent in
 * memory, so that a search for the next head touches four cache lines instead of
 * one per arrival, which matters in an interrupt with cold caches.
 *
 * Sorted timers are in a doubly linked list through &apic_timer_list.next and
 * .prev, which begins at @first and ends with NULL on both sides. Neighbours form
 * groups; the first timer of a group leads it and is in the index. A search ends
 * with a walk of a few steps, and few insertions and deletions touch the tree.
 * Each operation is bounded: APIC_TIMER_QUEUE_ARRIVALS and APIC_TIMER_QUEUE_GROUP
 * steps, and O(log n) in the tree. Code that visits all timers does so group by
 * group, releasing the lock in between: see apic_timer_queue_walk().
 *
 * Timers of equal expiry keep the order in which they were added. They are sorted by a
 * copy of their expiry: the owner of a pending timer may write to @expires, by mistake,
 * without any lock. Pure data: the caller does the locking.
 */
struct apic_timer_queue {
	struct apic_timer_list *first;
	struct rb_root_cached index;
	unsigned int unindexed;
	u32 arrived;
	u64 soonest;
	unsigned int slot;
	unsigned int room;
	unsigned long count;
	struct apic_timer_queue_cursor *cursors;
	struct apic_timer_list *last;
	u64 expires[APIC_TIMER_QUEUE_ARRIVALS];
	struct apic_timer_list *arrivals[APIC_TIMER_QUEUE_ARRIVALS];
};

/**
 * struct apic_timer_queue_cursor - position of a walk along a queue
 * @next:	leader of the next group; NULL at the end and before the
 *		beginning
 * @link:	another walk along the same queue
 * @unsorted:	number of arrivals to be sorted before the walk can begin
 * @registered:	in the queue's list
 *
 * A cursor is at a leader, so that only the deletion of a leader has to check
 * whether a cursor must be moved.
 */
struct apic_timer_queue_cursor {
	struct apic_timer_list *next;
	struct apic_timer_queue_cursor *link;
	unsigned int unsorted;
	bool registered;
};

void apic_timer_queue_init(struct apic_timer_queue *queue);
void apic_timer_queue_arrive_late(struct apic_timer_queue *queue,
				  struct apic_timer_list *timer);
bool apic_timer_queue_sort_one(struct apic_timer_queue *queue);
void apic_timer_queue_make_room(struct apic_timer_queue *queue);
void apic_timer_queue_split_unindexed(struct apic_timer_queue *queue);
void apic_timer_queue_del_first(struct apic_timer_queue *queue);
void apic_timer_queue_del_leader(struct apic_timer_queue *queue,
				 struct apic_timer_list *timer);
void apic_timer_queue_shift(struct apic_timer_queue *queue, s64 shift);

void apic_timer_queue_cursor_init(struct apic_timer_queue_cursor *cursor);
bool apic_timer_queue_walk(struct apic_timer_queue *queue,
			   struct apic_timer_queue_cursor *cursor,
			   struct apic_timer_list **timers, unsigned int *n);
void apic_timer_queue_walk_end(struct apic_timer_queue *queue,
			       struct apic_timer_queue_cursor *cursor);

/* Insert a timer before all others. */
static inline void apic_timer_queue_push(struct apic_timer_queue *queue,
					 struct apic_timer_list *timer)
{
	struct apic_timer_list *next = queue->first;

	timer->group = 0;
	timer->prev = NULL;
	timer->next = next;
	if (next)
		next->prev = timer;
	queue->first = timer;
	if (unlikely(++queue->unindexed > APIC_TIMER_QUEUE_GROUP))
		apic_timer_queue_split_unindexed(queue);
}

/* Make a timer that is not the head an arrival; there is room. */
static __always_inline void
apic_timer_queue_arrive(struct apic_timer_queue *queue,
			struct apic_timer_list *timer)
{
	unsigned int slot = queue->slot;
	u64 expires = timer->key;

	queue->room--;
	queue->arrived |= 1U << slot;
	queue->slot = (slot + 1) % APIC_TIMER_QUEUE_ARRIVALS;
	queue->expires[slot] = expires;
	queue->arrivals[slot] = timer;
	if (expires < queue->soonest)
		queue->soonest = expires;
	timer->group = APIC_TIMER_QUEUE_ARRIVED + slot;
}

/**
 * apic_timer_queue_add() - insert a timer by its expiry
 * @queue:	the queue
 * @timer:	in no queue; @timer->expires is read
 *
 * Return: true if @timer is the new head, for which the hardware has to be
 * programmed.
 */
static __always_inline bool apic_timer_queue_add(struct apic_timer_queue *queue,
						 struct apic_timer_list *timer)
{
	const struct apic_timer_list *first = queue->first;

	queue->count++;
	/* Its owner may write to it at the same time, by mistake. */
	timer->key = READ_ONCE(timer->expires);
	if (!first || timer->key < first->key) {
		apic_timer_queue_push(queue, timer);
		return true;
	}
	if (likely(queue->room))
		apic_timer_queue_arrive(queue, timer);
	else
		apic_timer_queue_arrive_late(queue, timer);
	return false;
}

/* Free the slot of an arrival; the slot of the latest arrival is used for the next one. */
static __always_inline void
apic_timer_queue_leave_slot(struct apic_timer_queue *queue, unsigned int slot)
{
	queue->arrived &= ~(1U << slot);
	if (queue->slot == (slot + 1) % APIC_TIMER_QUEUE_ARRIVALS) {
		queue->slot = slot;
		queue->room++;
	}
}

/**
 * apic_timer_queue_del() - remove a timer
 * @queue:	the queue that @timer is in
 * @timer:	the timer
 *
 * Return: the new head if it was the head, and is not the last; otherwise NULL.
 */
static __always_inline struct apic_timer_list *
apic_timer_queue_del(struct apic_timer_queue *queue, struct apic_timer_list *timer)
{
	struct apic_timer_list *prev, *next;
	int group = timer->group;

	queue->count--;
	if (group < 0) {
		apic_timer_queue_leave_slot(queue,
					    group - APIC_TIMER_QUEUE_ARRIVED);
		return NULL;
	}
	if (unlikely(group)) {
		apic_timer_queue_del_leader(queue, timer);
		return timer->prev ? NULL : queue->first;
	}
	prev = timer->prev;
	next = timer->next;
	if (prev) {
		prev->next = next;
		if (next)
			next->prev = prev;
		return NULL;
	}
	if (!queue->count) {
		queue->unindexed = 0;
		queue->first = NULL;
		return NULL;
	}
	if (next && next->key <= queue->soonest) {
		queue->unindexed--;
		queue->first = next;
		next->prev = NULL;
	} else {
		apic_timer_queue_del_first(queue);
	}
	return queue->first;
}

#endif /* _APIC_TIMER_QUEUE_H */
