/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SHOT_H
#define _APIC_TIMER_SHOT_H

#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include <trace/events/apic_timer.h>

#include "stats.h"
#include "tsc.h"

#define APIC_TIMER_NEVER	U64_MAX

/**
 * enum apic_timer_shot_user - who shares a CPU's one hardware timer
 * @APIC_TIMER_SHOT_OWN:	the head of our queue
 * @APIC_TIMER_SHOT_KERNEL:	the kernel's next clock event
 * @APIC_TIMER_SHOT_USERS:	how many there are
 */
enum apic_timer_shot_user {
	APIC_TIMER_SHOT_OWN,
	APIC_TIMER_SHOT_KERNEL,
	APIC_TIMER_SHOT_USERS
};

/**
 * struct apic_timer_target - a deadline of ours, and how to go about it
 * @expires:	absolute TSC, %APIC_TIMER_NEVER for none
 * @lead:	TSC cycles to be early while the kernel's tick goes [0] or is
 *		stopped [1]
 * @reach:	an interrupt serves it from so many TSC cycles before @expires,
 *		or from the lead before if that is more
 * @hold:	TSC cycles that an event of the kernel's may be held back so that
 *		ours comes first
 */
struct apic_timer_target {
	u64 expires;
	u64 lead[2];
	u64 reach;
	u64 hold;
};

/**
 * struct apic_timer_shot - the hardware timer of a CPU
 * @own:	what the head of our queue wants
 * @deadline:	absolute TSC wanted by each user, %APIC_TIMER_NEVER for none
 * @serve:	TSC from which on any interrupt serves @own
 * @user:	whom the hardware is armed for
 * @fires:	TSC by which the hardware will have fired, however its clock
 *		drifts; %APIC_TIMER_NEVER if it isn't armed
 * @aim:	TSC that the hardware was last armed for, if that was for ours
 *		and not a hop; otherwise 0
 * @leg:	TSC cycles ahead that it was last armed
 * @lead:	TSC cycles that @aim is early
 * @stopped:	the kernel's next event is so far away that it has stopped its
 *		tick
 * @held:	in the interrupt: nothing is armed until its end
 * @held_back:	the kernel's event is held back for ours
 * @entry:	TSC at the beginning of the interrupt
 * @smi:	SMIs so far at the last arming, if anybody wants to know
 *
 * Touched by its own CPU only, interrupts off. Unless held, the hardware fires
 * in time for each deadline.
 */
struct apic_timer_shot {
	struct apic_timer_target own;
	u64 deadline[APIC_TIMER_SHOT_USERS];
	u64 serve;
	enum apic_timer_shot_user user;
	u64 fires;
	u64 aim;
	u64 leg;
	u64 lead;
	bool stopped;
	bool held;
	bool held_back;
	u64 entry;
	u32 smi;
};

DECLARE_PER_CPU(struct apic_timer_shot, apic_timer_shot);

void apic_timer_shot_reset(void);
void apic_timer_shot_own(const struct apic_timer_target *target);
void apic_timer_shot_kernel(u64 tsc, u64 now);
void apic_timer_shot_held_back(struct apic_timer_shot *shot, u64 expires);
void apic_timer_shot_end(struct apic_timer_shot *shot);
void apic_timer_shot_rearm(void);
u64 apic_timer_shot_leg(u64 distance, u64 reach, bool aim);

/* @tsc, so much earlier; never stays never. */
static inline u64 apic_timer_shot_before(u64 tsc, u64 cycles)
{
	return tsc == APIC_TIMER_NEVER ? tsc : tsc - min(tsc, cycles);
}

/* From when on an interrupt serves a target: absolute TSC. */
static inline u64 apic_timer_shot_serve(const struct apic_timer_shot *shot,
					const struct apic_timer_target *target)
{
	return apic_timer_shot_before(target->expires,
				      max(target->lead[shot->stopped],
					  target->reach));
}

/*
 * Would the kernel's event come so shortly before ours that serving it would
 * make ours late? Then it comes after ours, at most @own.hold late.
 */
static inline bool apic_timer_shot_hold_back(const struct apic_timer_shot *shot)
{
	u64 own = shot->deadline[APIC_TIMER_SHOT_OWN];
	u64 kernel = shot->deadline[APIC_TIMER_SHOT_KERNEL];

	return kernel < own && own - kernel < shot->own.hold;
}

/**
 * apic_timer_shot_begin() - the hardware has fired: hold arming
 *
 * This and what follows is in line because every clock event of the kernel's
 * comes this way.
 *
 * Context: Interrupts off, first in the interrupt.
 * Return: the shot of this CPU, for the other steps of the interrupt.
 */
static __always_inline struct apic_timer_shot *apic_timer_shot_begin(void)
{
	struct apic_timer_shot *shot = this_cpu_ptr(&apic_timer_shot);

	shot->entry = apic_timer_tsc_now();
	shot->fires = APIC_TIMER_NEVER;
	shot->held = true;
	apic_timer_stats_inc(INTERRUPTS);
	return shot;
}

/**
 * apic_timer_shot_own_due() - whether this interrupt serves ours
 * @shot:	of this CPU
 *
 * Context: Interrupts off, in the interrupt.
 * Return: true if so.
 */
static __always_inline bool
apic_timer_shot_own_due(const struct apic_timer_shot *shot)
{
	if (shot->entry >= shot->serve)
		return true;
	apic_timer_stats_inc(IDLE_INTERRUPTS);
	return false;
}

/**
 * apic_timer_shot_kernel_due() - take the kernel's deadline if it has come
 * @shot:	of this CPU
 *
 * Context: Interrupts off, in the interrupt.
 * Return: true if the kernel's handler has to be called now. It is called for
 * no other reason: the one of a periodic tick counts every call.
 */
static __always_inline bool
apic_timer_shot_kernel_due(struct apic_timer_shot *shot)
{
	u64 expires = shot->deadline[APIC_TIMER_SHOT_KERNEL];

	if (expires > shot->entry && expires > apic_timer_tsc_now())
		return false;
	if (apic_timer_shot_hold_back(shot)) {
		shot->held_back = true;
		return false;
	}
	if (unlikely(shot->held_back))
		apic_timer_shot_held_back(shot, expires);

	shot->deadline[APIC_TIMER_SHOT_KERNEL] = APIC_TIMER_NEVER;
	apic_timer_stats_inc(KERNEL_EVENTS);
	trace_apic_timer_kernel_event(expires, shot->entry);
	return true;
}

#endif /* _APIC_TIMER_SHOT_H */
