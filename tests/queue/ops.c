// SPDX-License-Identifier: GPL-2.0
#include "ops.h"

bool ops_add(struct apic_timer_queue *queue, struct apic_timer_list *timer)
{
	return apic_timer_queue_add(queue, timer);
}

void ops_del(struct apic_timer_queue *queue, struct apic_timer_list *timer)
{
	apic_timer_queue_del(queue, timer);
}

/* As mod_apic_timer() does to a timer that is pending. */
void ops_modify(struct apic_timer_queue *queue, struct apic_timer_list *timer,
		u64 expires)
{
	apic_timer_queue_del(queue, timer);
	timer->expires = expires;
	apic_timer_queue_add(queue, timer);
}

/* As make_room() of drain.c does. */
void ops_make_room(struct apic_timer_queue *to)
{
	apic_timer_queue_make_room(to);
}

/* As migrate_head() of drain.c does then. Between the two locks interrupts stay off. */
void ops_migrate(struct apic_timer_queue *from, struct apic_timer_queue *to)
{
	struct apic_timer_list *timer = from->first;

	apic_timer_queue_del(from, timer);
	apic_timer_queue_add(to, timer);
}

/* As apic_timer_base_snapshot() does. */
bool ops_look(struct apic_timer_queue *queue,
	      struct apic_timer_queue_cursor *cursor)
{
	struct apic_timer_list *timers[APIC_TIMER_QUEUE_GROUP];
	u64 view = 0;
	unsigned int i, n;
	bool more = apic_timer_queue_walk(queue, cursor, timers, &n);

	for (i = 0; i < n; i++) {
		view += (uintptr_t)timers[i]->function;
		view += timers[i]->expires;
		view += timers[i]->flags;
	}
	asm volatile("" : : "r" (view));
	return more;
}

/* As cancel() of drain.c does. */
bool ops_cancel(struct apic_timer_queue *queue,
		struct apic_timer_queue_cursor *cursor)
{
	struct apic_timer_list *timers[APIC_TIMER_QUEUE_GROUP];
	unsigned int n;
	bool more = apic_timer_queue_walk(queue, cursor, timers, &n);

	while (n--) {
		apic_timer_queue_del(queue, timers[n]);
		timers[n]->state = 0;
	}
	return more;
}

/*
 * As after a sleep from which the TSC has come back with another value; by nothing,
 * so that what is measured next is not changed.
 */
void ops_shift(struct apic_timer_queue *queue)
{
	apic_timer_queue_shift(queue, 0);
}
