/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DISPATCH_H
#define _APIC_TIMER_DISPATCH_H

#include <linux/apic_timer.h>
#include <linux/percpu.h>

#include "policy/lead.h"

/**
 * struct apic_timer_dispatch - an expiry, from its interrupt to its handler
 * @function:	the handler
 * @data:	for the handler
 * @expires:	when the handler is to start, absolute TSC
 * @exact:	wait for that on the TSC
 * @skip_late:	don't run the handler when it would start too late
 * @cpu_state:	what the interrupt came upon
 * @programmed_for:	when the hardware was to fire for this expiry, absolute TSC; 0 if it
 *		didn't fire for this one, whose latency tells nothing then
 * @ready:	set: TSC when the handler could have started
 * @start:	set: TSC at which it started; the present if it was skipped
 * @skipped:	set: it was too late and was not run
 */
struct apic_timer_dispatch {
	void (*function)(unsigned long long now, unsigned long data);
	unsigned long data;
	u64 expires;
	bool exact;
	bool skip_late;
	enum apic_timer_cpu_state cpu_state;
	u64 programmed_for;
	u64 ready;
	u64 start;
	bool skipped;
};

/**
 * enum apic_timer_dispatch_way - how the handler is come to
 * @APIC_TIMER_DISPATCH_AT_ONCE: after a look at the TSC
 * @APIC_TIMER_DISPATCH_WAIT:	after a wait on the TSC
 * @APIC_TIMER_DISPATCH_WAYS:	how many there are
 */
enum apic_timer_dispatch_way {
	APIC_TIMER_DISPATCH_AT_ONCE,
	APIC_TIMER_DISPATCH_WAIT,
	APIC_TIMER_DISPATCH_WAYS
};

/**
 * struct apic_timer_dispatch_call - what calls have taken that were measured
 * @took:	the last: from the last look at the TSC to the handler's first
 *		instruction, TSC cycles
 * @least:	the least of all
 * @most:	the most of all
 * @settled:	how many there were since the least
 * @ready:	the least that it took from &apic_timer_dispatch.ready
 */
struct apic_timer_dispatch_call {
	u64 took;
	u64 least;
	u64 most;
	unsigned int settled;
	u64 ready;
};

/**
 * struct apic_timer_dispatch_cost - what a dispatch takes on a CPU, TSC cycles
 * @call:	what is taken off, by way, for the call of the handler: surely
 *		not more than it takes from the last look at the TSC to the
 *		handler's first instruction. Never rises.
 * @late:	an expiry that is ready later than this after its expiry is late
 * @learn:	twice what it takes to learn from the latency of an expiry
 * @exact:	from @ready to the handler, in mode exact with hardly a wait
 * @plain:	from @ready to the handler without one
 * @steps:	what the TSC counts in, about
 * @calls:	what was measured, by way
 *
 * Measured when the CPU was attached, and watched since.
 */
struct apic_timer_dispatch_cost {
	u64 call[APIC_TIMER_DISPATCH_WAYS];
	s64 late;
	u64 learn;
	u64 exact;
	u64 plain;
	u64 steps;
	struct apic_timer_dispatch_call calls[APIC_TIMER_DISPATCH_WAYS];
};

DECLARE_PER_CPU(struct apic_timer_dispatch_cost, apic_timer_dispatch_cost);

/* Two successive reads of the TSC are less apart, unless it is emulated. */
#define APIC_TIMER_DISPATCH_DELTAS	128
/* Larger than any call that is believed: nothing is taken off then. */
#define APIC_TIMER_DISPATCH_NO_STEPS	127

void apic_timer_dispatch(struct apic_timer_dispatch *expiry);
u64 apic_timer_dispatch_steps(const u16 *seen, unsigned int reads);
void apic_timer_dispatch_measure(void);
void apic_timer_dispatch_watch(void);
void apic_timer_dispatch_init(void);
void apic_timer_dispatch_exit(void);

/* In probe.S: what a handler is that does nothing before it looks at the TSC. */
void apic_timer_probe(unsigned long long now, unsigned long data);

#endif /* _APIC_TIMER_DISPATCH_H */
