// SPDX-License-Identifier: GPL-2.0
/*
 * Arming the hardware: for the earliest of the deadlines that share it. While
 * the kernel's is the only one there is a short way, in shot.h.
 *
 * A deadline of ours that goes, or moves away, leaves the hardware as it is: it
 * interrupts once for nothing, which is cheaper than an access to the hardware
 * at every change. The kernel's is followed at once, for an idle CPU should not
 * be woken for nothing.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "hw/smi.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "policy/lead.h"

DEFINE_PER_CPU(u64, apic_timer_shot_watch_due) = APIC_TIMER_NEVER;
void (*apic_timer_shot_watch)(u64 now);

const struct apic_timer_source *apic_timer_source;

DEFINE_PER_CPU_ALIGNED(struct apic_timer_shot, apic_timer_shot);

u64 apic_timer_shot_tick;

#ifndef CONFIG_APIC_TIMER_SIM
bool apic_timer_smi_counted __read_mostly;
#endif

/* So far a clock that is not the TSC is trusted, TSC cycles. */
#define DRIFT_FREE	(1ULL << 17)

/**
 * apic_timer_shot_leg() - how far to go in one hop
 * @distance:	TSC cycles to the target
 * @max_delta:	most TSC cycles that the hardware can do
 * @aim:	the hardware counts another clock than the TSC, and that matters
 *
 * Return: TSC cycles, @distance if it can be done at once.
 */
u64 apic_timer_shot_leg(u64 distance, u64 max_delta, bool aim)
{
	if (aim && distance > DRIFT_FREE)
		distance -= max(distance >> APIC_TIMER_SHOT_DRIFT_SHIFT, DRIFT_FREE / 2);
	return min(distance, max_delta);
}

/* In how many cycles to fire for a user. */
static u64 leg_for(const struct apic_timer_shot *shot,
		   enum apic_timer_shot_user user, u64 now)
{
	const struct apic_timer_source *source = apic_timer_source;
	u64 deadline = shot->deadline[user];

	if (deadline <= now)
		return 0;
	return apic_timer_shot_leg(deadline - now, source->max_delta,
				   source->drifts &&
				   user == APIC_TIMER_SHOT_OWN);
}

/* Has the kernel stopped its tick? Then there is no event for a tick. */
static bool tick_stopped(u64 kernel, u64 now)
{
	return kernel > now && kernel - now > apic_timer_shot_tick;
}

/* What our target means as things are. */
static void set_own_deadline(struct apic_timer_shot *shot)
{
	shot->deadline[APIC_TIMER_SHOT_OWN] =
		apic_timer_shot_before(shot->own.expires,
				       shot->own.lead[shot->stopped]);
	shot->serve = apic_timer_shot_serve(shot, &shot->own);
}

/*
 * Would the kernel's event come so shortly before ours that serving it would
 * make ours late? Then it comes after ours, at most @own.hold late.
 */
static bool hold_back(const struct apic_timer_shot *shot)
{
	u64 own = shot->deadline[APIC_TIMER_SHOT_OWN];
	u64 kernel = shot->deadline[APIC_TIMER_SHOT_KERNEL];

	return kernel < own && own - kernel < shot->own.hold;
}

/* Choose whom to arm for: set @user, and return in how many cycles to fire. */
static u64 choose(struct apic_timer_shot *shot, u64 now)
{
	u64 own, kernel = leg_for(shot, APIC_TIMER_SHOT_KERNEL, now);

	set_own_deadline(shot);
	own = leg_for(shot, APIC_TIMER_SHOT_OWN, now);
	shot->user = APIC_TIMER_SHOT_OWN;
	if (own <= kernel)
		return own;
	if (hold_back(shot)) {
		shot->held_back = shot->deadline[APIC_TIMER_SHOT_KERNEL];
		return own;
	}
	shot->user = APIC_TIMER_SHOT_KERNEL;
	/* It was to be held back, and comes in time after all. */
	if (kernel)
		shot->held_back = APIC_TIMER_NEVER;
	return kernel;
}

