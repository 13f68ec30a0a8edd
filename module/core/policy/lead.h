/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LEAD_H
#define _APIC_TIMER_LEAD_H

#include <linux/apic_timer.h>
#include <linux/apic_timer_estimate.h>
#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/percpu.h>

/**
 * enum apic_timer_cpu_state - state of a CPU that a timer interrupt finds
 * @APIC_TIMER_CPU_BUSY:	it runs a task
 * @APIC_TIMER_CPU_IDLE:	it is idle, and its tick runs
 * @APIC_TIMER_CPU_TICK_STOPPED: it is idle with its tick stopped; the kernel
 *				updates jiffies before anything else
 * @APIC_TIMER_CPU_STATES:	number of states
 */
enum apic_timer_cpu_state {
	APIC_TIMER_CPU_BUSY,
	APIC_TIMER_CPU_IDLE,
	APIC_TIMER_CPU_TICK_STOPPED,
	APIC_TIMER_CPU_STATES
};

/* Quantiles that a timer may choose: values of %APIC_TIMER_COVER_MASK, from 1 on. */
#define APIC_TIMER_LEAD_COVERS	3

/**
 * struct apic_timer_lead_cover - the lead of timers that choose a quantile
 * @latency:	as in &struct apic_timer_lead, while the tick runs [0] or is
 *		stopped [1]
 * @exact:	likewise
 */
struct apic_timer_lead_cover {
	struct apic_timer_estimate latency[2];
	u64 exact[2];
};

/**
 * struct apic_timer_lead - how early to program on a CPU, TSC cycles
 * @latency:	estimate, from the moment programmed for to the dispatch, by CPU
 *		state
 * @exact:	lead for mode exact while the tick runs [0] or is stopped [1]: the
 *		quantile of the latencies
 * @mean:	lead for mode mean, by CPU state; limited, as @exact is by budgets
 * @event:	estimate of the duration of the kernel's event handler
 * @defer:	a kernel event that is due less than this before the hardware
 *		fires would make an expiry of mode exact late
 * @cost_exact:	minimum duration of a dispatch in mode exact
 * @cost_plain:	minimum duration of a dispatch in the other modes
 * @covers:	bit n: a timer of this CPU has chosen @cover[n], which is estimated
 *		since
 * @cover:	leads for the quantiles that a timer may choose
 *
 * Accessed by its own CPU only, interrupts off; other CPUs read it to show it.
 */
struct apic_timer_lead {
	struct apic_timer_estimate latency[APIC_TIMER_CPU_STATES];
	u64 exact[2];
	u64 mean[APIC_TIMER_CPU_STATES];
	struct apic_timer_estimate event;
	u64 defer;
	u64 cost_exact;
	u64 cost_plain;
	unsigned int covers;
	struct apic_timer_lead_cover cover[APIC_TIMER_LEAD_COVERS];
};

/* Module parameter */
extern unsigned int apic_timer_lead_quantile;

DECLARE_PER_CPU(struct apic_timer_lead, apic_timer_lead);

const char *apic_timer_cpu_state_name(enum apic_timer_cpu_state state);
void apic_timer_lead_reset(void);
void apic_timer_lead_set_cost(u64 exact, u64 plain);
void apic_timer_lead_learn(enum apic_timer_cpu_state state, u64 latency);
void apic_timer_lead_hurry(void);
void apic_timer_lead_learn_event(u64 cycles);
u64 apic_timer_lead_room(unsigned int cpu, u64 budget);
void apic_timer_lead_init(void);

/**
 * apic_timer_lead_cover() - get the leads for a timer that chooses a quantile
 * @lead:	of this CPU
 * @flags:	of the timer, with one of %APIC_TIMER_COVER_MASK
 *
 * Inline, because for a call each timer that becomes the head would have to
 * save registers.
 *
 * Context: Interrupts off.
 * Return: TSC cycles while the tick runs [0] or is stopped [1].
 */
static inline const u64 *apic_timer_lead_cover(struct apic_timer_lead *lead, unsigned int flags)
{
	unsigned int number = FIELD_GET(APIC_TIMER_COVER_MASK, flags) - 1;

	lead->covers |= BIT(number);
	return lead->cover[number].exact;
}

/* Nearly all latencies are within this number of mean distances from the mean. */
#define APIC_TIMER_LEAD_USUAL_SPREADS	4

/**
 * apic_timer_lead_usual() - get a lead for mode exact that suffices most of the time
 * @lead:	of this CPU
 * @state:	of this CPU
 *
 * The mean would be too late for half of the expiries.
 *
 * Context: Interrupts off.
 * Return: TSC cycles.
 */
static inline u64 apic_timer_lead_usual(const struct apic_timer_lead *lead,
					enum apic_timer_cpu_state state)
{
	return lead->mean[state] + lead->cost_exact +
	       APIC_TIMER_LEAD_USUAL_SPREADS * apic_timer_estimate_spread(&lead->latency[state]);
}

#endif /* _APIC_TIMER_LEAD_H */
