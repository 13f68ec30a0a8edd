// SPDX-License-Identifier: GPL-2.0
/*
 * Lead: how early to program the hardware. It is learnt from the latency of each
 * expiry, which is the time from the moment that the hardware was programmed for
 * until the handler could start.
 *
 * The latency depends mostly on the state of the interrupted CPU, and is learnt
 * separately for each state. When the hardware is programmed, it is known whether the
 * tick is stopped, because the kernel stops it through the source, but not whether
 * the CPU will be idle.
 */
#include <linux/bits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "lib/param.h"
#include "policy/lead.h"
#include "tsc/tsc.h"

static_assert(APIC_TIMER_QUANTILE_ONE == 10000);
APIC_TIMER_PARAM_NAMED(lead_quantile, apic_timer_lead_quantile, /* not static */,
		       10000, 5000, 10000, "1/10000",
		       "quantile of past latencies that mode exact covers (lower: less spinning, more late expiries)");

/* Deferring delays the kernel: do not provide for the rarest event. */
#define EVENT_QUANTILE	9999

/*
 * First guess of a latency: longer than a busy kernel occasionally turns interrupts
 * off, for example to reseed its random numbers (3,400 cycles, measured).
 */
#define GUESS_NS	4000

/*
 * Maximum lead of mode mean: longer than waking from most idle states, or the way
 * through a hypervisor, takes. A higher latency means that an overloaded host or
 * firmware took the CPU away, which does not predict the next one.
 */
#define MEAN_MAX_NS	100000

static u64 guess;	/* TSC cycles */
static u64 mean_max;	/* TSC cycles */

DEFINE_PER_CPU(struct apic_timer_lead, apic_timer_lead);

/**
 * apic_timer_cpu_state_name() - get the name of a CPU state
 * @state:	the state
 *
 * Return: one word.
 */
const char *apic_timer_cpu_state_name(enum apic_timer_cpu_state state)
{
	static const char * const names[] = {
		[APIC_TIMER_CPU_BUSY] = "busy",
		[APIC_TIMER_CPU_IDLE] = "idle",
		[APIC_TIMER_CPU_TICK_STOPPED] = "stopped",
	};

	return names[state];
}

static void update_defer(struct apic_timer_lead *lead)
{
	/* The latency is about the time to enter and leave the interrupt. */
	lead->defer = apic_timer_estimate_high(&lead->event) + lead->exact[0];
}

/* Compute the leads from the estimates. */
static void update(struct apic_timer_lead *lead)
{
	u64 high[APIC_TIMER_CPU_STATES], any = 0;
	unsigned int state;

	for (state = 0; state < APIC_TIMER_CPU_STATES; state++) {
		high[state] = apic_timer_estimate_high(&lead->latency[state]);
		lead->mean[state] =
			apic_timer_estimate_mean(&lead->latency[state]);
		any = lead->mean[state] ?: any;
	}
	lead->exact[0] = max(high[APIC_TIMER_CPU_BUSY],
			     high[APIC_TIMER_CPU_IDLE]) + lead->cost_exact;
	lead->exact[1] = max(lead->exact[0],
			     high[APIC_TIMER_CPU_TICK_STOPPED] + lead->cost_exact);
	/* A state without samples gets the estimate of another state. */
	for (state = 0; state < APIC_TIMER_CPU_STATES; state++)
		lead->mean[state] = min((lead->mean[state] ?: any) + lead->cost_plain,
					mean_max);
	update_defer(lead);
}

/* Quantiles of %APIC_TIMER_COVER_90 (90 %), _99 (99 %) and _999 (99.9 %). */
static const unsigned int cover_quantiles[APIC_TIMER_LEAD_COVERS] = { 9000, 9900, 9990 };

static void update_cover(const struct apic_timer_lead *lead, struct apic_timer_lead_cover *cover)
{
	cover->exact[0] = apic_timer_estimate_high(&cover->latency[0]) + lead->cost_exact;
	cover->exact[1] = max(cover->exact[0], apic_timer_estimate_high(&cover->latency[1]) +
					       lead->cost_exact);
}

static void reset_cover(struct apic_timer_lead *lead, unsigned int number)
{
	struct apic_timer_lead_cover *cover = &lead->cover[number];
	unsigned int stopped;

	for (stopped = 0; stopped < 2; stopped++)
		apic_timer_estimate_init(&cover->latency[stopped], guess, cover_quantiles[number]);
	update_cover(lead, cover);
}

