// SPDX-License-Identifier: GPL-2.0
/* Limits of targets that the administrator sets: see target.h. */
#include <linux/limits.h>
#include <linux/minmax.h>

#include "lib/param.h"
#include "policy/target.h"
#include "tsc/tsc.h"

APIC_TIMER_PARAM(spin_budget_ns, 5000, 0, 1000000, "ns",
		 "maximum time that an expiry of mode exact may spin on the TSC, for timers without a budget of their own");
APIC_TIMER_PARAM(defer_ns, 20000, 0, 1000000, "ns",
		 "time before the hardware fires for an expiry of mode exact in which a kernel event is deferred until after it (0: no deferring)");

u64 apic_timer_target_defer_max, apic_timer_target_spin_max;

/**
 * apic_timer_target_init() - read the module parameters
 */
void apic_timer_target_init(void)
{
	apic_timer_target_defer_max = apic_timer_ns_to_tsc(defer_ns);
	/* A timer's own budget has the same number of bits. */
	apic_timer_target_spin_max = min_t(u64, apic_timer_ns_to_tsc(spin_budget_ns),
					   U32_MAX);
}
