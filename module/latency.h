/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LATENCY_H
#define _APIC_TIMER_LATENCY_H

#include <linux/types.h>

#ifdef CONFIG_APIC_TIMER_SIM

static inline void apic_timer_latency_want(u64 expires) {}
static inline void apic_timer_latency_kick(void) {}
static inline bool apic_timer_latency_requested(void) { return false; }
static inline void apic_timer_latency_init(void) {}
static inline void apic_timer_latency_exit(void) {}

#else

#include <linux/compiler.h>

extern u64 apic_timer_latency_until;

void apic_timer_latency_kick(void);
bool apic_timer_latency_requested(void);
void apic_timer_latency_init(void);
void apic_timer_latency_exit(void);

/**
 * apic_timer_latency_want() - an exact shot is to come
 * @expires:	when, absolute TSC
 *
 * Context: Any.
 */
static inline void apic_timer_latency_want(u64 expires)
{
	if (expires < READ_ONCE(apic_timer_latency_until))
		apic_timer_latency_kick();
}

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_LATENCY_H */
