/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QUEUE_H
#define _APIC_TIMER_QUEUE_H

#include <linux/apic_timer.h>

/**
 * struct apic_timer_queue - timers in the order of their expiry
 * @first:	expires first; NULL when the queue is empty
 * @last:	expires last; NULL when the queue is empty
 * @index:	rbtree over the same timers: where to insert, in O(log n)
 * @count:	number of timers
 *
 * The order is the doubly linked list through &apic_timer_list.next and .prev,
 * ended by NULL on both sides. Timers of equal expiry keep the order in which
 * they were added. Pure data: the caller does the locking.
 */
struct apic_timer_queue {
	struct apic_timer_list *first, *last;
	struct rb_root index;
	unsigned long count;
};

void apic_timer_queue_init(struct apic_timer_queue *queue);
bool apic_timer_queue_add(struct apic_timer_queue *queue,
			  struct apic_timer_list *timer);
void apic_timer_queue_del(struct apic_timer_queue *queue,
			  struct apic_timer_list *timer);
struct apic_timer_list *
apic_timer_queue_find(const struct apic_timer_queue *queue, u64 expires);

#endif /* _APIC_TIMER_QUEUE_H */
