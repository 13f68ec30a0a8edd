/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_MUX_H
#define _APIC_TIMER_MUX_H

#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include <trace/events/apic_timer.h>

#include "lib/stats.h"
#include "policy/target.h"
#include "tsc/tsc.h"

/**
 * enum apic_timer_mux_user - who shares a CPU's one hardware timer
 * @APIC_TIMER_MUX_TIMERS:	the head of our queue
 * @APIC_TIMER_MUX_KERNEL:	the kernel's next clock event
 * @APIC_TIMER_MUX_USERS:	how many there are
 */
enum apic_timer_mux_user {
	APIC_TIMER_MUX_TIMERS,
	APIC_TIMER_MUX_KERNEL,
	APIC_TIMER_MUX_USERS
};

/**
 * struct apic_timer_mux - the hardware timer of a CPU
 * @deadline:	absolute TSC wanted by each user, %APIC_TIMER_NEVER for none
 * @fires:	TSC by which the hardware will have fired, however its clock
 *		drifts; %APIC_TIMER_NEVER if it isn't armed
 * @delta:	TSC cycles ahead that it was last armed
 * @kernel_only:	the kernel's deadline instead of @deadline, and @fires, if the
 *		hardware is armed for it by the short way and nothing of ours is
 *		pending; otherwise %APIC_TIMER_NEVER. @user, @programmed_for and @tick_stopped
 *		are of before.
 * @target:	what the head of our queue wants
 * @serve_from:	TSC from which on any interrupt serves @target
 * @user:	whom the hardware is armed for
 * @programmed_for:	TSC that the hardware was last armed for, if that was for ours
 *		and not a hop; otherwise 0
 * @lead:	TSC cycles that @programmed_for is early
 * @deferred:	the kernel's deadline that is held back for ours,
 *		%APIC_TIMER_NEVER for none
 * @tick_stopped:	the kernel's next event is so far away that it has stopped its
 *		tick
 * @in_irq:	in the interrupt: nothing is armed until its end
 * @served:	the interrupt has found something of ours due
 * @entry:	TSC at the beginning of the interrupt
 * @event:	TSC at which the interrupt has called the kernel's handler, 0 if
 *		it hasn't
 * @smi:	SMIs so far at the last arming, if anybody wants to know
 *
 * Touched by its own CPU only, interrupts off; others read @fires and @kernel_only.
 * Unless held, the hardware fires in time for each deadline. What the short way
 * touches is in one cache line.
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
	u32 smi;
};

DECLARE_PER_CPU_ALIGNED(struct apic_timer_mux, apic_timer_mux);

/* Absolute TSC of the watchdog's next look at this CPU; %APIC_TIMER_NEVER for none */
DECLARE_PER_CPU(u64, apic_timer_mux_watchdog_due);

/* The watchdog's look, which mux.c knows by this only. */
extern void (*apic_timer_mux_watchdog)(u64 now);

/**
 * apic_timer_mux_watchdog_sleeps() - whether the watchdog has nothing to do yet
 * @now:	the present TSC
 *
 * Context: Interrupts off.
 * Return: true if so.
 */
static __always_inline bool apic_timer_mux_watchdog_sleeps(u64 now)
{
	return now < this_cpu_read(apic_timer_mux_watchdog_due);
}

/* TSC cycles from one of the kernel's ticks to the next */
extern u64 apic_timer_mux_tick;

/*
 * A clock that is not the TSC drifts from it: the kernel calibrates to perhaps
 * 100 ppm. A far expiry of ours is therefore armed short of its target by this
 * part of the distance and aimed again from there, until the rest is so short
 * that drift doesn't matter (100 ppm of 2^17 cycles are 13). The kernel's events
 * are as exact as the kernel makes them.
 */
#define APIC_TIMER_MUX_DRIFT_SHIFT	6

void apic_timer_mux_reset(void);
void apic_timer_mux_end_kernel_only(struct apic_timer_mux *mux);
void apic_timer_mux_set_target(const struct apic_timer_target *target);
void apic_timer_mux_set_kernel(u64 tsc, u64 now);
bool apic_timer_mux_kernel_due(const struct apic_timer_mux *mux);
bool apic_timer_mux_take_kernel(struct apic_timer_mux *mux);
void apic_timer_mux_end(struct apic_timer_mux *mux);
void apic_timer_mux_reprogram(void);
u64 apic_timer_mux_delta(u64 distance, u64 max_delta, bool drifts);

/* @tsc, so much earlier; never stays never. */
static inline u64 apic_timer_mux_before(u64 tsc, u64 cycles)
{
	return tsc == APIC_TIMER_NEVER ? tsc : tsc - min(tsc, cycles);
}

/* What the kernel waits for: absolute TSC. */
static inline u64 apic_timer_mux_kernel_deadline(const struct apic_timer_mux *mux)
{
	return min(mux->deadline[APIC_TIMER_MUX_KERNEL], mux->kernel_only);
}

/* From when on an interrupt serves a target: absolute TSC. */
static inline u64 apic_timer_mux_serve_from(const struct apic_timer_mux *mux,
					    const struct apic_timer_target *target)
{
	return apic_timer_mux_before(target->expires,
				     max(target->lead[mux->tick_stopped],
					 target->serve_window));
}

/**
 * apic_timer_mux_kernel_only() - the short way to set the kernel's deadline
 * @mux:	of this CPU
 * @cycles:	in how many TSC cycles, less than 2^63
 * @now:	the present TSC
 *
 * Every clock event of the kernel's comes this way, and most of the time there
 * is nothing of ours: then it must cost the kernel next to nothing.
 *
 * Context: Interrupts off.
 * Return: true if the caller has to arm the hardware for the deadline itself;
 * false if nothing was done, and apic_timer_mux_set_kernel() is needed.
 */
static __always_inline bool
apic_timer_mux_kernel_only(struct apic_timer_mux *mux, u64 cycles, u64 now)
{
	/* The long way is traced. */
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
 * apic_timer_mux_begin_kernel_only() - the short way through the interrupt
 * @mux:	of this CPU
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
apic_timer_mux_begin_kernel_only(struct apic_timer_mux *mux, u64 now)
{
	/* The long way is traced. */
	if (unlikely(now < mux->kernel_only ||
		     trace_apic_timer_kernel_event_enabled()))
		return false;
	mux->kernel_only = APIC_TIMER_NEVER;
	apic_timer_stats_inc(KERNEL_ONLY);
	return true;
}

/**
 * apic_timer_mux_begin() - the hardware has fired: hold arming
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
 * apic_timer_mux_timers_due() - whether this interrupt serves ours
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
