/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QUEUE_OPS_H
#define _APIC_TIMER_QUEUE_OPS_H

#include "lib/queue.h"

/*
 * Operations on a queue with its lock held, from lock to unlock: in a separate file, so that all
 * the memory that they touch can be counted.
 */
bool ops_add(struct apic_timer_queue *queue, struct apic_timer_list *timer);
void ops_del(struct apic_timer_queue *queue, struct apic_timer_list *timer);
void ops_modify(struct apic_timer_queue *queue, struct apic_timer_list *timer,
		u64 expires);
void ops_make_room(struct apic_timer_queue *to);
void ops_migrate(struct apic_timer_queue *from, struct apic_timer_queue *to);
bool ops_look(struct apic_timer_queue *queue,
	      struct apic_timer_queue_cursor *cursor);
bool ops_cancel(struct apic_timer_queue *queue,
		struct apic_timer_queue_cursor *cursor);
void ops_shift(struct apic_timer_queue *queue);

#endif /* _APIC_TIMER_QUEUE_OPS_H */
