// SPDX-License-Identifier: GPL-2.0
/*
 * The one place where hardware is armed: for the earliest of the deadlines
 * that share it.
 *
 * Nothing is ever disarmed. When a deadline moves away or goes, the hardware
 * may interrupt once for nothing and is then armed for what is left: that is
 * cheaper than an access to the hardware at every change.
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
 * 100 ppm. A far shot is therefore armed short of its target by this part of
 * the distance and aimed again from there, until the rest is so short that
 * drift doesn't matter (100 ppm of 2^17 cycles are 13).
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

static void arm(struct apic_timer_shot *shot)
{
	const struct apic_timer_source *source = apic_timer_source;
	u64 own = shot->deadline[APIC_TIMER_SHOT_OWN];
	u64 target = min(own, shot->deadline[APIC_TIMER_SHOT_KERNEL]);
	u64 now, distance, leg, value;
	bool aim;

	if (target == APIC_TIMER_NEVER ||
	    (target == shot->target && own >= shot->sure))
		return;
	shot->target = target;

	now = apic_timer_tsc_now();
	distance = target > now ? target - now : 0;
	/*
	 * The kernel's events are as exact as the kernel makes them, unless
	 * ours comes so soon after one that it would be late with it.
	 */
	aim = source->drifts && own - target <= distance >> DRIFT_SHIFT;
	shot->sure = source->drifts && !aim ?
		apic_timer_add_tsc(target, distance >> DRIFT_SHIFT) : 0;
	leg = apic_timer_shot_leg(distance, source->reach, aim);
	value = source->program(now, leg);

	apic_timer_stats_inc(SHOTS);
	if (now + leg < target)
		apic_timer_stats_inc(HOPS);
	trace_apic_timer_arm(target, now, leg, value);
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
	shot->target = APIC_TIMER_NEVER;
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

	lockdep_assert_irqs_disabled();
	shot->deadline[user] = tsc;
	if (!shot->held)
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

	shot->target = APIC_TIMER_NEVER;
	shot->held = true;
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
	arm(shot);
}

/**
 * apic_timer_shot_rearm() - arm again: the hardware has lost its state
 *
 * Context: Interrupts off.
 */
void apic_timer_shot_rearm(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	shot->target = APIC_TIMER_NEVER;
	if (!shot->held)
		arm(shot);
}
