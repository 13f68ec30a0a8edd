// SPDX-License-Identifier: GPL-2.0
/*
 * Mux: one hardware timer on each CPU, and two deadlines.
 *
 *  kernel's next event -- set_kernel() --> deadline[KERNEL] --+
 *                                                             +--> program() --> source
 *  head of the queue ---- set_target() --> deadline[TIMERS] --+
 *                                          (expiry less lead)
 *
 * The hardware is programmed for one of them:
 *
 *  timers	kernel		programmed for
 *  ------	------		--------------
 *  none	none		nothing: it is stopped when the kernel gives up its event,
 *				because there are CPUs that do not reach their deepest
 *				idle states, nor suspend to idle, with an armed timer
 *  none	any		the kernel. Fast path, inline in mux.h: kernel_only
 *  any		none or later	the timers
 *  any		earlier		the kernel; or the timers, if serving its event
 *				first would make them late: it is deferred until
 *				after the expiry, by target.defer_max at most
 *
 * A fence (fence.c) moves deadline[KERNEL] itself. While one stands and no timer is
 * pending, the expiry of the timers' target is one short of never.
 *
 * In the interrupt, the hardware is programmed only once, at its end. The timers
 * are served first, then the kernel's event if it is due.
 *
 * When the timers' deadline moves away, the hardware is left as it is: one
 * spurious interrupt is cheaper than programming at each change. The deadline of a
 * timer that was the last, and was deleted, stays until the next interrupt, or until
 * the kernel gives up its event: from then on the kernel takes the fast path. Its own
 * deadline is always followed at once, because an idle CPU must not be woken for
 * nothing.
 *
 * A far deadline is reached in several hops: the hardware can be programmed for
 * at most max_delta, and its clock may drift.
 */
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "hw/smi.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "policy/lead.h"

DEFINE_PER_CPU(u64, apic_timer_mux_watchdog_due) = APIC_TIMER_NEVER;
void (*apic_timer_mux_watchdog)(u64 now);

const struct apic_timer_source *apic_timer_source;

DEFINE_PER_CPU_ALIGNED(struct apic_timer_mux, apic_timer_mux);

u64 apic_timer_mux_tick;

/* The kernel has stopped its tick if its next event is farther away, TSC cycles */
static u64 tick_stopped_from;

#ifndef CONFIG_APIC_TIMER_SIM
bool apic_timer_smi_counted __read_mostly;
#endif

/*
 * More than the shortest delta of the kernel's device: 30 ns for the proxy's, and 15
 * counts for a LAPIC timer that counts at 19.2 MHz, divided by 16.
 */
#define MOMENT_NS	16000

static u64 moment;	/* TSC cycles */

/* Longest delta for which drift does not matter, TSC cycles */
#define DRIFT_FREE	(1ULL << 17)

/**
 * apic_timer_mux_delta() - compute the length of the next hop
 * @distance:	TSC cycles to the target
 * @max_delta:	maximum that the hardware can be programmed for, TSC cycles
 * @drifts:	its clock drifts from the TSC, and that matters
 *
 * Return: TSC cycles; @distance if one hop will do.
 */
u64 apic_timer_mux_delta(u64 distance, u64 max_delta, bool drifts)
{
	if (drifts && distance > DRIFT_FREE)
		distance -= max(distance >> APIC_TIMER_MUX_DRIFT_SHIFT, DRIFT_FREE / 2);
	return min(distance, max_delta);
}

/* Compute in how many TSC cycles from now the hardware has to fire for a user. */
static u64 delta_for(const struct apic_timer_mux *mux,
		     enum apic_timer_mux_user user, u64 now)
{
	const struct apic_timer_source *source = apic_timer_source;
	u64 deadline = mux->deadline[user];

	if (deadline <= now)
		return 0;
	return apic_timer_mux_delta(deadline - now, source->max_delta,
				    source->drifts &&
				    user == APIC_TIMER_MUX_TIMERS);
}

/* Check whether the kernel has stopped its tick: its next event is then more than a tick away. */
static bool stops_tick(u64 kernel, u64 now)
{
	return kernel > now && kernel - now > tick_stopped_from;
}

