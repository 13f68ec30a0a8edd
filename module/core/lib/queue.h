/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QUEUE_H
#define _APIC_TIMER_QUEUE_H

#include <linux/apic_timer.h>
#include <linux/bits.h>

/* Timers that may wait to be sorted: the width of a bit mask. */
#define APIC_TIMER_QUEUE_ARRIVALS	32
/* Timers in a row of which one is in the index. */
#define APIC_TIMER_QUEUE_GROUP		12

/* &apic_timer_list.group of a timer that isn't sorted yet, plus its slot. */
#define APIC_TIMER_QUEUE_ARRIVED	0x80000000U

/**
 * struct apic_timer_queue - timers in the order of their expiry
 * @first:	expires first; NULL when the queue is empty
 * @index:	rbtree over the leaders of the list's groups
 * @lead:	at least the number of timers in the list before the first
 *		leader
 * @arrived:	the slots that arrivals are in, one bit each
 * @soonest:	no arrival expires before
 * @slot:	slot of the next arrival. Cyclically, from here on, the slots are
 *		in the order of arrival.
 * @room:	at most the number of free slots from @slot on
 * @count:	number of timers
 * @cursors:	walks under way
 * @last:	the last leader, or NULL: timers are often added in order
 * @expires:	expiry of the arrival in each slot
 * @arrivals:	the arrivals
 *
 * Most timers are timeouts: deleted before they expire. To sort them is wasted
 * work, so that it is put off. The head of the queue is always known; any other
 * new timer becomes an arrival, and is sorted when it becomes the head, or when
 * its slot is needed. Copies of their expiries lie in a row: a search for the
 * next head touches four cache lines, and not as many as there are arrivals,
 * which matters in an interrupt with cold caches.
 *
 * What is sorted is a doubly linked list through &apic_timer_list.next and
 * .prev, ended by NULL on both sides, which begins at @first. Its timers form
 * groups of neighbours; the first of a group leads it and is in the index. So a
 * search ends with a walk of a few steps, but few insertions and deletions
 * touch the tree. Each operation is bounded: APIC_TIMER_QUEUE_ARRIVALS and
 * APIC_TIMER_QUEUE_GROUP steps, and O(log n) in the tree. Whoever looks at all
 * timers does so by groups, with the lock released between: see
 * apic_timer_queue_walk().
 *
 * Timers of equal expiry keep the order in which they were added. Pure data:
 * the caller does the locking.
 */
struct apic_timer_queue {
	struct apic_timer_list *first;
	struct rb_root index;
	unsigned int lead;
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
 * struct apic_timer_queue_cursor - how far a walk along a queue has come
 * @next:	leader of the next group; NULL at the end and before the
 *		beginning
 * @link:	another walk along the same queue
 * @unsorted:	number of arrivals to be sorted before the walk can begin
 * @registered:	in the queue's list
 *
 * It stands on a leader, so that only the deletion of a leader has to look
 * whether a cursor must go on.
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
void apic_timer_queue_split_lead(struct apic_timer_queue *queue);
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

/* Put a timer before all others. */
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
	if (unlikely(++queue->lead > APIC_TIMER_QUEUE_GROUP))
		apic_timer_queue_split_lead(queue);
}

/* Let a timer that isn't the head wait to be sorted; there is room. */
static __always_inline void
apic_timer_queue_arrive(struct apic_timer_queue *queue,
			struct apic_timer_list *timer)
{
	unsigned int slot = queue->slot;
	u64 expires = timer->expires;

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
 * Return: true when @timer is the new head, which means that what is armed
 * must change.
 */
static __always_inline bool apic_timer_queue_add(struct apic_timer_queue *queue,
						 struct apic_timer_list *timer)
{
	const struct apic_timer_list *first = queue->first;

	queue->count++;
	if (!first || timer->expires < first->expires) {
		apic_timer_queue_push(queue, timer);
		return true;
	}
	if (likely(queue->room))
		apic_timer_queue_arrive(queue, timer);
	else
		apic_timer_queue_arrive_late(queue, timer);
	return false;
}

/* An arrival goes. The latest makes room for the next one. */
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
 * apic_timer_queue_del() - take a timer out
 * @queue:	the queue that @timer is in
 * @timer:	the timer
 */
static __always_inline void apic_timer_queue_del(struct apic_timer_queue *queue,
						 struct apic_timer_list *timer)
{
	struct apic_timer_list *prev, *next;
	unsigned int group = timer->group;

	queue->count--;
	if (group >= APIC_TIMER_QUEUE_ARRIVED) {
		apic_timer_queue_leave_slot(queue,
					    group - APIC_TIMER_QUEUE_ARRIVED);
		return;
	}
	if (unlikely(group)) {
		apic_timer_queue_del_leader(queue, timer);
		return;
	}
	prev = timer->prev;
	next = timer->next;
	if (prev) {
		prev->next = next;
		if (next)
			next->prev = prev;
	} else if (!queue->count) {
		queue->lead = 0;
		queue->first = NULL;
	} else if (next && next->expires <= queue->soonest) {
		queue->lead--;
		queue->first = next;
		next->prev = NULL;
	} else {
		apic_timer_queue_del_first(queue);
	}
}

#endif /* _APIC_TIMER_QUEUE_H */
