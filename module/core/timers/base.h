/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_BASE_H
#define _APIC_TIMER_BASE_H

#include <linux/apic_timer.h>
#include <linux/bug.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "lib/queue.h"
#include "mux/mux.h"
#include "policy/target.h"
#include "policy/throttle.h"
#include "timers/objects.h"
#include "timers/state.h"

/**
 * struct apic_timer_base - the timers of a CPU
 * @lock:	innermost lock of the module, except that of a report; taken with
 *		interrupts off, also in interrupt context
 * @cpu:	the CPU; constant
 * @online:	accepts timers. Written under @lock.
 * @open:	@online, and accepts timers of any module: see drain.c. Under
 *		@lock.
 * @expiring:	handlers are running; the hardware is programmed after them.
 *		Under @lock.
 * @queue:	pending timers. Under @lock.
 * @running:	the timer whose handler runs now, or NULL. Written by @cpu: set
 *		under @lock, and cleared with a release. Only compared, never
 *		dereferenced, because the handler may have freed the timer.
 * @run:	number of handlers called, @running included. Written by @cpu
 *		under @lock, before @running.
 * @not_before:	TSC until which handlers are throttled; 0 if they are not,
 *		%APIC_TIMER_NEVER while offline. Under @lock.
 * @throttle:	for how long handlers have kept @cpu busy. @cpu only.
 * @debt:	for how long of that they were not throttled. @cpu only.
 * @kick:	interrupt to @cpu from another CPU, to program for a new head.
 *		Under @lock.
 */
struct apic_timer_base {
	raw_spinlock_t lock;
	unsigned int cpu;
	bool online;
	bool open;
	bool expiring;
	struct apic_timer_queue queue;
	struct apic_timer_list *running;
	unsigned int run;
	u64 not_before;
	struct apic_timer_throttle throttle;
	struct apic_timer_throttle_debt debt;
	call_single_data_t kick;
};

DECLARE_PER_CPU(struct apic_timer_base, apic_timer_base);

static inline struct apic_timer_base *apic_timer_base_of(unsigned int cpu)
{
	return per_cpu_ptr(&apic_timer_base, cpu);
}

struct apic_timer_base *apic_timer_base_lock(struct apic_timer_list *timer,
					     unsigned long *flags)
	__acquires(&base->lock);
struct apic_timer_base *apic_timer_base_move(struct apic_timer_base *base,
					     struct apic_timer_list *timer,
					     unsigned int cpu);
void apic_timer_base_program(struct apic_timer_base *base)
	__must_hold(&base->lock);
void apic_timer_base_program_head(struct apic_timer_base *base)
	__must_hold(&base->lock);
bool apic_timer_base_runs(const struct apic_timer_base *base,
			  const struct apic_timer_list *timer)
	__must_hold(&base->lock);

/* Get the head's target for the hardware of this CPU, whose base is locked. */
static inline struct apic_timer_target
apic_timer_base_target(const struct apic_timer_base *base)
{
	/* Keep a single return: with two, the compiler builds the target in memory. */
	return apic_timer_target_of(base->queue.first, base->not_before,
				    &base->throttle, base->expiring);
}

/**
 * struct apic_timer_base_view - copy of a pending timer
 * @timer:	the timer, not to be dereferenced
 * @function:	its handler
 * @expires:	its expiry, absolute TSC
 * @flags:	its flags
 */
struct apic_timer_base_view {
	const void *timer;
	const void *function;
	u64 expires;
	unsigned int flags;
};

unsigned int apic_timer_base_snapshot(struct apic_timer_base *base,
				      struct apic_timer_queue_cursor *cursor,
				      struct apic_timer_base_view *views);
void apic_timer_base_snapshot_end(struct apic_timer_base *base,
				  struct apic_timer_queue_cursor *cursor);

/**
 * struct apic_timer_base_head - the head of a CPU's queue
 * @expires:	absolute TSC, %U64_MAX if there is none
 * @budget:	its spin budget, TSC cycles; the module's default if it has none
 * @exact:	it is of mode exact, or with %APIC_TIMER_UNDISTURBED
 */
struct apic_timer_base_head {
	u64 expires;
	u64 budget;
	bool exact;
};

void apic_timer_base_peek(const struct apic_timer_base *base,
			  struct apic_timer_base_head *head)
	__must_hold(&base->lock);
void apic_timer_base_wake(unsigned int cpu);

void apic_timer_base_reprogram(void);
void apic_timer_base_shift(s64 shift);
bool apic_timer_base_has_timers(unsigned int cpu);
void apic_timer_base_moved(void);
void apic_timer_base_init(void);
void apic_timer_base_online(void);

/*
 * State changes are checked only in debug kernels and tests, because all
 * callers are known.
 *
 * For debugobjects, a timer that is shut down is not pending: it may be freed, or
 * initialised again.
 */
static inline void apic_timer_set_state(struct apic_timer_list *timer,
					enum apic_timer_state state)
{
	WARN_ONCE((IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_KUNIT)) &&
		  !apic_timer_edge_legal(timer->state, state),
		  "apic_timer: state %x to %x\n", timer->state, state);
	if (state == APIC_TIMER_PENDING)
		apic_timer_objects_activate(timer);
	else if (state == APIC_TIMER_DONE)
		apic_timer_objects_deactivate(timer);
	WRITE_ONCE(timer->state, state);
}

