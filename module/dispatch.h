/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DISPATCH_H
#define _APIC_TIMER_DISPATCH_H

#include <linux/apic_timer.h>
#include <linux/percpu.h>

#include "lead.h"

/**
 * struct apic_timer_dispatch - a shot, from its interrupt to its handler
 * @function:	the handler
 * @data:	for the handler
 * @expires:	when the handler is to start, absolute TSC
 * @exact:	wait for that on the TSC
 * @skip_late:	don't run the handler when it would start too late
 * @class:	what the interrupt came upon
 * @aim:	when the hardware was to fire for this shot, absolute TSC; 0 if it
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
	enum apic_timer_lead_class class;
	u64 aim;
	u64 ready;
	u64 start;
	bool skipped;
};

/**
 * struct apic_timer_dispatch_cost - what a dispatch takes on a CPU, TSC cycles
 * @call:	from the last look at the TSC to the handler's first instruction
 * @exact:	from @ready to there, in mode exact with nothing to wait for
 * @plain:	from @ready to there, in the other modes
 * @learn:	twice what it takes to learn from the latency of a shot
 *
 * The least that were measured when the CPU was attached; @call is a bit less
 * where it varies.
 */
struct apic_timer_dispatch_cost {
	u64 call;
	u64 exact;
	u64 plain;
	u64 learn;
};

DECLARE_PER_CPU(struct apic_timer_dispatch_cost, apic_timer_dispatch_cost);

void apic_timer_dispatch(struct apic_timer_dispatch *shot);
void apic_timer_dispatch_measure(void);
void apic_timer_dispatch_init(void);

#endif /* _APIC_TIMER_DISPATCH_H */