/*
 * By when the hardware will have fired that was armed for @fire, @leg cycles
 * ahead.
 */
static u64 fires_by(u64 fire, u64 leg)
{
	if (apic_timer_source->drifts &&
	    check_add_overflow(fire, leg >> APIC_TIMER_SHOT_DRIFT_SHIFT, &fire))
		return APIC_TIMER_NEVER;
	return fire;
}

/**
 * apic_timer_shot_end_alone() - do what the short way has left out
 * @shot:	of this CPU, armed by the short way
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_end_alone(struct apic_timer_shot *shot)
{
	shot->deadline[APIC_TIMER_SHOT_KERNEL] = shot->alone;
	shot->fires = fires_by(shot->alone, shot->leg);
	shot->user = APIC_TIMER_SHOT_KERNEL;
	shot->aim = 0;
	shot->stopped = shot->leg > apic_timer_shot_tick;
	shot->alone = APIC_TIMER_NEVER;
}

/* Count the SMIs from here on, if anybody wants to know. */
static noinline void count_smis(struct apic_timer_shot *shot)
{
	shot->smi = apic_timer_smi_count();
}

/* Arm for the earliest deadline; for none, as late as can be. */
static void arm(struct apic_timer_shot *shot)
{
	u64 kernel = shot->deadline[APIC_TIMER_SHOT_KERNEL];
	u64 now = apic_timer_tsc_now();
	u64 leg, target, fire, value;

	shot->stopped = tick_stopped(kernel, now);
	shot->aim = 0;
	if (likely(shot->own.expires == APIC_TIMER_NEVER)) {
		shot->user = APIC_TIMER_SHOT_KERNEL;
		shot->held_back = APIC_TIMER_NEVER;
		target = kernel;
		leg = leg_for(shot, APIC_TIMER_SHOT_KERNEL, now);
		fire = now + leg;
	} else {
		leg = choose(shot, now);
		target = shot->deadline[shot->user];
		fire = now + leg;
		if (shot->user == APIC_TIMER_SHOT_OWN && leg &&
		    fire == target) {
			shot->aim = fire;
			shot->lead = shot->own.expires - fire;
		}
	}
	value = apic_timer_source->program(fire);

	shot->leg = leg;
	shot->fires = fires_by(fire, leg);

	apic_timer_stats_inc(SHOTS);
	if (unlikely(fire < target) && target != APIC_TIMER_NEVER)
		apic_timer_stats_inc(HOPS);
	trace_apic_timer_arm(target, now, leg, value);
	if (trace_apic_timer_shot_enabled())
		count_smis(shot);
	if (unlikely(!apic_timer_shot_unwatched(now)))
		apic_timer_shot_watch(now);
}

/* Arm hardware that isn't armed, if there is anything to arm it for. */
static void arm_first(struct apic_timer_shot *shot)
{
	if (min(shot->own.expires,
		shot->deadline[APIC_TIMER_SHOT_KERNEL]) != APIC_TIMER_NEVER)
		arm(shot);
}

