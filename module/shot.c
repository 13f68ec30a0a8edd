// SPDX-License-Identifier: GPL-2.0
/*
 * The one place where hardware is armed: for the earliest of the deadlines
 * that share it.
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

#include "shot.h"
#include "smi.h"
#include "source.h"

DEFINE_PER_CPU(struct apic_timer_shot, apic_timer_shot);

static u64 tick;	/* TSC cycles */

/*
 * A clock that is not the TSC drifts from it: the kernel calibrates to perhaps
 * 100 ppm. A far shot of ours is therefore armed short of its target by this
 * part of the distance and aimed again from there, until the rest is so short
 * that drift doesn't matter (100 ppm of 2^17 cycles are 13). The kernel's events
 * are as exact as the kernel makes them.
 */
#define DRIFT_SHIFT	6
#define DRIFT_FREE	(1ULL << 17)

/**
 * apic_timer_shot_leg() - how far to go in one hop
 * @distance:	TSC cycles to the target
 * @reach:	most TSC cycles that the hardware can do
 * @aim:	the hardware counts another clock than the TSC, and that matters
 *
 * Return: TSC cycles, @distance if it can be done at once.
 */
u64 apic_timer_shot_leg(u64 distance, u64 reach, bool aim)
{
	if (aim && distance > DRIFT_FREE)
		distance -= max(distance >> DRIFT_SHIFT, DRIFT_FREE / 2);
	return min(distance, reach);
}

/* In how many cycles to fire for a user. */
static u64 leg_for(const struct apic_timer_shot *shot,
		   enum apic_timer_shot_user user, u64 now)
{
	const struct apic_timer_source *source = apic_timer_source;
	u64 deadline = shot->deadline[user];

	if (deadline <= now)
		return 0;
	return apic_timer_shot_leg(deadline - now, source->reach,
				   source->drifts &&
				   user == APIC_TIMER_SHOT_OWN);
}

/* Has the kernel stopped its tick? Then there is no event for a tick. */
static bool tick_stopped(u64 kernel, u64 now)
{
	return kernel > now && kernel - now > tick;
}

/* What our target means as things are. */
static void set_own_deadline(struct apic_timer_shot *shot)
{
	shot->deadline[APIC_TIMER_SHOT_OWN] =
		apic_timer_shot_before(shot->own.expires,
				       shot->own.lead[shot->stopped]);
	shot->serve = apic_timer_shot_serve(shot, &shot->own);
}

/* Choose whom to arm for: set @user, and return in how many cycles to fire. */
static u64 choose(struct apic_timer_shot *shot, u64 now)
{
	u64 own, kernel = leg_for(shot, APIC_TIMER_SHOT_KERNEL, now);

	set_own_deadline(shot);
	own = leg_for(shot, APIC_TIMER_SHOT_OWN, now);
	if (apic_timer_shot_hold_back(shot)) {
		shot->held_back = true;
	} else if (kernel < own) {
		shot->user = APIC_TIMER_SHOT_KERNEL;
		return kernel;
	}
	shot->user = APIC_TIMER_SHOT_OWN;
	return own;
}

/* Count the SMIs from here on, if anybody wants to know. */
static noinline void count_smis(struct apic_timer_shot *shot)
{
	shot->smi = apic_timer_smi_count();
}

/* Arm for the earliest deadline; for none, as late as can be. */
static void arm(struct apic_timer_shot *shot)
{
	const struct apic_timer_source *source = apic_timer_source;
	u64 kernel = shot->deadline[APIC_TIMER_SHOT_KERNEL];
	u64 now = apic_timer_tsc_now();
	u64 leg, target, fire, value;

	shot->stopped = tick_stopped(kernel, now);
	shot->aim = 0;
	if (likely(shot->own.expires == APIC_TIMER_NEVER)) {
		shot->user = APIC_TIMER_SHOT_KERNEL;
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
	value = source->program(fire);

	shot->leg = leg;
	shot->fires = fire;
	if (source->drifts && check_add_overflow(fire, leg >> DRIFT_SHIFT,
						 &shot->fires))
		shot->fires = APIC_TIMER_NEVER;

	apic_timer_stats_inc(SHOTS);
	if (unlikely(fire < target) && target != APIC_TIMER_NEVER)
		apic_timer_stats_inc(HOPS);
	trace_apic_timer_arm(target, now, leg, value);
	if (trace_apic_timer_shot_enabled())
		count_smis(shot);
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
	};
	tick = apic_timer_ns_to_tsc(TICK_NSEC);
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
	set_own_deadline(shot);
	if (!shot->held && shot->deadline[APIC_TIMER_SHOT_OWN] < shot->fires)
		arm(shot);
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
	u64 was = shot->deadline[APIC_TIMER_SHOT_KERNEL];

	lockdep_assert_irqs_disabled();
	shot->deadline[APIC_TIMER_SHOT_KERNEL] = tsc;
	if (shot->held || tsc == was)
		return;
	/* The third: going idle takes another lead. */
	if (tsc < shot->fires || shot->user == APIC_TIMER_SHOT_KERNEL ||
	    (shot->own.lead[0] != shot->own.lead[1] &&
	     shot->stopped != tick_stopped(tsc, now)))
		arm(shot);
}

/**
 * apic_timer_shot_held_back() - an event of the kernel's was held back
 * @shot:	of this CPU
 * @expires:	when the kernel wanted it, absolute TSC
 *
 * Context: Interrupts off, in the interrupt, which serves it now.
 */
void apic_timer_shot_held_back(struct apic_timer_shot *shot, u64 expires)
{
	shot->held_back = false;
	apic_timer_stats_inc(HELD_BACK);
	trace_apic_timer_hold(expires, apic_timer_tsc_now());
}

/**
 * apic_timer_shot_end() - arm the hardware for what is left
 * @shot:	of this CPU
 *
 * Context: Interrupts off, last in the interrupt.
 */
void apic_timer_shot_end(struct apic_timer_shot *shot)
{
	shot->held = false;
	arm_first(shot);
}

/**
 * apic_timer_shot_rearm() - arm again: the hardware has lost its state
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_rearm(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	shot->fires = APIC_TIMER_NEVER;
	if (!shot->held)
		arm_first(shot);
}
