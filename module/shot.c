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
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include <trace/events/apic_timer.h>

#include "shot.h"
#include "source.h"
#include "stats.h"
#include "tsc.h"

DEFINE_PER_CPU(struct apic_timer_shot, apic_timer_shot);

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

/* Arm for the earliest deadline; for none, as late as can be. */
static void arm(struct apic_timer_shot *shot)
{
	u64 now = apic_timer_tsc_now();
	u64 leg = leg_for(shot, APIC_TIMER_SHOT_OWN, now);
	u64 kernel = leg_for(shot, APIC_TIMER_SHOT_KERNEL, now);
	u64 target, fire, value;

	shot->user = APIC_TIMER_SHOT_OWN;
	if (kernel < leg) {
		leg = kernel;
		shot->user = APIC_TIMER_SHOT_KERNEL;
	}
	fire = now + leg;
	value = apic_timer_source->program(fire);

	shot->fires = fire;
	if (apic_timer_source->drifts)
		shot->fires = apic_timer_add_tsc(fire, leg >> DRIFT_SHIFT);

	target = shot->deadline[shot->user];
	apic_timer_stats_inc(SHOTS);
	if (fire < target && target != APIC_TIMER_NEVER)
		apic_timer_stats_inc(HOPS);
	trace_apic_timer_arm(target, now, leg, value);
}

/* Arm hardware that isn't armed, if there is anything to arm it for. */
static void arm_first(struct apic_timer_shot *shot)
{
	if (min(shot->deadline[APIC_TIMER_SHOT_OWN],
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
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	lockdep_assert_irqs_disabled();
	shot->deadline[APIC_TIMER_SHOT_OWN] = APIC_TIMER_NEVER;
	shot->deadline[APIC_TIMER_SHOT_KERNEL] = APIC_TIMER_NEVER;
	shot->fires = APIC_TIMER_NEVER;
	shot->held = false;
}

/**
 * apic_timer_shot_set() - set a user's deadline on this CPU
 * @user:	whose
 * @tsc:	absolute TSC; the past means at once, %APIC_TIMER_NEVER none
 *
 * Arms the hardware, unless in its interrupt, whose end does that.
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_set(enum apic_timer_shot_user user, u64 tsc)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);
	u64 was = shot->deadline[user];

	lockdep_assert_irqs_disabled();
	shot->deadline[user] = tsc;
	if (shot->held || tsc == was)
		return;
	if (tsc < shot->fires ||
	    (user == APIC_TIMER_SHOT_KERNEL && user == shot->user))
		arm(shot);
}

/**
 * apic_timer_shot_begin() - the hardware has fired: hold arming
 *
 * Context: Interrupts off, first in the interrupt.
 */
void apic_timer_shot_begin(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	shot->fires = APIC_TIMER_NEVER;
	shot->held = true;
}

/**
 * apic_timer_shot_kernel_due() - take the kernel's deadline if it has come
 *
 * Context: Interrupts off, in the interrupt.
 * Return: true if the kernel's handler has to be called now. It is called for
 * no other reason: the one of a periodic tick counts every call.
 */
bool apic_timer_shot_kernel_due(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);
	u64 expires = shot->deadline[APIC_TIMER_SHOT_KERNEL];
	u64 now = apic_timer_tsc_now();

	if (expires > now)
		return false;

	shot->deadline[APIC_TIMER_SHOT_KERNEL] = APIC_TIMER_NEVER;
	apic_timer_stats_inc(KERNEL_EVENTS);
	trace_apic_timer_kernel_event(expires, now);
	return true;
}

/**
 * apic_timer_shot_end() - arm the hardware for what is left
 *
 * Context: Interrupts off, last in the interrupt.
 */
void apic_timer_shot_end(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

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