/* Learn for timers that choose a quantile: here it is that of all expiries, in every CPU state. */
static noinline void learn_covers(struct apic_timer_lead *lead, bool stopped, u64 latency)
{
	struct apic_timer_lead_cover *cover;
	unsigned int i;

	for (i = 0; i < APIC_TIMER_LEAD_COVERS; i++) {
		if (!(lead->covers & BIT(i)))
			continue;
		cover = &lead->cover[i];
		apic_timer_estimate_add_high(&cover->latency[stopped], latency);
		apic_timer_estimate_pass(&cover->latency[!stopped]);
		update_cover(lead, cover);
	}
}

/**
 * apic_timer_lead_reset() - reset this CPU's estimates
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_reset(void)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	unsigned int state, cover;

	lockdep_assert_irqs_disabled();
	for (state = 0; state < APIC_TIMER_CPU_STATES; state++) {
		apic_timer_estimate_init(&lead->latency[state], guess,
					 apic_timer_lead_quantile);
		/*
		 * Keep the guess and spin: a latency that occurs once in thousands of
		 * times makes an expiry late.
		 */
		apic_timer_estimate_wait(&lead->latency[state]);
	}
	apic_timer_estimate_init(&lead->event, guess, EVENT_QUANTILE);
	apic_timer_estimate_wait(&lead->event);
	for (cover = 0; cover < APIC_TIMER_LEAD_COVERS; cover++)
		reset_cover(lead, cover);
	lead->covers = 0;
	update(lead);
}

/**
 * apic_timer_lead_set_cost() - set how long a dispatch on this CPU takes
 * @exact:	minimum in mode exact, TSC cycles
 * @plain:	minimum in the other modes, TSC cycles
 *
 * Context: Interrupts off. Before apic_timer_lead_reset().
 */
void apic_timer_lead_set_cost(u64 exact, u64 plain)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);

	lockdep_assert_irqs_disabled();
	lead->cost_exact = exact;
	lead->cost_plain = plain;
}

/**
 * apic_timer_lead_learn() - add the latency of an expiry on this CPU
 * @state:	state of the CPU that was interrupted
 * @latency:	TSC cycles
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_learn(enum apic_timer_cpu_state state, u64 latency)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	unsigned int other;

	lockdep_assert_irqs_disabled();
	apic_timer_estimate_add(&lead->latency[state], latency);
	for (other = 0; other < APIC_TIMER_CPU_STATES; other++)
		if (other != state)
			apic_timer_estimate_pass(&lead->latency[other]);
	update(lead);
	if (unlikely(lead->covers))
		learn_covers(lead, state == APIC_TIMER_CPU_TICK_STOPPED, latency);
}

/**
 * apic_timer_lead_hurry() - lower the leads to the usual latencies soon
 *
 * For a CPU whose expiries take most of its time because they spin for a guess.
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_hurry(void)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	unsigned int state;

	lockdep_assert_irqs_disabled();
	for (state = 0; state < APIC_TIMER_CPU_STATES; state++)
		apic_timer_estimate_hurry(&lead->latency[state]);
}

/**
 * apic_timer_lead_learn_event() - add the duration of a kernel event
 * @cycles:	TSC cycles that the event's handler took
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_learn_event(u64 cycles)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);

	lockdep_assert_irqs_disabled();
	apic_timer_estimate_add_high(&lead->event, cycles);
	update_defer(lead);
}

/**
 * apic_timer_lead_room() - compute the part of a budget that is left for waking an idle CPU
 * @cpu:	the CPU
 * @budget:	maximum time that an expiry may spin, TSC cycles
 *
 * The latency of an idle CPU is that of a busy CPU plus the time to wake up. The mean
 * is sufficient, because an idle CPU does nothing that turns interrupts off for long.
 *
 * Context: Any.
 * Return: TSC cycles.
 */
u64 apic_timer_lead_room(unsigned int cpu, u64 budget)
{
	const struct apic_timer_lead *lead = per_cpu_ptr(&apic_timer_lead, cpu);
	u64 rest;

	/* Racy read: the CPU may be writing both. 0 or the previous cost is close enough. */
	rest = data_race(apic_timer_estimate_mean(&lead->latency[APIC_TIMER_CPU_BUSY]) +
			 lead->cost_exact);
	return budget - min(budget, rest);
}

/**
 * apic_timer_lead_init() - convert limits to TSC cycles
 */
void apic_timer_lead_init(void)
{
	guess = apic_timer_ns_to_tsc(GUESS_NS);
	mean_max = apic_timer_ns_to_tsc(MEAN_MAX_NS);
}
