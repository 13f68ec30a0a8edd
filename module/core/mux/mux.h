/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SHOT_H
#define _APIC_TIMER_SHOT_H

#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include <trace/events/apic_timer.h>

#include "lib/stats.h"
#include "tsc/tsc.h"

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
 * @serve_window:	an interrupt serves it from so many TSC cycles before @expires,
 *		or from the lead before if that is more
 * @hold:	TSC cycles that an event of the kernel's may be held back so that
 *		ours comes first
 * @exact:	of mode exact, and not throttled
 */
struct apic_timer_target {
	u64 expires;
	u64 lead[2];
	u64 serve_window;
	u64 hold;
	bool exact;
};

/**
 * struct apic_timer_shot - the hardware timer of a CPU
 * @deadline:	absolute TSC wanted by each user, %APIC_TIMER_NEVER for none
 * @fires:	TSC by which the hardware will have fired, however its clock
 *		drifts; %APIC_TIMER_NEVER if it isn't armed
 * @leg:	TSC cycles ahead that it was last armed
 * @alone:	the kernel's deadline instead of @deadline, and @fires, if the
 *		hardware is armed for it by the short way and nothing of ours is
 *		pending; otherwise %APIC_TIMER_NEVER. @user, @aim and @stopped
 *		are of before.
 * @own:	what the head of our queue wants
 * @serve:	TSC from which on any interrupt serves @own
 * @user:	whom the hardware is armed for
 * @aim:	TSC that the hardware was last armed for, if that was for ours
 *		and not a hop; otherwise 0
 * @lead:	TSC cycles that @aim is early
 * @held_back:	the kernel's deadline that is held back for ours,
 *		%APIC_TIMER_NEVER for none
 * @stopped:	the kernel's next event is so far away that it has stopped its
 *		tick
 * @held:	in the interrupt: nothing is armed until its end
 * @served:	the interrupt has found something of ours due
 * @entry:	TSC at the beginning of the interrupt
 * @event:	TSC at which the interrupt has called the kernel's handler, 0 if
 *		it hasn't
 * @smi:	SMIs so far at the last arming, if anybody wants to know
 *
 * Touched by its own CPU only, interrupts off; others read @fires and @alone.
 * Unless held, the hardware fires in time for each deadline. What the short way
 * touches is in one cache line.
 */
struct apic_timer_shot {
	u64 deadline[APIC_TIMER_SHOT_USERS];
	u64 fires;
	u64 leg;
	u64 alone;
	struct apic_timer_target own;
	u64 serve;
	enum apic_timer_shot_user user;
	u64 aim;
	u64 lead;
	u64 held_back;
	bool stopped;
	bool held;
	bool served;
	u64 entry;
	u64 event;
	u32 smi;
};

DECLARE_PER_CPU_ALIGNED(struct apic_timer_shot, apic_timer_shot);

/* Absolute TSC of the watchdog's next look at this CPU; %APIC_TIMER_NEVER for none */
DECLARE_PER_CPU(u64, apic_timer_shot_watch_due);

/* The watchdog's look, which mux.c knows by this only. */
extern void (*apic_timer_shot_watch)(u64 now);

/**
 * apic_timer_shot_unwatched() - whether the watchdog has nothing to do yet
 * @now:	the present TSC
 *
 * Context: Interrupts off.
 * Return: true if so.
 */
static __always_inline bool apic_timer_shot_unwatched(u64 now)
{
	return now < this_cpu_read(apic_timer_shot_watch_due);
}

/* TSC cycles from one of the kernel's ticks to the next */
extern u64 apic_timer_shot_tick;

/*
 * A clock that is not the TSC drifts from it: the kernel calibrates to perhaps
 * 100 ppm. A far shot of ours is therefore armed short of its target by this
 * part of the distance and aimed again from there, until the rest is so short
 * that drift doesn't matter (100 ppm of 2^17 cycles are 13). The kernel's events
 * are as exact as the kernel makes them.
 */
#define APIC_TIMER_SHOT_DRIFT_SHIFT	6

