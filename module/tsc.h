/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_TSC_H
#define _APIC_TIMER_TSC_H

#include <linux/apic_timer.h>
#include <linux/math64.h>

#ifdef CONFIG_APIC_TIMER_SIM

#include "source_sim.h"

static inline u64 apic_timer_tsc_now(void)
{
	return apic_timer_sim_now();
}

static inline u32 apic_timer_tsc_khz(void)
{
	return apic_timer_sim_tsc_khz();
}

#else

#include <asm/msr.h>
#include <asm/tsc.h>

static inline u64 apic_timer_tsc_now(void)
{
	return rdtsc_ordered();
}

/* The kernel refines its value once, a second or two after boot. */
static inline u32 apic_timer_tsc_khz(void)
{
	return READ_ONCE(tsc_khz);
}

#endif /* CONFIG_APIC_TIMER_SIM */

u64 apic_timer_tsc_shift(u64 tsc, s64 shift);
u64 apic_timer_tsc_from_ns(u64 ns, u32 khz);
u64 apic_timer_tsc_to_ns_at(u64 cycles, u32 khz);
enum apic_timer_tsc_kind apic_timer_tsc_kind(void);
const char *apic_timer_tsc_kind_name(enum apic_timer_tsc_kind kind);
bool apic_timer_tsc_stable(void);
int apic_timer_tsc_init(void);

#endif /* _APIC_TIMER_TSC_H */