/*
 * Set the timers' deadline from their target and the state of the tick. A timer that never
 * expires counts as none, as there may be a fence. Inline, because each timer that becomes
 * the head takes this path.
 */
static __always_inline void set_timers_deadline(struct apic_timer_mux *mux)
{
	if (unlikely(mux->target.expires == APIC_TIMER_NEVER)) {
		apic_timer_mux_no_timers(mux);
		return;
	}
	mux->deadline[APIC_TIMER_MUX_TIMERS] =
		apic_timer_mux_before(mux->target.expires,
				      mux->target.lead[mux->tick_stopped]);
	mux->serve_from = apic_timer_mux_serve_from(mux, &mux->target);
}

/*
 * Check whether serving the kernel's event first would make the timers late. The limit
 * counts from when the event was first due. An event that a fence has deferred is not
 * deferred again.
 */
static bool must_defer(const struct apic_timer_mux *mux)
{
	u64 timers = mux->deadline[APIC_TIMER_MUX_TIMERS];
	u64 kernel = mux->deadline[APIC_TIMER_MUX_KERNEL];

	return kernel < timers &&
	       timers - min(kernel, mux->deferred) < mux->target.defer_max &&
	       mux->fence.due == APIC_TIMER_NEVER;
}

/* Defer the kernel's event, perhaps not for the first time. */
static void defer(struct apic_timer_mux *mux)
{
	mux->deferred = min(mux->deferred, mux->deadline[APIC_TIMER_MUX_KERNEL]);
}

/* Choose the user to program for: set @user, and return the delta. */
static u64 choose(struct apic_timer_mux *mux, u64 now)
{
	u64 timers, kernel = delta_for(mux, APIC_TIMER_MUX_KERNEL, now);

	set_timers_deadline(mux);
	timers = delta_for(mux, APIC_TIMER_MUX_TIMERS, now);
	mux->user = APIC_TIMER_MUX_TIMERS;
	if (timers <= kernel)
		return timers;
	if (must_defer(mux)) {
		defer(mux);
		return timers;
	}
	mux->user = APIC_TIMER_MUX_KERNEL;
	/* The event is served in time after all. */
	if (mux->deferred > now)
		mux->deferred = APIC_TIMER_NEVER;
	return kernel;
}

/* Compute by when hardware programmed for @fire, in @delta cycles, will have fired. */
static u64 fires_by(u64 fire, u64 delta)
{
	if (apic_timer_source->drifts &&
	    check_add_overflow(fire, delta >> APIC_TIMER_MUX_DRIFT_SHIFT, &fire))
		return APIC_TIMER_NEVER;
	return fire;
}

/**
 * apic_timer_mux_end_kernel_only() - set the fields that the fast path leaves out
 * @mux:	of this CPU, programmed by the fast path
 *
 * Context: Interrupts off.
 */
void apic_timer_mux_end_kernel_only(struct apic_timer_mux *mux)
{
	mux->deadline[APIC_TIMER_MUX_KERNEL] = mux->kernel_only;
	mux->fires = fires_by(mux->kernel_only, mux->delta);
	mux->user = APIC_TIMER_MUX_KERNEL;
	mux->programmed_for = 0;
	mux->tick_stopped = mux->delta > apic_timer_mux_tick;
	mux->deferred = APIC_TIMER_NEVER;
	mux->kernel_only = APIC_TIMER_NEVER;
}

/* Count SMIs for the receipt of the next expiry. */
static noinline void count_smis(struct apic_timer_mux *mux)
{
	mux->smi = apic_timer_smi_count();
}

/* There is no deadline that will ever be reached: stop the hardware. */
static noinline void stop(struct apic_timer_mux *mux, u64 now)
{
	if (apic_timer_source->stop)
		apic_timer_source->stop();
	mux->delta = 0;
	mux->fires = APIC_TIMER_NEVER;
	apic_timer_stats_inc(PROGRAMMED);
	trace_apic_timer_program(APIC_TIMER_NEVER, now, 0, 0);
}

