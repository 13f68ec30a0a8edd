/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_MUX_H
#define _APIC_TIMER_MUX_H

#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include <trace/events/apic_timer.h>

#include "lib/stats.h"
#include "mux/fence.h"
#include "policy/target.h"
#include "tsc/tsc.h"

/**
 * enum apic_timer_mux_user - the users of a CPU's one hardware timer
 * @APIC_TIMER_MUX_TIMERS:	the timers, represented by the head of their
 *		queue
 * @APIC_TIMER_MUX_KERNEL:	the kernel, represented by its next clock event
 * @APIC_TIMER_MUX_USERS:	number of users
 */
enum apic_timer_mux_user {
	APIC_TIMER_MUX_TIMERS,
	APIC_TIMER_MUX_KERNEL,
	APIC_TIMER_MUX_USERS
};

/*
 * Target expiry while there is a fence and no timer that ever expires: later than that of
 * any timer, but not never, so that the kernel's events do not take the fast path, which
 * ignores fences.
 */
#define APIC_TIMER_FENCED	(APIC_TIMER_NEVER - 1)

/**
 * struct apic_timer_mux - the hardware timer of a CPU, and its two users
 * @deadline:	absolute TSC by which the hardware has to fire for each user,
 *		%APIC_TIMER_NEVER for none
 * @fires:	TSC by which it will have fired, even if its clock drifts;
 *		%APIC_TIMER_NEVER if it is not programmed
 * @delta:	TSC cycles that it was last programmed ahead
 * @kernel_only: the kernel's deadline instead of @deadline, and @fires, if the
 *		fast path has programmed it and no timer is pending; otherwise
 *		%APIC_TIMER_NEVER. @user, @programmed_for and @tick_stopped are
 *		out of date then.
 * @target:	target of the head of the queue, or @no_timer
 * @serve_from:	TSC from which on any interrupt serves @target
 * @user:	user that it is programmed for
 * @programmed_for: TSC that it was last programmed for, if that was for the
 *		timers and not for a hop; otherwise 0
 * @lead:	TSC cycles from @programmed_for to the expiry
 * @deferred:	when the kernel's event was first due, absolute TSC, if it is
 *		deferred until after an expiry; otherwise %APIC_TIMER_NEVER
 * @tick_stopped: the kernel's next event is so far away that its tick must be
 *		stopped
 * @in_irq:	in the interrupt, whose end programs the hardware
 * @served:	this interrupt has called a handler
 * @entry:	TSC at the beginning of this interrupt
 * @event:	TSC when this interrupt called the kernel's handler; 0 if it did
 *		not
 * @no_timer:	value of @target.expires while there is no timer that ever
 *		expires: %APIC_TIMER_FENCED while there is a fence, otherwise
 *		%APIC_TIMER_NEVER
 * @fence:	the fence
 * @smi:	number of SMIs when it was last programmed, while receipts are
 *		traced
 *
 * Accessed by its own CPU only, interrupts off; other CPUs read @fires,
 * @kernel_only and @deadline. Outside the interrupt, the hardware fires in time
 * for each deadline. All fields that the fast path accesses are in one cache
 * line.
 */
struct apic_timer_mux {
	u64 deadline[APIC_TIMER_MUX_USERS];
	u64 fires;
	u64 delta;
	u64 kernel_only;
	struct apic_timer_target target;
	u64 serve_from;
	enum apic_timer_mux_user user;
	u64 programmed_for;
	u64 lead;
	u64 deferred;
	bool tick_stopped;
	bool in_irq;
	bool served;
	u64 entry;
	u64 event;
	u64 no_timer;
	struct apic_timer_fence_state fence;
	u32 smi;
};

DECLARE_PER_CPU_ALIGNED(struct apic_timer_mux, apic_timer_mux);

/* Absolute TSC of the watchdog's next check by this CPU; %APIC_TIMER_NEVER for none */
DECLARE_PER_CPU(u64, apic_timer_mux_watchdog_due);

/* Function of that check: mux.c must not depend on the watchdog. */
extern void (*apic_timer_mux_watchdog)(u64 now);

/**
 * apic_timer_mux_watchdog_sleeps() - check whether the watchdog's next check is still ahead
 * @now:	the present TSC
 *
 * Context: Interrupts off.
 * Return: true if so.
 */
static __always_inline bool apic_timer_mux_watchdog_sleeps(u64 now)
{
	return now < this_cpu_read(apic_timer_mux_watchdog_due);
}

/* Length of the kernel's tick, TSC cycles */
extern u64 apic_timer_mux_tick;

/*
 * Hardware that counts another clock drifts from the TSC: the kernel's calibration
 * may be off by 100 ppm. For a far expiry, the hardware is therefore programmed
 * short of the target by this part of the distance, and again from there, until the
 * rest is so short that drift does not matter (100 ppm of 2^17 cycles is 13
 * cycles). The kernel's own events are as exact as the kernel makes them.
 */
#define APIC_TIMER_MUX_DRIFT_SHIFT	6

