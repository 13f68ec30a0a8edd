/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_PENDING_H
#define _APIC_TIMER_PENDING_H

/*
 * Locking a timer's base, making a timer pending and not pending: what every
 * call of the interface does, and inline for that reason.
 */
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>

#include "timers/base.h"
#include "timers/state.h"

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
 * apic_timer_base_owns() - whether a timer belongs to a base
 * @base:	the base, locked
 * @timer:	any memory that a timer may be in
 *
 * Return: true if so, which stays so while @base is locked.
 */
static __always_inline bool
apic_timer_base_owns(const struct apic_timer_base *base,
		     const struct apic_timer_list *timer)
{
	return READ_ONCE(timer->cpu) == base->cpu;
}

/**
 * apic_timer_base_unlock() - the reverse of both ways to lock
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
 * apic_timer_base_insert() - make a timer pending, but don't arm for it yet
 * @base:	its base, locked and online
 * @timer:	the timer, not pending
 *
 * Return: true when it is the head: apic_timer_base_arm() has to be called
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
 * apic_timer_base_enqueue() - make a timer pending
 * @base:	its base, locked and online
 * @timer:	the timer, not pending
 */
static __always_inline void
apic_timer_base_enqueue(struct apic_timer_base *base,
			struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	if (apic_timer_base_insert(base, timer))
		apic_timer_base_arm(base);
}

/**
 * apic_timer_base_dequeue() - make a timer not pending
 * @base:	its base, locked
 * @timer:	the timer, pending
 *
 * The hardware stays armed: see shot.c.
 */
static __always_inline void
apic_timer_base_dequeue(struct apic_timer_base *base,
			struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	lockdep_assert_held(&base->lock);

	apic_timer_queue_del(&base->queue, timer);
	apic_timer_set_state(timer, APIC_TIMER_DONE);
}

/**
 * apic_timer_base_may_run() - whether a timer's handler may be running
 * @base:	the timer's base, locked
 * @timer:	the timer
 *
 * Return: false when apic_timer_base_runs() is false for sure, which it is for
 * a timer that has stayed on its CPU and isn't running there.
 */
static __always_inline bool
apic_timer_base_may_run(const struct apic_timer_base *base,
			const struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	lockdep_assert_held(&base->lock);

	/* Pairs with the releases in expire(): what the handler did is seen. */
	return smp_load_acquire(&base->running) == timer ||
	       timer->prev_cpu != base->cpu;
}

#endif /* _APIC_TIMER_PENDING_H */
