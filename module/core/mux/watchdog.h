/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_GUARD_H
#define _APIC_TIMER_GUARD_H

#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/types.h>

/* Absolute TSC of this CPU's next look; %APIC_TIMER_NEVER while not on guard */
DECLARE_PER_CPU(u64, apic_timer_guard_due);

void apic_timer_guard_init(void (*quiet_work)(void));
void apic_timer_guard_exit(void);
void apic_timer_guard_online(void);
void apic_timer_guard_offline(void);
void apic_timer_guard_look(u64 now);

/**
 * apic_timer_guard_sleeps() - whether apic_timer_guard() has nothing to do
 * @now:	the present TSC
 *
 * Context: Interrupts off.
 * Return: true if so.
 */
static __always_inline bool apic_timer_guard_sleeps(u64 now)
{
	return now < this_cpu_read(apic_timer_guard_due);
}

/**
 * apic_timer_guard() - look after the hardware, if it is time to
 * @now:	the present TSC
 *
 * Context: Interrupts off; the hardware has been programmed.
 */
static __always_inline void apic_timer_guard(u64 now)
{
	if (unlikely(!apic_timer_guard_sleeps(now)))
		apic_timer_guard_look(now);
}

#endif /* _APIC_TIMER_GUARD_H */
