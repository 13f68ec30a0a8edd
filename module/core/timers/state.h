/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_STATE_H
#define _APIC_TIMER_STATE_H

#include <linux/apic_timer.h>
#include <linux/build_bug.h>
#include <linux/threads.h>

/**
 * enum apic_timer_state - the states of a timer
 * @APIC_TIMER_NEW:	initialised and never armed. Reached by
 *			init_apic_timer() only.
 * @APIC_TIMER_PENDING:	in the queue of its CPU. Reached from NEW and DONE.
 * @APIC_TIMER_DONE:	was armed; has expired, or was deleted or cancelled. Its
 *			handler may be running. Reached from PENDING.
 * @APIC_TIMER_SHUTDOWN: cannot be armed. Its handler may be running. Reached from
 *			NEW and DONE by apic_timer_shutdown_sync(), and left by
 *			init_apic_timer() only.
 *
 * timer.c draws the edges. The values are improbable ones, so that zeroed,
 * poisoned or random memory is not mistaken for a timer.
 */
enum apic_timer_state {
	APIC_TIMER_NEW = APIC_TIMER_STATE_NEW,
	APIC_TIMER_PENDING,
	APIC_TIMER_DONE,
	APIC_TIMER_SHUTDOWN,
};

/* A timer's cpu while it moves from one base to another */
#define APIC_TIMER_CPU_MOVING	USHRT_MAX

/* One comparison separates CPU numbers from both special values. */
static_assert((APIC_TIMER_CPU_MOVING - APIC_TIMER_CPU_NONE) == 1);
static_assert(CONFIG_NR_CPUS <= APIC_TIMER_CPU_NONE);

static inline bool apic_timer_state_known(const struct apic_timer_list *timer)
{
	return READ_ONCE(timer->state) - APIC_TIMER_NEW <=
	       APIC_TIMER_SHUTDOWN - APIC_TIMER_NEW;
}

/* A timer can be armed if it is NEW or DONE: one comparison. */
static_assert((APIC_TIMER_PENDING & ~(APIC_TIMER_NEW ^ APIC_TIMER_DONE)) !=
	      (APIC_TIMER_NEW & APIC_TIMER_DONE));
static_assert((APIC_TIMER_SHUTDOWN & ~(APIC_TIMER_NEW ^ APIC_TIMER_DONE)) !=
	      (APIC_TIMER_NEW & APIC_TIMER_DONE));

static inline bool apic_timer_state_idle(const struct apic_timer_list *timer)
{
	return (timer->state & ~(APIC_TIMER_NEW ^ APIC_TIMER_DONE)) ==
	       (APIC_TIMER_NEW & APIC_TIMER_DONE);
}

static inline bool apic_timer_edge_legal(enum apic_timer_state from,
					 enum apic_timer_state to)
{
	switch (to) {
	case APIC_TIMER_PENDING:
	case APIC_TIMER_SHUTDOWN:
		return from == APIC_TIMER_NEW || from == APIC_TIMER_DONE;
	case APIC_TIMER_DONE:
		return from == APIC_TIMER_PENDING;
	default:
		return false;
	}
}

#endif /* _APIC_TIMER_STATE_H */
