/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_TIMER_H
#define _APIC_TIMER_TIMER_H

#include <linux/apic_timer.h>
#include <linux/bug.h>
#include <linux/build_bug.h>

#include "timers/objects.h"

/**
 * enum apic_timer_state - the states of a timer
 * @APIC_TIMER_NEW:	initialised and never armed. Reached by
 *			init_apic_timer() only.
 * @APIC_TIMER_PENDING:	in the queue of the CPU it is bound to. Reached from
 *			NEW and DONE.
 * @APIC_TIMER_DONE:	was armed; has expired, was deleted or cancelled. Its
 *			handler may still be running. Reached from PENDING.
 * @APIC_TIMER_SHUTDOWN: cannot be armed. Its handler may still be running.
 *			Reached from NEW and DONE by apic_timer_shutdown_sync(),
 *			and left by init_apic_timer() only.
 *
 * Changes under the lock of the timer's base. The values are unlikely ones, so
 * that zeroed, poisoned and random memory is told from a timer.
 */
enum apic_timer_state {
	APIC_TIMER_NEW = APIC_TIMER_STATE_NEW,
	APIC_TIMER_PENDING,
	APIC_TIMER_DONE,
	APIC_TIMER_SHUTDOWN,
};

/* A timer's cpu while it goes from one base to another. */
#define APIC_TIMER_CPU_MOVING	UINT_MAX

static inline bool apic_timer_state_known(const struct apic_timer_list *timer)
{
	return READ_ONCE(timer->state) - APIC_TIMER_NEW <=
	       APIC_TIMER_SHUTDOWN - APIC_TIMER_NEW;
}

/* Whether a timer can be armed: NEW or DONE, in one comparison. */
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

/*
 * The edge is checked where speed doesn't matter: the callers are few.
 *
 * To a kernel that watches over objects a timer that is shut down is one that
 * isn't pending: it may be freed, and initialised again.
 */
static inline void apic_timer_set_state(struct apic_timer_list *timer,
					enum apic_timer_state state)
{
	WARN_ONCE((IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_KUNIT)) &&
		  !apic_timer_edge_legal(timer->state, state),
		  "apic_timer: state %x to %x\n", timer->state, state);
	if (state == APIC_TIMER_PENDING)
		apic_timer_debug_activate(timer);
	else if (state == APIC_TIMER_DONE)
		apic_timer_debug_deactivate(timer);
	WRITE_ONCE(timer->state, state);
}

#endif /* _APIC_TIMER_TIMER_H */