/* Program for the first deadline; stop if there is none. */
static void program(struct apic_timer_mux *mux)
{
	u64 kernel = mux->deadline[APIC_TIMER_MUX_KERNEL];
	u64 now = apic_timer_tsc_now();
	u64 delta, deadline, fire, value;

	mux->tick_stopped = stops_tick(kernel, now);
	mux->programmed_for = 0;
	if (likely(mux->target.expires >= APIC_TIMER_FENCED)) {
		mux->user = APIC_TIMER_MUX_KERNEL;
		/* A fence may defer an overdue event further, counted from when it was due. */
		if (mux->target.expires == APIC_TIMER_NEVER || mux->deferred > now)
			mux->deferred = APIC_TIMER_NEVER;
		if (kernel == APIC_TIMER_NEVER) {
			stop(mux, now);
			goto watchdog;
		}
		deadline = kernel;
		delta = delta_for(mux, APIC_TIMER_MUX_KERNEL, now);
		fire = now + delta;
	} else {
		delta = choose(mux, now);
		deadline = mux->deadline[mux->user];
		fire = now + delta;
		if (mux->user == APIC_TIMER_MUX_TIMERS && delta &&
		    fire == deadline) {
			mux->programmed_for = fire;
			mux->lead = mux->target.expires - fire;
		}
	}
	value = apic_timer_source->program(fire);

	mux->delta = delta;
	mux->fires = fires_by(fire, delta);

	apic_timer_stats_inc(PROGRAMMED);
	if (unlikely(fire < deadline))
		apic_timer_stats_inc(HOPS);
	trace_apic_timer_program(deadline, now, delta, value);
	if (trace_apic_timer_receipt_enabled())
		count_smis(mux);
watchdog:
	if (unlikely(!apic_timer_mux_watchdog_sleeps(now)))
		apic_timer_mux_watchdog(now);
}

/* Program the hardware if it is not programmed and there is a deadline. */
static void program_if_needed(struct apic_timer_mux *mux)
{
	if (min(mux->target.expires,
		mux->deadline[APIC_TIMER_MUX_KERNEL]) < APIC_TIMER_FENCED)
		program(mux);
}

/**
 * apic_timer_mux_set_tick() - set the length of a tick
 *
 * The length depends on the rate of the TSC. A source that does not serve the
 * kernel's events does not see its tick either; the tick then counts as running.
 *
 * Context: Any.
 */
void apic_timer_mux_set_tick(void)
{
	u64 tick = apic_timer_ns_to_tsc(TICK_NSEC);

	WRITE_ONCE(apic_timer_mux_tick, tick);
	WRITE_ONCE(tick_stopped_from, apic_timer_source->shared ? tick : APIC_TIMER_NEVER);
}

/**
 * apic_timer_mux_reset() - forget all deadlines of this CPU
 *
 * Context: Any, bound to the CPU.
 */
void apic_timer_mux_reset(void)
{
	struct apic_timer_mux *mux;
	unsigned long flags;

	local_irq_save(flags);
	mux = this_cpu_ptr(&apic_timer_mux);
	*mux = (struct apic_timer_mux) {
		.target.expires = APIC_TIMER_NEVER,
		.deadline = { APIC_TIMER_NEVER, APIC_TIMER_NEVER },
		.serve_from = APIC_TIMER_NEVER,
		.user = APIC_TIMER_MUX_KERNEL,
		.fires = APIC_TIMER_NEVER,
		.kernel_only = APIC_TIMER_NEVER,
		.deferred = APIC_TIMER_NEVER,
		.no_timer = APIC_TIMER_NEVER,
	};
	apic_timer_fence_reset(&mux->fence);
	local_irq_restore(flags);
	apic_timer_mux_set_tick();
	moment = apic_timer_ns_to_tsc(MOMENT_NS);
}

/**
 * apic_timer_mux_set_target() - set the timers' target on this CPU
 * @target:	target of the head of the queue
 *
 * Programs the hardware, except in its interrupt, whose end does.
 *
 * Context: Interrupts off.
 */
void apic_timer_mux_set_target(const struct apic_timer_target *target)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);

	lockdep_assert_irqs_disabled();
	mux->target = *target;
	if (mux->kernel_only != APIC_TIMER_NEVER)
		apic_timer_mux_end_kernel_only(mux);
	set_timers_deadline(mux);
	if (!mux->in_irq && mux->deadline[APIC_TIMER_MUX_TIMERS] < mux->fires)
		program(mux);
	else if (trace_apic_timer_receipt_enabled())
		count_smis(mux);
}

