/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_TARGET_H
#define _APIC_TIMER_TARGET_H

/*
 * Policy: the target that the head of a CPU's queue sets for the hardware. The hardware
 * fires early by the learnt lead (lead.c), within the timer's budget, and by less the
 * longer handlers have kept the CPU busy (throttle.h).
 *
 * Inline, because each timer that becomes the head takes this path.
 */
#include <linux/apic_timer.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/tick.h>
#include <linux/types.h>

#include "policy/lead.h"
#include "policy/mode.h"
#include "policy/throttle.h"
#include "tsc/tsc.h"

/**
 * struct apic_timer_target - a deadline of our timers, and how to meet it
 * @expires:	absolute TSC, %APIC_TIMER_NEVER for none
 * @lead:	TSC cycles before @expires that the hardware has to fire, while
 *		the kernel's tick runs [0] or is stopped [1]
 * @serve_window: TSC cycles before @expires from which on any interrupt
 *		serves it; the lead if that is more
 * @defer_max:	TSC cycles before the hardware fires during which a kernel event
 *		is deferred until after the expiry
 * @exact:	of mode exact, or with %APIC_TIMER_UNDISTURBED, and not throttled
 */
struct apic_timer_target {
	u64 expires;
	u64 lead[2];
	u64 serve_window;
	u64 defer_max;
	bool exact;
};

/* Module parameters, TSC cycles */
extern u64 apic_timer_target_defer_max;
extern u64 apic_timer_target_spin_max;

/**
 * apic_timer_target_budget() - get the maximum time that an expiry may spin
 * @timer:	the timer
 *
 * Return: TSC cycles.
 */
static inline u64 apic_timer_target_budget(const struct apic_timer_list *timer)
{
	return timer->spin_budget ?: apic_timer_target_spin_max;
}

/* Set leads for the usual latencies only; these are longer when the tick is stopped. */
static inline void apic_timer_target_usual(struct apic_timer_target *target,
					   const struct apic_timer_lead *lead,
					   enum apic_timer_cpu_state state, u64 budget)
{
	u64 stopped = lead->mean[APIC_TIMER_CPU_TICK_STOPPED] ?
		      apic_timer_lead_usual(lead, APIC_TIMER_CPU_TICK_STOPPED) : 0;

	target->lead[0] = min(apic_timer_lead_usual(lead, state), budget);
	target->lead[1] = max(target->lead[0], min(stopped, budget));
}

/*
 * Get the state that an expiry of mode mean will find if the tick is stopped by then: this
 * CPU is idle, unless it is one of nohz_full=, whose tick is also stopped while a thread runs.
 */
static inline enum apic_timer_cpu_state
apic_timer_target_tick_stopped(enum apic_timer_cpu_state state)
{
	return state == APIC_TIMER_CPU_BUSY && tick_nohz_full_cpu(smp_processor_id()) ?
	       state : APIC_TIMER_CPU_TICK_STOPPED;
}

/**
 * apic_timer_target_of() - compute the target of this CPU
 * @head:	head of its queue, or NULL
 * @not_before:	TSC until which handlers are throttled, 0 if they are not
 * @throttle:	for how long handlers have kept the CPU busy
 * @in_irq:	handlers are running now: @throttle is up to date
 *
 * Context: Interrupts off.
 * Return: the target.
 */
static inline struct apic_timer_target
apic_timer_target_of(const struct apic_timer_list *head, u64 not_before,
		     const struct apic_timer_throttle *throttle, bool in_irq)
{
	struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	struct apic_timer_target target = {};
	unsigned int state, mode, level;
	u64 budget, leave, exact, exact_stopped;
	const u64 *cover;

	if (!head) {
		target.expires = APIC_TIMER_NEVER;
		return target;
	}

	target.expires = head->key;
	if (unlikely(not_before) &&
	    (head->key < not_before ||
	     head->key - not_before < lead->exact[1])) {
		target.expires = max(target.expires, not_before);
		return target;
	}

	mode = apic_timer_mode_of(head);
	state = is_idle_task(current) ? APIC_TIMER_CPU_IDLE :
					APIC_TIMER_CPU_BUSY;
	if (mode == APIC_TIMER_EXACT) {
		target.exact = true;
		exact = lead->exact[0];
		exact_stopped = lead->exact[1];
		budget = apic_timer_target_spin_max;
		/* A timer that chooses a quantile always has a budget. */
		if (unlikely(head->spin_budget)) {
			budget = head->spin_budget;
			if (head->flags & APIC_TIMER_COVER_MASK) {
				cover = apic_timer_lead_cover(lead, head->flags);
				exact = cover[0];
				exact_stopped = cover[1];
			}
		}
		target.defer_max = min(apic_timer_target_defer_max, lead->defer);
		target.lead[0] = min(exact, budget);
		target.lead[1] = min(exact_stopped, budget);
		/* Leaving the interrupt takes about as long as entering it. */
		leave = exact;
		level = in_irq ? throttle->level :
			apic_timer_throttle_level_at(throttle, head->key);
		if (unlikely(level)) {
			/* Spin less: the rest of the system has waited for a long time. */
			leave = lead->mean[state];
			target.lead[0] = 0;
			target.lead[1] = 0;
			if (level == 1)
				apic_timer_target_usual(&target, lead, state, budget);
		}
		/*
		 * Leaving the interrupt only to enter it again would give the
		 * rest of the system no CPU time.
		 */
		target.serve_window = min(target.lead[0] + leave, budget);
	} else {
		if (mode == APIC_TIMER_MEAN) {
			target.lead[0] = lead->mean[state];
			target.lead[1] = lead->mean[apic_timer_target_tick_stopped(state)];
		}
		if (head->flags & APIC_TIMER_UNDISTURBED) {
			target.exact = true;
			target.defer_max = min(apic_timer_target_defer_max, lead->defer);
		}
	}
	return target;
}

void apic_timer_target_init(void);

#endif /* _APIC_TIMER_TARGET_H */
