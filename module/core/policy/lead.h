/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LEAD_H
#define _APIC_TIMER_LEAD_H

#include <linux/percpu.h>

#include "lib/estimate.h"

/**
 * enum apic_timer_cpu_state - what an interrupt of ours came upon
 * @APIC_TIMER_CPU_BUSY:	a CPU at work
 * @APIC_TIMER_CPU_IDLE:	an idle CPU with its tick going
 * @APIC_TIMER_CPU_TICK_STOPPED:	an idle CPU without tick, which first of all
 *				catches up on the time
 * @APIC_TIMER_CPU_STATES:	how many there are
 */
enum apic_timer_cpu_state {
	APIC_TIMER_CPU_BUSY,
	APIC_TIMER_CPU_IDLE,
	APIC_TIMER_CPU_TICK_STOPPED,
	APIC_TIMER_CPU_STATES
};

/**
 * struct apic_timer_lead - how early to arm on a CPU
 * @latency:	TSC cycles from the moment armed for to the dispatch, by class
 * @exact:	lead for mode exact while the tick goes [0] or is stopped [1]:
 *		most of the latencies are shorter
 * @mean:	lead for mode mean, by class; limited, which @exact is by budgets
 * @event:	TSC cycles that the handler of an event of the kernel's takes
 * @defer:	events of the kernel's that come less than so many TSC cycles
 *		before the lead would make mode exact late
 * @cost_exact:	TSC cycles that a dispatch takes at least, in mode exact
 * @cost_plain:	the same in the other modes
 *
 * Touched by its own CPU only, interrupts off; read by others for showing.
 */
struct apic_timer_lead {
	struct apic_timer_estimate latency[APIC_TIMER_CPU_STATES];
	u64 exact[2];
	u64 mean[APIC_TIMER_CPU_STATES];
	struct apic_timer_estimate event;
	u64 defer;
	u64 cost_exact;
	u64 cost_plain;
};

/* Part of the expiries that mode exact arms early enough for. */
extern unsigned int apic_timer_lead_quantile;

DECLARE_PER_CPU(struct apic_timer_lead, apic_timer_lead);

const char *apic_timer_cpu_state_name(enum apic_timer_cpu_state state);
void apic_timer_lead_reset(void);
void apic_timer_lead_set_cost(u64 exact, u64 plain);
void apic_timer_lead_learn(enum apic_timer_cpu_state state, u64 latency);
void apic_timer_lead_learn_event(u64 cycles);
u64 apic_timer_lead_room(unsigned int cpu, u64 budget);
void apic_timer_lead_init(void);

#endif /* _APIC_TIMER_LEAD_H */