/* The kernel's events take the fast path again. */
static void end_fence(struct apic_timer_mux *mux)
{
	apic_timer_fence_reset(&mux->fence);
	mux->no_timer = APIC_TIMER_NEVER;
	if (mux->target.expires == APIC_TIMER_FENCED) {
		mux->target.expires = APIC_TIMER_NEVER;
		set_timers_deadline(mux);
	}
}

/*
 * Serve the kernel while there is a fence, or there was one when its event was
 * programmed. Return: when the event that is served at @expires was due.
 */
static noinline u64 serve_behind_fence(struct apic_timer_mux *mux, u64 expires, u64 now)
{
	if (mux->fence.due != APIC_TIMER_NEVER) {
		expires = mux->fence.due;
		mux->fence.due = APIC_TIMER_NEVER;
		apic_timer_stats_inc(DEFERRED);
		trace_apic_timer_defer(expires, now);
	}
	mux->fence.deferred = 0;
	if (now >= mux->fence.until)
		end_fence(mux);
	return expires;
}

/*
 * Check whether the event that the kernel programs while one is deferred is another
 * event. Whenever a task sets a kernel timer, the kernel programs an overdue event
 * again, for a moment ahead. That moment is the device's shortest delta.
 */
static bool is_another(const struct apic_timer_mux *mux, u64 tsc, u64 now)
{
	/* The fast path has served the event, and left @deferred as it was. */
	if (mux->deadline[APIC_TIMER_MUX_KERNEL] == APIC_TIMER_NEVER)
		return true;
	return tsc != mux->deferred &&
	       (mux->deferred > now || tsc > apic_timer_add_tsc(now, moment));
}

/*
 * Check whether the hardware is still armed for a timer that was deleted, although there is
 * nothing left to fire for.
 */
static bool left_armed(const struct apic_timer_mux *mux, u64 kernel)
{
	return kernel == APIC_TIMER_NEVER && mux->target.expires >= APIC_TIMER_FENCED &&
	       mux->fires != APIC_TIMER_NEVER;
}

/**
 * apic_timer_mux_set_kernel() - set the kernel's deadline on this CPU
 * @tsc:	absolute TSC; a past one is due at once, %APIC_TIMER_NEVER is none
 * @now:	the present TSC
 *
 * Programs the hardware, except in its interrupt, whose end does.
 *
 * Context: Interrupts off.
 */
void apic_timer_mux_set_kernel(u64 tsc, u64 now)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	u64 was;

	lockdep_assert_irqs_disabled();
	if (mux->kernel_only != APIC_TIMER_NEVER)
		apic_timer_mux_end_kernel_only(mux);
	if (mux->deferred != APIC_TIMER_NEVER && is_another(mux, tsc, now))
		mux->deferred = APIC_TIMER_NEVER;
	if (unlikely(mux->no_timer != APIC_TIMER_NEVER))
		tsc = max(tsc, apic_timer_fence_defer(&mux->fence, min(tsc, mux->deferred), now));
	was = mux->deadline[APIC_TIMER_MUX_KERNEL];
	mux->deadline[APIC_TIMER_MUX_KERNEL] = tsc;
	/* In suspend to idle, the kernel may give up an event that it has given up before. */
	if ((tsc == was && !left_armed(mux, tsc)) || mux->in_irq)
		return;
	/*
	 * If no timer is left, the hardware may still be programmed for one that was deleted.
	 * The last condition: the lead changes when the tick stops.
	 */
	if (tsc < mux->fires ||
	    mux->user == APIC_TIMER_MUX_KERNEL ||
	    mux->target.expires >= APIC_TIMER_FENCED ||
	    (mux->target.lead[0] != mux->target.lead[1] &&
	     mux->tick_stopped != stops_tick(tsc, now)))
		program(mux);
}

/**
 * apic_timer_mux_kernel_due() - check whether the kernel's event is due and not deferred
 * @mux:	of this CPU
 *
 * Context: Interrupts off, in the interrupt, after the timers were served.
 * Return: true if apic_timer_mux_take_kernel() has work.
 */
