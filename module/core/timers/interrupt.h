/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_INTERRUPT_H
#define _APIC_TIMER_INTERRUPT_H

/*
 * The course of a timer interrupt, the same for all sources: the timers first, then
 * the kernel's event.
 */
#include "mux/mux.h"
#include "timers/expire.h"

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

#endif /* _APIC_TIMER_INTERRUPT_H */
