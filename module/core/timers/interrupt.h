/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_INTERRUPT_H
#define _APIC_TIMER_INTERRUPT_H

/*
 * The course of a timer interrupt, the same for all sources: the timers first, then
 * the kernel's event.
 */
#include <linux/compiler.h>
#include <linux/percpu.h>

#include "mux/mux.h"
#include "timers/base.h"
#include "timers/expire.h"

/*
 * Remove the timers' target if the last timer has been deleted, which does not: that would cost
 * each timeout that does not expire, and another CPU may have deleted it. No lock is needed: a CPU
 * that adds a timer meanwhile interrupts this one after it.
 */
static __always_inline void apic_timer_mux_forget_deleted(struct apic_timer_mux *mux)
{
	if (unlikely(mux->target.expires < APIC_TIMER_FENCED &&
		     !READ_ONCE(this_cpu_ptr(&apic_timer_base)->queue.first)))
		apic_timer_mux_no_timers(mux);
}

/**
 * apic_timer_mux_enter() - first half of the interrupt: the timers
 * @mux:	of this CPU
 * @now:	the present TSC
 *
 * Context: As apic_timer_mux_begin().
 */
static __always_inline void apic_timer_mux_enter(struct apic_timer_mux *mux,
						 u64 now)
{
	apic_timer_mux_begin(mux, now);
	if (apic_timer_mux_timers_due(mux))
		apic_timer_expire_due(mux);
	else
		apic_timer_mux_forget_deleted(mux);
}

/**
 * apic_timer_mux_leave() - second half of the interrupt: the kernel's event
 * @mux:	of this CPU
 * @kernel_event: calls the kernel's handler, which programs the kernel's next
 *		event, at once or later
 * @context:	for @kernel_event
 *
 * Context: Interrupts off, in the interrupt, after apic_timer_mux_enter().
 */
static __always_inline void
apic_timer_mux_leave(struct apic_timer_mux *mux,
		     void (*kernel_event)(void *context), void *context)
{
	if (apic_timer_mux_take_kernel(mux))
		kernel_event(context);
	apic_timer_mux_end(mux);
}

/**
 * apic_timer_mux_give_up_kernel() - set no deadline of the kernel on this CPU
 *
 * Without timers, the hardware is stopped.
 *
 * Context: Interrupts off.
 */
static inline void apic_timer_mux_give_up_kernel(void)
{
	apic_timer_mux_forget_deleted(this_cpu_ptr(&apic_timer_mux));
	apic_timer_mux_set_kernel(APIC_TIMER_NEVER, 0);
}

#endif /* _APIC_TIMER_INTERRUPT_H */
