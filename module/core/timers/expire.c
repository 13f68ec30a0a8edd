// SPDX-License-Identifier: GPL-2.0
/*
 * Expiry: run the handlers that are due on this CPU, in its timer interrupt.
 *
 * The base is not locked while a handler runs, so its timer may be armed on
 * another CPU, and expire there, before the handler has returned. A handler does
 * not run on two CPUs at a time: each run waits for the previous one, which
 * @timer->prev_cpu (the CPU) and @timer->prev_run (its count of runs) identify:
 *
 *	CPU0					CPU1
 *
 *	running = timer, run = 7
 *	timer->prev_cpu = 0
 *	handler: add_apic_timer_on(timer, 1)
 *	  timer->prev_run = 7
 *						interrupt, the timer is due
 *						running = timer, run = 3
 *						timer->prev_cpu = 1
 *						CPU0 is in run 7 of timer: spin
 *	handler returns
 *	running = NULL
 *						handler runs
 *
 * The number of the run is compared as well as the timer. Otherwise, the two
 * CPUs would wait for each other forever here:
 *
 *	CPU0					CPU1
 *
 *	run 7: handler arms timer on CPU1
 *						run 3 waits for run 7
 *	handler arms timer on CPU0
 *	handler returns, the timer is due:
 *	run 8 waits for run 3
 *						CPU0 runs timer, but in run 8:
 *						handler runs
 *						running = NULL
 *	handler runs
 */
#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include <trace/events/apic_timer.h>

#include "hw/smi.h"
#include "lib/stats.h"
#include "mux/mux.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "policy/target.h"
#include "policy/throttle.h"
#include "timers/base.h"
#include "timers/dispatch.h"
#include "timers/expire.h"
#include "tsc/tsc.h"

/* CPU state that this interrupt has found. */
static enum apic_timer_cpu_state cpu_state_now(const struct apic_timer_mux *mux)
{
	if (!is_idle_task(current))
		return APIC_TIMER_CPU_BUSY;
	return mux->tick_stopped ? APIC_TIMER_CPU_TICK_STOPPED : APIC_TIMER_CPU_IDLE;
}

/* Get for how long a kernel event has been deferred at @ready, by this expiry or a fence. */
static u64 deferred_for(const struct apic_timer_mux *mux, u64 ready)
{
	u64 due = mux->deadline[APIC_TIMER_MUX_KERNEL];

	/* The fast path leaves @deferred as it was when it has served the event. */
	if (due != APIC_TIMER_NEVER)
		due = min3(due, mux->deferred, mux->fence.due);
	return due < ready ? ready - due : 0;
}

/* Trace the course of an expiry, for a user who wants to know why it was late. */
static void trace_receipt(const struct apic_timer_list *timer, unsigned int mode,
			  const struct apic_timer_dispatch *expiry,
			  const struct apic_timer_mux *mux)
{
	struct apic_timer_receipt receipt = {
		.timer = timer,
		.function = expiry->function,
		.expires = expiry->expires,
		.entry = mux->entry,
		.ready = expiry->ready,
		.start = expiry->start,
		.lead = expiry->programmed_for ? mux->lead : 0,
		.delta = mux->delta,
		.deferred = deferred_for(mux, expiry->ready),
		.smi = apic_timer_smi_count() - mux->smi,
		.mode = mode,
		.cpu_state = expiry->cpu_state,
		.skipped = expiry->skipped,
	};

	trace_apic_timer_receipt(&receipt);
}

/*
 * Learning from a latency takes a third of the time of an expiry. If there was no time
 * for it while spinning, and the handler learns a latency of its own, it is enough to
 * learn from one expiry in this number.
 */
#define LEARN_RUNS	16

static bool learns_itself(const struct apic_timer_base *base, unsigned int flags, bool exact)
{
	return flags & APIC_TIMER_UNDISTURBED && !exact && base->run % LEARN_RUNS;
}

/*
 * Run the handler of the head. Drops the lock while the handler runs. Return: the
 * TSC when it was ready, if its latency is still to be learnt, otherwise 0.
 */