/*
 * Each call of the interface locks a timer's base, and queues or dequeues the timer:
 * hence these functions are inline.
 */

/**
 * apic_timer_base_lock_here() - lock this CPU's base
 * @flags:	interrupt state, for apic_timer_base_unlock()
 *
 * Interrupts are off from lock to unlock.
 *
 * Return: the base, locked.
 */
static __always_inline struct apic_timer_base *
apic_timer_base_lock_here(unsigned long *flags)
	__acquires(&base->lock)
{
	struct apic_timer_base *base;

	local_irq_save(*flags);
	base = this_cpu_ptr(&apic_timer_base);
	raw_spin_lock(&base->lock);
	return base;
}

/**
 * apic_timer_base_owns() - check whether a timer belongs to a base
 * @base:	the base, locked
 * @timer:	memory that may hold a timer
 *
 * Return: true if it does, which cannot change while @base is locked.
 */
static __always_inline bool
apic_timer_base_owns(const struct apic_timer_base *base,
		     const struct apic_timer_list *timer)
{
	return READ_ONCE(timer->cpu) == base->cpu;
}

/**
 * apic_timer_base_unlock() - unlock a base, however it was locked
 * @base:	the base
 * @flags:	interrupt state
 */
static __always_inline void apic_timer_base_unlock(struct apic_timer_base *base,
						   unsigned long flags)
	__releases(&base->lock)
{
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/**
 * apic_timer_base_insert() - make a timer pending, without programming the hardware
 * @base:	its base, locked and online
 * @timer:	the timer, not pending
 *
 * Return: true if it is the head, and apic_timer_base_program() has to be called
 * before @base is unlocked.
 */
static __always_inline bool
apic_timer_base_insert(struct apic_timer_base *base,
		       struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	lockdep_assert_held(&base->lock);

	apic_timer_set_state(timer, APIC_TIMER_PENDING);
	return apic_timer_queue_add(&base->queue, timer);
}

/**
 * apic_timer_base_dequeue() - make a timer not pending
 * @base:	its base, locked
 * @timer:	the timer, pending
 *
 * The hardware stays programmed: see mux.c.
 *
 * Return: the new head if it was the head, and is not the last; otherwise NULL. See
 * apic_timer_base_sooner().
 */
static __always_inline struct apic_timer_list *
apic_timer_base_dequeue(struct apic_timer_base *base,
			struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	struct apic_timer_list *head;

	lockdep_assert_held(&base->lock);

	head = apic_timer_queue_del(&base->queue, timer);
	apic_timer_set_state(timer, APIC_TIMER_DONE);
	return head;
}

/**
 * apic_timer_base_sooner() - check whether a new head needs the hardware sooner
 * @head:	the new head, NULL for none
 * @left:	the former one
 *
 * It has to fire for a timer at its expiry less its lead, which is at most its budget. The new
 * head's lead may be larger.
 *
 * Return: true if apic_timer_base_program() has to be called before the base is unlocked.
 */
static __always_inline bool
apic_timer_base_sooner(const struct apic_timer_list *head, const struct apic_timer_list *left)
{
	return head && unlikely(head->key - left->key < apic_timer_target_budget(head));
}

/**
 * apic_timer_base_running() - check whether a CPU runs a timer's handler
 * @base:	of the CPU
 * @timer:	the timer, not followed
 *
 * Return: false if it does not; the effects of the handler are then visible.
 */
static __always_inline bool
apic_timer_base_running(const struct apic_timer_base *base,
			const struct apic_timer_list *timer)
{
	/* Pairs with both releases of @running in expire(). */
	return smp_load_acquire(&base->running) == timer;
}

/**
 * apic_timer_base_may_run() - check whether a timer's handler may be running
 * @base:	the timer's base, locked
 * @timer:	the timer
 *
 * Return: false only if apic_timer_base_runs() is also false: the timer has stayed
 * on its CPU since its last run, and is not running there.
 */
static __always_inline bool
apic_timer_base_may_run(const struct apic_timer_base *base,
			const struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	lockdep_assert_held(&base->lock);

	return apic_timer_base_running(base, timer) ||
	       timer->prev_cpu != base->cpu;
}

/**
 * apic_timer_base_in_run() - check whether a given run of a handler is under way
 * @base:	of the CPU that runs it
 * @timer:	the timer, not followed
 * @run:	@base->run at the beginning of the run
 *
 * Return: false once it has ended; the effects of the handler are then visible.
 */
static inline bool
apic_timer_base_in_run(const struct apic_timer_base *base,
		       const struct apic_timer_list *timer, unsigned int run)
{
	if (!apic_timer_base_running(base, timer))
		return false;
	/* Pairs with the release of @run in expire(): earlier runs have ended. */
	return smp_load_acquire(&base->run) == run;
}

#endif /* _APIC_TIMER_BASE_H */
