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
 * @expires:	when the handler has to start, absolute TSC
 * @exact:	spin until then
 * @skip_late:	do not call the handler if it would start late
 * @cpu_state:	state of the CPU that was interrupted
 * @programmed_for: when the hardware had to fire for this expiry, absolute TSC;
 *		0 if another interrupt serves it: then it has no latency
 * @ready:	set: TSC when the handler could have started
 * @start:	set: TSC at which it started; the present TSC if it was skipped
 * @skipped:	set: it was late and was not called
 * @learnt:	set: there was time to learn from its latency
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
	bool learnt;
};

/**
 * enum apic_timer_dispatch_way - what precedes the call of a handler
 * @APIC_TIMER_DISPATCH_AT_ONCE: a read of the TSC
 * @APIC_TIMER_DISPATCH_WAIT:	a spin
 * @APIC_TIMER_DISPATCH_WAYS:	number of ways
 */
enum apic_timer_dispatch_way {
	APIC_TIMER_DISPATCH_AT_ONCE,
	APIC_TIMER_DISPATCH_WAIT,
	APIC_TIMER_DISPATCH_WAYS
};

/**
 * struct apic_timer_dispatch_call - measured calls of a handler, TSC cycles
 * @took:	the last one, from the last read of the TSC to the handler's
 *		first instruction
 * @least:	minimum
 * @most:	maximum
 * @settled:	number of calls since the minimum
 * @ready:	minimum from &apic_timer_dispatch.ready to the handler
 */
struct apic_timer_dispatch_call {
	u64 took;
	u64 least;
	u64 most;
	unsigned int settled;
	u64 ready;
};

/**
 * struct apic_timer_dispatch_cost - time that a dispatch takes on a CPU, TSC cycles
 * @call:	time subtracted for the call of the handler, by way: what each call
 *		takes, or 0 if that is not certain. Never rises.
 * @learn:	twice the minimum time for learning from a latency
 * @exact:	from @ready to the handler, in mode exact with hardly a spin
 * @plain:	from @ready to the handler, without a spin
 * @steps:	estimated step in which the TSC counts
 * @calls:	measured calls, by way
 *
 * Set when the CPU is attached, and watched from then on: see calibrate.c.
 */
struct apic_timer_dispatch_cost {
	u64 call[APIC_TIMER_DISPATCH_WAYS];
	u64 learn;
	u64 exact;
	u64 plain;
	u64 steps;
	struct apic_timer_dispatch_call calls[APIC_TIMER_DISPATCH_WAYS];
};

DECLARE_PER_CPU(struct apic_timer_dispatch_cost, apic_timer_dispatch_cost);

/* An expiry is late when its handler starts later than this, TSC cycles */
extern s64 apic_timer_dispatch_late_limit;

/* Learn from the latency of an expiry that the hardware has fired for. */
static inline void
apic_timer_dispatch_learn(const struct apic_timer_dispatch *expiry)
{
	if (expiry->programmed_for)
		apic_timer_lead_learn(expiry->cpu_state,
				      expiry->ready - expiry->programmed_for);
}

void apic_timer_dispatch(struct apic_timer_dispatch *expiry);
void apic_timer_dispatch_init(void);

#endif /* _APIC_TIMER_DISPATCH_H */