static u64 expire(struct apic_timer_base *base, struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	unsigned int mode = apic_timer_mode_of(timer), flags = timer->flags;
	struct apic_timer_dispatch expiry = {
		.function = timer->function,
		.data = timer->data,
		.expires = timer->key,
		.exact = mode == APIC_TIMER_EXACT,
		.skip_late = flags & APIC_TIMER_SKIP_LATE,
		.cpu_state = cpu_state_now(mux),
	};
	unsigned int prev_cpu = timer->prev_cpu, prev_run = timer->prev_run;
	s64 error;

	/* An expiry has a latency only if the hardware has fired for it. */
	if (mux->entry >= mux->programmed_for)
		expiry.programmed_for = mux->programmed_for;
	mux->programmed_for = 0;

	apic_timer_base_dequeue(base, timer);
	/* Pairs with apic_timer_base_in_run(): earlier runs have ended. */
	smp_store_release(&base->run, base->run + 1);
	/* Pairs with apic_timer_base_in_run(): whoever sees @timer also sees @run. */
	smp_store_release(&base->running, timer);
	timer->prev_cpu = base->cpu;
	raw_spin_unlock(&base->lock);

	/* Its last run, on another CPU, may not have ended: see above. */
	if (unlikely(prev_cpu != base->cpu))
		while (apic_timer_base_in_run(apic_timer_base_of(prev_cpu),
					      timer, prev_run))
			cpu_relax();

	trace_apic_timer_expire_entry(timer, expiry.function, expiry.expires,
				      apic_timer_tsc_now());
	apic_timer_dispatch(&expiry);

	/* The handler may have freed the timer. */
	if (trace_apic_timer_expire_exit_enabled())
		trace_apic_timer_expire_exit(timer, expiry.function, expiry.start,
					     apic_timer_tsc_now());
	if (trace_apic_timer_receipt_enabled())
		trace_receipt(timer, mode, &expiry, mux);
	error = expiry.start - expiry.expires;
	/* Also of one that was skipped, or that an SMI has delayed while it was spinning. */
	if (unlikely(error > apic_timer_dispatch_late_limit))
		apic_timer_stats_inc(EXPIRED_LATE);
	if (likely(!expiry.skipped)) {
		apic_timer_stats_inc(EXPIRED);
		apic_timer_stats_error(error);
	}
	if (expiry.exact)
		apic_timer_stats_add(SPIN_CYCLES, expiry.start - expiry.ready);

	raw_spin_lock(&base->lock);
	/* Pairs with apic_timer_base_running(). */
	smp_store_release(&base->running, NULL);
	if (!expiry.programmed_for || expiry.learnt || learns_itself(base, flags, expiry.exact))
		return 0;
	return expiry.ready;
}

/* Handlers are about to keep the CPU busy, or have begun to in this interrupt. */
static void begin_busy(struct apic_timer_base *base,
		       const struct apic_timer_mux *mux, u64 programmed_for)
	__must_hold(&base->lock)
{
	const struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);

	apic_timer_throttle_begin(&base->throttle, mux->entry, programmed_for,
				  lead->mean[cpu_state_now(mux)]);
}

/**
 * apic_timer_expire_due() - run the handlers that are due on this CPU
 * @mux:	of this CPU
 *
 * Called by the source from its interrupt, between apic_timer_mux_begin() and
 * apic_timer_mux_end(), if apic_timer_mux_timers_due(). If a handler arms a
 * timer for the past, the same loop runs it, never a recursion. The loop is
 * bounded: after busy_us without a break, handlers are throttled, briefly at first, and
 * for as long as they have run if that goes on. Interrupts in quick succession count
 * as one run without a break.
 *
 * Context: Hard interrupt, interrupts off.
 */
void apic_timer_expire_due(struct apic_timer_mux *mux)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);
	struct apic_timer_target target;
	u64 now = mux->entry, programmed_for = mux->programmed_for, unlearnt = 0;
	bool begun;

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&base->lock);
	if (now >= base->not_before) {
		/* The throttle ends: the rest of the system has had its turn. */
		if (unlikely(base->not_before)) {
			base->not_before = 0;
			apic_timer_throttle_reset(&base->throttle,
						  base->throttle.end);
		}
		/* Account before the first handler only if the CPU was busy for long. */
		begun = base->throttle.level;
		if (unlikely(begun)) {
			begin_busy(base, mux, programmed_for);
			apic_timer_throttle_measure(&base->throttle, now);
			/* Perhaps spinning for too large a lead takes the time, and still does. */
			if (base->throttle.start != now)
				apic_timer_lead_hurry();
		}
		base->expiring = true;
		for (;;) {
			target = apic_timer_base_target(base);
			if (now < apic_timer_mux_serve_from(mux, &target))
				break;
			if (begun && now - base->throttle.start >
					apic_timer_throttle_busy_max) {
				base->not_before =
					apic_timer_throttle_until(&base->throttle,
								  &base->debt, now);
				break;
			}
			mux->served = true;
			/* At most one expiry of an interrupt has a latency. */
			unlearnt |= expire(base, base->queue.first);
			if (!begun)
				begin_busy(base, mux, programmed_for);
			begun = true;
			now = apic_timer_tsc_now();
			apic_timer_throttle_measure(&base->throttle, now);
		}
		base->expiring = false;
		if (begun)
			apic_timer_throttle_end(&base->throttle, now);
		/* Learn only now: earlier, it would have delayed the next handler. */
		if (unlearnt)
			apic_timer_lead_learn(cpu_state_now(mux), unlearnt - programmed_for);
	}

	apic_timer_base_program_head(base);
	raw_spin_unlock(&base->lock);
}