void apic_timer_shot_reset(void);
void apic_timer_shot_end_alone(struct apic_timer_shot *shot);
void apic_timer_shot_own(const struct apic_timer_target *target);
void apic_timer_shot_kernel(u64 tsc, u64 now);
bool apic_timer_shot_kernel_waits(const struct apic_timer_shot *shot);
bool apic_timer_shot_kernel_due(struct apic_timer_shot *shot);
void apic_timer_shot_end(struct apic_timer_shot *shot);
void apic_timer_shot_rearm(void);
u64 apic_timer_shot_leg(u64 distance, u64 max_delta, bool aim);

/* @tsc, so much earlier; never stays never. */
static inline u64 apic_timer_shot_before(u64 tsc, u64 cycles)
{
	return tsc == APIC_TIMER_NEVER ? tsc : tsc - min(tsc, cycles);
}

/* What the kernel waits for: absolute TSC. */
static inline u64 apic_timer_shot_kernel_deadline(const struct apic_timer_shot *shot)
{
	return min(shot->deadline[APIC_TIMER_SHOT_KERNEL], shot->alone);
}

/* From when on an interrupt serves a target: absolute TSC. */
static inline u64 apic_timer_shot_serve(const struct apic_timer_shot *shot,
					const struct apic_timer_target *target)
{
	return apic_timer_shot_before(target->expires,
				      max(target->lead[shot->stopped],
					  target->serve_window));
}

/**
 * apic_timer_shot_kernel_alone() - the short way to set the kernel's deadline
 * @shot:	of this CPU
 * @cycles:	in how many TSC cycles, less than 2^63
 * @now:	the present TSC
 *
 * Every clock event of the kernel's comes this way, and most of the time there
 * is nothing of ours: then it must cost the kernel next to nothing.
 *
 * Context: Interrupts off.
 * Return: true if the caller has to arm the hardware for the deadline itself;
 * false if nothing was done, and apic_timer_shot_kernel() is needed.
 */
static __always_inline bool
apic_timer_shot_kernel_alone(struct apic_timer_shot *shot, u64 cycles, u64 now)
{
	/* The long way is traced. */
	if (unlikely(shot->own.expires != APIC_TIMER_NEVER ||
		     trace_apic_timer_arm_enabled()))
		return false;
	shot->deadline[APIC_TIMER_SHOT_KERNEL] = APIC_TIMER_NEVER;
	shot->fires = APIC_TIMER_NEVER;
	shot->leg = cycles;
	shot->alone = now + cycles;
	apic_timer_stats_inc(SHOTS);
	return true;
}

/**
 * apic_timer_shot_begin_alone() - the short way through the interrupt
 * @shot:	of this CPU
 * @now:	the present TSC
 *
 * The interrupt need not be the one that was armed for the kernel: with
 * interrupts off, or in another interrupt of the timer's, the hardware may have
 * fired for what it was armed for before.
 *
 * Context: Interrupts off, first in the interrupt.
 * Return: true if it is for the kernel's event, and all that is left to do is
 * to call the kernel's handler; false if nothing was done.
 */
static __always_inline bool
apic_timer_shot_begin_alone(struct apic_timer_shot *shot, u64 now)
{
	/* The long way is traced. */
	if (unlikely(now < shot->alone ||
		     trace_apic_timer_kernel_event_enabled()))
		return false;
	shot->alone = APIC_TIMER_NEVER;
	apic_timer_stats_inc(ALONE);
	return true;
}

/**
 * apic_timer_shot_begin() - the hardware has fired: hold arming
 * @shot:	of this CPU
 * @now:	the present TSC
 *
 * Context: Interrupts off, first in the interrupt, or after
 * apic_timer_shot_begin_alone() has done nothing.
 */
static __always_inline void apic_timer_shot_begin(struct apic_timer_shot *shot,
						  u64 now)
{
	if (unlikely(shot->alone != APIC_TIMER_NEVER))
		apic_timer_shot_end_alone(shot);
	shot->entry = now;
	shot->fires = APIC_TIMER_NEVER;
	shot->held = true;
	shot->event = 0;
	shot->served = false;
	apic_timer_stats_inc(INTERRUPTS);
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
	return shot->entry >= shot->serve;
}

#endif /* _APIC_TIMER_SHOT_H */