bool apic_timer_mux_kernel_due(const struct apic_timer_mux *mux)
{
	return mux->deadline[APIC_TIMER_MUX_KERNEL] <= apic_timer_tsc_now() &&
	       !must_defer(mux);
}

/**
 * apic_timer_mux_take_kernel() - take the kernel's deadline if its event is due
 * @mux:	of this CPU
 *
 * Context: Interrupts off, in the interrupt, after the timers were served.
 * Return: true if the kernel's handler has to be called now. Otherwise it must not
 * be called: the handler of a periodic tick counts its calls.
 */
bool apic_timer_mux_take_kernel(struct apic_timer_mux *mux)
{
	u64 expires = mux->deadline[APIC_TIMER_MUX_KERNEL];
	u64 now = apic_timer_tsc_now();

	if (expires > now)
		return false;
	if (must_defer(mux)) {
		defer(mux);
		return false;
	}
	if (mux->deferred != APIC_TIMER_NEVER) {
		/* Skip this if a fence has deferred the event since. */
		if (mux->fence.due == APIC_TIMER_NEVER) {
			expires = min(expires, mux->deferred);
			apic_timer_stats_inc(DEFERRED);
			trace_apic_timer_defer(expires, now);
		}
		mux->deferred = APIC_TIMER_NEVER;
	}
	if (unlikely(mux->no_timer != APIC_TIMER_NEVER))
		expires = serve_behind_fence(mux, expires, now);

	mux->deadline[APIC_TIMER_MUX_KERNEL] = APIC_TIMER_NEVER;
	mux->event = now;
	apic_timer_stats_inc(KERNEL_EVENTS);
	trace_apic_timer_kernel_event(expires, now);
	return true;
}

/**
 * apic_timer_mux_end() - end the interrupt: program the hardware
 * @mux:	of this CPU
 *
 * Context: Interrupts off, last in the interrupt.
 */
void apic_timer_mux_end(struct apic_timer_mux *mux)
{
	u64 now = mux->event ? apic_timer_tsc_now() : 0;

	mux->in_irq = false;
	/* If only the kernel's event is left, the fast path has programmed it. */
	if (mux->kernel_only == APIC_TIMER_NEVER)
		program_if_needed(mux);

	if (mux->event)
		apic_timer_lead_learn_event(now - mux->event);
	else if (!mux->served)
		apic_timer_stats_inc(SPURIOUS);
}

/**
 * apic_timer_mux_reprogram() - program hardware that has lost its state
 *
 * Context: Interrupts off.
 */
void apic_timer_mux_reprogram(void)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);

	if (mux->kernel_only != APIC_TIMER_NEVER)
		apic_timer_mux_end_kernel_only(mux);
	/* The TSC may have changed. */
	mux->deferred = APIC_TIMER_NEVER;
	if (mux->no_timer != APIC_TIMER_NEVER)
		end_fence(mux);
	mux->fires = APIC_TIMER_NEVER;
	if (!mux->in_irq)
		program_if_needed(mux);
}

/**
 * apic_timer_mux_fence() - keep the kernel's events away until a moment
 * @until:	absolute TSC, later than @now
 * @max:	TSC cycles by which an event may be deferred, not 0
 * @now:	the present TSC
 *
 * Context: Interrupts off; also in a handler.
 */
void apic_timer_mux_fence(u64 until, u64 max, u64 now)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);

	lockdep_assert_irqs_disabled();
	if (mux->kernel_only != APIC_TIMER_NEVER)
		apic_timer_mux_end_kernel_only(mux);
	apic_timer_fence_add(&mux->fence, until, max, now);
	mux->no_timer = APIC_TIMER_FENCED;
	if (mux->target.expires == APIC_TIMER_NEVER)
		set_timers_deadline(mux);
	/* Defer the event that is programmed already. */
	if (mux->fence.due == APIC_TIMER_NEVER &&
	    mux->deadline[APIC_TIMER_MUX_KERNEL] != APIC_TIMER_NEVER)
		apic_timer_mux_set_kernel(mux->deadline[APIC_TIMER_MUX_KERNEL], now);
}