void apic_timer_mux_set_tick(void);
void apic_timer_mux_reset(void);
void apic_timer_mux_end_kernel_only(struct apic_timer_mux *mux);
void apic_timer_mux_set_target(const struct apic_timer_target *target);
void apic_timer_mux_set_kernel(u64 tsc, u64 now);
bool apic_timer_mux_kernel_due(const struct apic_timer_mux *mux);
bool apic_timer_mux_take_kernel(struct apic_timer_mux *mux);
void apic_timer_mux_end(struct apic_timer_mux *mux);
void apic_timer_mux_reprogram(void);
void apic_timer_mux_fence(u64 until, u64 max, u64 now);
u64 apic_timer_mux_delta(u64 distance, u64 max_delta, bool drifts);

/* Subtract @cycles from a TSC value; never stays never. */
static inline u64 apic_timer_mux_before(u64 tsc, u64 cycles)
{
	return tsc == APIC_TIMER_NEVER ? tsc : tsc - min(tsc, cycles);
}

/* Get the kernel's deadline, whichever path has set it: absolute TSC. */
static inline u64 apic_timer_mux_kernel_deadline(const struct apic_timer_mux *mux)
{
	return min(mux->deadline[APIC_TIMER_MUX_KERNEL], mux->kernel_only);
}

/* Compute the absolute TSC from which on an interrupt serves a target. */
static inline u64 apic_timer_mux_serve_from(const struct apic_timer_mux *mux,
					    const struct apic_timer_target *target)
{
	return apic_timer_mux_before(target->expires,
				     max(target->lead[mux->tick_stopped],
					 target->serve_window));
}

/**
 * apic_timer_mux_no_timers() - remove the timers' target
 * @mux:	of this CPU
 *
 * The hardware is left as it is: it is stopped when the kernel gives up its event, too.
 *
 * Context: Interrupts off.
 */
static __always_inline void apic_timer_mux_no_timers(struct apic_timer_mux *mux)
{
	mux->target.expires = mux->no_timer;
	mux->deadline[APIC_TIMER_MUX_TIMERS] = APIC_TIMER_NEVER;
	mux->serve_from = APIC_TIMER_NEVER;
}

/**
 * apic_timer_mux_kernel_only() - fast path to set the kernel's deadline
 * @mux:	of this CPU
 * @cycles:	TSC cycles from @now, less than 2^63
 * @now:	the present TSC
 *
 * All clock events of the kernel take this path. As long as no timer is pending, it
 * must cost the kernel next to nothing.
 *
 * Context: Interrupts off.
 * Return: true if the caller has to program the hardware for the deadline; false if
 * nothing was done, and apic_timer_mux_set_kernel() has to be called.
 */
static __always_inline bool
apic_timer_mux_kernel_only(struct apic_timer_mux *mux, u64 cycles, u64 now)
{
	/* The slow path is traced. */
	if (unlikely(mux->target.expires != APIC_TIMER_NEVER ||
		     trace_apic_timer_program_enabled()))
		return false;
	mux->deadline[APIC_TIMER_MUX_KERNEL] = APIC_TIMER_NEVER;
	mux->fires = APIC_TIMER_NEVER;
	mux->delta = cycles;
	mux->kernel_only = now + cycles;
	apic_timer_stats_inc(PROGRAMMED);
	return true;
}

/**
 * apic_timer_mux_begin_kernel_only() - fast path through the interrupt
 * @mux:	of this CPU
 * @now:	the present TSC
 *
 * This interrupt need not be the one programmed for the kernel: while interrupts
 * were off, or in another timer interrupt, the hardware may have fired for an
 * earlier deadline.
 *
 * Context: Interrupts off, first in the interrupt.
 * Return: true if only the kernel's handler has to be called; false if nothing was
 * done.
 */
static __always_inline bool
apic_timer_mux_begin_kernel_only(struct apic_timer_mux *mux, u64 now)
{
	/* The slow path is traced. */
	if (unlikely(now < mux->kernel_only ||
		     trace_apic_timer_kernel_event_enabled()))
		return false;
	mux->kernel_only = APIC_TIMER_NEVER;
	apic_timer_stats_inc(KERNEL_ONLY);
	return true;
}

/**
 * apic_timer_mux_begin() - begin the interrupt: program nothing until its end
 * @mux:	of this CPU
 * @now:	the present TSC
 *
 * Context: Interrupts off, first in the interrupt, or after
 * apic_timer_mux_begin_kernel_only() has done nothing.
 */
static __always_inline void apic_timer_mux_begin(struct apic_timer_mux *mux,
						 u64 now)
{
	if (unlikely(mux->kernel_only != APIC_TIMER_NEVER))
		apic_timer_mux_end_kernel_only(mux);
	mux->entry = now;
	mux->fires = APIC_TIMER_NEVER;
	mux->in_irq = true;
	mux->event = 0;
	mux->served = false;
	apic_timer_stats_inc(INTERRUPTS);
}

/**
 * apic_timer_mux_timers_due() - check whether this interrupt serves the timers
 * @mux:	of this CPU
 *
 * Context: Interrupts off, in the interrupt.
 * Return: true if so.
 */
static __always_inline bool
apic_timer_mux_timers_due(const struct apic_timer_mux *mux)
{
	return mux->entry >= mux->serve_from;
}

#endif /* _APIC_TIMER_MUX_H */