/**
 * apic_timer_shot_reset() - forget all deadlines of this CPU
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_reset(void)
{
	lockdep_assert_irqs_disabled();
	*this_cpu_ptr(&apic_timer_shot) = (struct apic_timer_shot) {
		.own.expires = APIC_TIMER_NEVER,
		.deadline = { APIC_TIMER_NEVER, APIC_TIMER_NEVER },
		.serve = APIC_TIMER_NEVER,
		.user = APIC_TIMER_SHOT_KERNEL,
		.fires = APIC_TIMER_NEVER,
		.alone = APIC_TIMER_NEVER,
		.held_back = APIC_TIMER_NEVER,
	};
	apic_timer_shot_tick = apic_timer_ns_to_tsc(TICK_NSEC);
}

/**
 * apic_timer_shot_own() - set our target on this CPU
 * @target:	what the head of the queue wants
 *
 * Arms the hardware, unless in its interrupt, whose end does that.
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_own(const struct apic_timer_target *target)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	lockdep_assert_irqs_disabled();
	shot->own = *target;
	if (shot->alone != APIC_TIMER_NEVER)
		apic_timer_shot_end_alone(shot);
	set_own_deadline(shot);
	if (!shot->held && shot->deadline[APIC_TIMER_SHOT_OWN] < shot->fires)
		arm(shot);
	else if (trace_apic_timer_shot_enabled())
		count_smis(shot);
}

/**
 * apic_timer_shot_kernel() - set the kernel's deadline on this CPU
 * @tsc:	absolute TSC; the past means at once, %APIC_TIMER_NEVER none
 * @now:	the present TSC
 *
 * Arms the hardware, unless in its interrupt, whose end does that.
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_kernel(u64 tsc, u64 now)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);
	u64 was;

	lockdep_assert_irqs_disabled();
	if (shot->alone != APIC_TIMER_NEVER)
		apic_timer_shot_end_alone(shot);
	was = shot->deadline[APIC_TIMER_SHOT_KERNEL];
	shot->deadline[APIC_TIMER_SHOT_KERNEL] = tsc;
	if (tsc == was || shot->held)
		return;
	/* The last: going idle takes another lead. */
	if (tsc < shot->fires ||
	    shot->user == APIC_TIMER_SHOT_KERNEL ||
	    (shot->own.lead[0] != shot->own.lead[1] &&
	     shot->stopped != tick_stopped(tsc, now)))
		arm(shot);
}

/**
 * apic_timer_shot_kernel_waits() - whether it is time for the kernel's event
 * @shot:	of this CPU
 *
 * Context: Interrupts off, in the interrupt, after ours.
 * Return: true if apic_timer_shot_kernel_due() has work.
 */
bool apic_timer_shot_kernel_waits(const struct apic_timer_shot *shot)
{
	return shot->deadline[APIC_TIMER_SHOT_KERNEL] <= apic_timer_tsc_now() &&
	       !hold_back(shot);
}

/**
 * apic_timer_shot_kernel_due() - take the kernel's deadline if it has come
 * @shot:	of this CPU
 *
 * Context: Interrupts off, in the interrupt, after ours.
 * Return: true if the kernel's handler has to be called now. It is called for
 * no other reason: the one of a periodic tick counts every call.
 */
bool apic_timer_shot_kernel_due(struct apic_timer_shot *shot)
{
	u64 expires = shot->deadline[APIC_TIMER_SHOT_KERNEL];
	u64 now = apic_timer_tsc_now();

	if (expires > now)
		return false;
	if (hold_back(shot)) {
		shot->held_back = expires;
		return false;
	}
	if (shot->held_back == expires) {
		shot->held_back = APIC_TIMER_NEVER;
		apic_timer_stats_inc(HELD_BACK);
		trace_apic_timer_hold(expires, now);
	}

	shot->deadline[APIC_TIMER_SHOT_KERNEL] = APIC_TIMER_NEVER;
	shot->event = now;
	apic_timer_stats_inc(KERNEL_EVENTS);
	trace_apic_timer_kernel_event(expires, shot->entry);
	return true;
}

/**
 * apic_timer_shot_end() - arm the hardware for what is left
 * @shot:	of this CPU
 *
 * Context: Interrupts off, last in the interrupt.
 */
void apic_timer_shot_end(struct apic_timer_shot *shot)
{
	u64 now = shot->event ? apic_timer_tsc_now() : 0;

	shot->held = false;
	/* Unless nothing of ours is left, and the kernel has set its event. */
	if (shot->alone == APIC_TIMER_NEVER)
		arm_first(shot);

	if (shot->event)
		apic_timer_lead_learn_event(now - shot->event);
	else if (!shot->served)
		apic_timer_stats_inc(IDLE_INTERRUPTS);
}

/**
 * apic_timer_shot_rearm() - arm again: the hardware has lost its state
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_rearm(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	if (shot->alone != APIC_TIMER_NEVER)
		apic_timer_shot_end_alone(shot);
	shot->fires = APIC_TIMER_NEVER;
	if (!shot->held)
		arm_first(shot);
}
