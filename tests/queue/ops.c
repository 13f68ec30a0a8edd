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

/* Like mod_apic_timer() of a pending timer. */
void ops_modify(struct apic_timer_queue *queue, struct apic_timer_list *timer,
		u64 expires)
{
	apic_timer_queue_del(queue, timer);
	timer->expires = expires;
	apic_timer_queue_add(queue, timer);
}

/* Like make_room() of drain.c. */
void ops_make_room(struct apic_timer_queue *to)
{
	apic_timer_queue_make_room(to);
}

/* Like the following migrate_head() of drain.c. Between the two locks interrupts stay off. */
void ops_migrate(struct apic_timer_queue *from, struct apic_timer_queue *to)
{
	struct apic_timer_list *timer = from->first;

	apic_timer_queue_del(from, timer);
	apic_timer_queue_add(to, timer);
}

/* Like apic_timer_base_snapshot(). */
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

/* Like cancel() of drain.c. */
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
 * Like after a sleep in which the TSC's value has changed; by 0, so that later measurements are
 * not affected.
 */
void ops_shift(struct apic_timer_queue *queue)
{
	apic_timer_queue_shift(queue, 0);
}
