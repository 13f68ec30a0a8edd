// SPDX-License-Identifier: GPL-2.0
/*
 * How early to arm, learnt from the latency of each expiry: the time from the
 * moment that the hardware was armed for to where the handler could start.
 *
 * What the interrupt comes upon makes most of the difference, so each kind is
 * learnt apart. Whether the tick is stopped is known when arming, for the
 * kernel stops it by way of us; whether the CPU will be idle is not.
 */
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "lib/param.h"
#include "policy/lead.h"
#include "tsc/tsc.h"

static_assert(APIC_TIMER_QUANTILE_ONE == 10000);
APIC_TIMER_PARAM_NAMED(lead_quantile, apic_timer_lead_quantile, /* not static */,
		       10000, 5000, 10000, "1/10000",
		       "part of the expiries that mode exact arms early enough for");

/* What is held back waits: not for the rarest. */
#define EVENT_QUANTILE	9999

/*
 * While little is known: longer than interrupts are off in what a busy kernel
 * does now and then, such as the refill of its random numbers (3,400 cycles).
 */
#define GUESS_NS	4000

/*
 * The most that mode mean is early: longer than it takes to wake from most idle
 * states, or to get through a hypervisor. What is later than that was late
 * because the CPU had been taken away, by a host that is overloaded or by
 * firmware: it tells nothing of the next expiry.
 */
#define MEAN_MAX_NS	100000

static u64 guess;	/* TSC cycles */
static u64 mean_max;	/* TSC cycles */

DEFINE_PER_CPU(struct apic_timer_lead, apic_timer_lead);

/**
 * apic_timer_cpu_state_name() - a class in words
 * @state:	the class
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
	/* The latency is about what it takes into the interrupt and out. */
	lead->defer = apic_timer_estimate_high(&lead->event) + lead->exact[0];
}

/* Work out the leads anew. */
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
	/* The next best guess for what has not been seen. */
	for (state = 0; state < APIC_TIMER_CPU_STATES; state++)
		lead->mean[state] = min((lead->mean[state] ?: any) + lead->cost_plain,
					mean_max);
	update_defer(lead);
}

/**
 * apic_timer_lead_reset() - forget what was learnt on this CPU
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_reset(void)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	unsigned int state;

	lockdep_assert_irqs_disabled();
	for (state = 0; state < APIC_TIMER_CPU_STATES; state++)
		apic_timer_estimate_init(&lead->latency[state], guess,
					 apic_timer_lead_quantile);
	apic_timer_estimate_init(&lead->event, guess, EVENT_QUANTILE);
	update(lead);
}

/**
 * apic_timer_lead_set_cost() - take over what a dispatch on this CPU takes
 * @exact:	TSC cycles at least, in mode exact
 * @plain:	TSC cycles at least, in the other modes
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
 * apic_timer_lead_learn() - take the latency of an expiry on this CPU into account
 * @state:	what its interrupt came upon
 * @latency:	TSC cycles
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_learn(enum apic_timer_cpu_state state, u64 latency)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	unsigned int quantile = apic_timer_lead_quantile;
	unsigned int other;

	lockdep_assert_irqs_disabled();
	apic_timer_estimate_add(&lead->latency[state], latency, quantile);
	for (other = 0; other < APIC_TIMER_CPU_STATES; other++)
		if (other != state)
			apic_timer_estimate_pass(&lead->latency[other],
						 quantile);
	update(lead);
}

/**
 * apic_timer_lead_learn_event() - take an event of the kernel's into account
 * @cycles:	TSC cycles that its handler has taken
 *
 * Context: Interrupts off.
 */
void apic_timer_lead_learn_event(u64 cycles)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);

	lockdep_assert_irqs_disabled();
	apic_timer_estimate_add_high(&lead->event, cycles, EVENT_QUANTILE);
	update_defer(lead);
}

/**
 * apic_timer_lead_room() - what of a budget is left for waking an idle CPU
 * @cpu:	the CPU
 * @budget:	longest that an expiry may wait, TSC cycles
 *
 * A busy CPU doesn't wake. What its expiries are late by, an idle CPU's are too,
 * and what it takes to wake comes on top. The mean will do: what keeps
 * interrupts off for long, an idle CPU doesn't do.
 *
 * Context: Any.
 * Return: TSC cycles.
 */
u64 apic_timer_lead_room(unsigned int cpu, u64 budget)
{
	const struct apic_timer_lead *lead = per_cpu_ptr(&apic_timer_lead, cpu);
	u64 rest;

	/* Its CPU may be writing both: 0 or the cost of before is near enough. */
	rest = data_race(apic_timer_estimate_mean(&lead->latency[APIC_TIMER_CPU_BUSY]) +
			 lead->cost_exact);
	return budget - min(budget, rest);
}

/**
 * apic_timer_lead_init() - learn how many cycles the first guess is
 */
void apic_timer_lead_init(void)
{
	guess = apic_timer_ns_to_tsc(GUESS_NS);
	mean_max = apic_timer_ns_to_tsc(MEAN_MAX_NS);
}
