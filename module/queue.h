/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QUEUE_H
#define _APIC_TIMER_QUEUE_H

#include <linux/apic_timer.h>
#include <linux/limits.h>

/* So many timers may wait to be sorted: what a search for the head costs. */
#define APIC_TIMER_QUEUE_ARRIVALS	32
/* So many timers in a row may be in the list and not in the index. */
#define APIC_TIMER_QUEUE_GROUP		16

/* &apic_timer_list.group of a timer that isn't sorted yet. */
#define APIC_TIMER_QUEUE_ARRIVED	UINT_MAX

/**
 * struct apic_timer_queue - timers in the order of their expiry
 * @first:	expires first; NULL when the queue is empty
 * @index:	rbtree over the leaders of the list's groups
 * @lead:	at least the number of timers in the list before the first
 *		leader
 * @arrived:	number of timers not yet sorted
 * @arrivals:	head of their circular list, in the order of their arrival;
 *		none expires before its @expires
 * @count:	number of timers
 *
 * Most timers are timeouts: deleted before they expire. To sort them is wasted
 * work, so that it is put off. The head of the queue is always known; any other
 * new timer becomes an arrival, and is sorted when it becomes the head, or as
 * the oldest of too many arrivals.
 *
 * What is sorted is a doubly linked list through &apic_timer_list.next and
 * .prev, ended by NULL on both sides, which begins at @first. Its timers form
 * groups of neighbours; the first of a group leads it and is in the index. So a
 * search ends with a walk of a few steps, but few insertions and deletions
 * touch the tree. Each operation is bounded: APIC_TIMER_QUEUE_ARRIVALS and
 * APIC_TIMER_QUEUE_GROUP steps, and O(log n) in the tree.
 *
 * Timers of equal expiry keep the order in which they were added. Pure data:
 * the caller does the locking.
 */
struct apic_timer_queue {
	struct apic_timer_list *first;
	struct rb_root index;
	unsigned int lead;
	unsigned int arrived;
	struct apic_timer_list arrivals;
	unsigned long count;
};

void apic_timer_queue_init(struct apic_timer_queue *queue);
void apic_timer_queue_arrive_late(struct apic_timer_queue *queue,
				  struct apic_timer_list *timer);
void apic_timer_queue_settle(struct apic_timer_queue *queue);
void apic_timer_queue_split_lead(struct apic_timer_queue *queue);
void apic_timer_queue_del_first(struct apic_timer_queue *queue);
void apic_timer_queue_del_leader(struct apic_timer_queue *queue,
				 struct apic_timer_list *timer);
void apic_timer_queue_shift(struct apic_timer_queue *queue, s64 shift);
struct apic_timer_list *apic_timer_queue_find(struct apic_timer_queue *queue,
					      u64 expires);

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
	struct apic_timer_list *prev = queue->arrivals.prev;

	queue->arrived++;
	if (timer->expires < queue->arrivals.expires)
		queue->arrivals.expires = timer->expires;
	timer->group = APIC_TIMER_QUEUE_ARRIVED;
	timer->prev = prev;
	timer->next = &queue->arrivals;
	prev->next = timer;
	queue->arrivals.prev = timer;
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
	if (likely(queue->arrived < APIC_TIMER_QUEUE_ARRIVALS))
		apic_timer_queue_arrive(queue, timer);
	else
		apic_timer_queue_arrive_late(queue, timer);
	return false;
}

/**
 * apic_timer_queue_del() - take a timer out
 * @queue:	the queue that @timer is in
 * @timer:	the timer
 */
static __always_inline void apic_timer_queue_del(struct apic_timer_queue *queue,
						 struct apic_timer_list *timer)
{
	struct apic_timer_list *prev = timer->prev, *next = timer->next;
	unsigned int group = timer->group;

	if (unlikely(group && group != APIC_TIMER_QUEUE_ARRIVED)) {
		apic_timer_queue_del_leader(queue, timer);
	} else if (prev) {
		if (group)
			queue->arrived--;
		prev->next = next;
		if (next)
			next->prev = prev;
	} else if (queue->count == 1) {
		queue->lead = 0;
		queue->first = NULL;
	} else if (next && next->expires <= queue->arrivals.expires) {
		queue->lead--;
		queue->first = next;
		next->prev = NULL;
	} else {
		apic_timer_queue_del_first(queue);
	}
	queue->count--;
}

#endif /* _APIC_TIMER_QUEUE_H */
