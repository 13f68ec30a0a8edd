/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_PENDING_H
#define _APIC_TIMER_PENDING_H

/*
 * Locking a timer's base, making a timer pending and not pending: what every
 * call of the interface does, and inline for that reason.
 */
#include <linux/lockdep.h>
#include <linux/processor.h>

#include "base.h"
#include "timer.h"

/**
 * apic_timer_base_lock() - lock the base that a timer belongs to
 * @timer:	the timer
 * @flags:	interrupt state, for apic_timer_base_unlock()
 *
 * Interrupts are off from lock to unlock.
 *
 * Return: the base, locked.
 */
static __always_inline struct apic_timer_base *
apic_timer_base_lock(const struct apic_timer_list *timer, unsigned long *flags)
	__acquires(&base->lock)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	for (;;) {
		cpu = READ_ONCE(timer->cpu);
		if (likely(cpu != APIC_TIMER_CPU_MOVING)) {
			base = apic_timer_base_of(cpu);
			raw_spin_lock_irqsave(&base->lock, *flags);
			if (likely(timer->cpu == cpu))
				return base;
			raw_spin_unlock_irqrestore(&base->lock, *flags);
		}
		cpu_relax();
	}
}

/**
 * apic_timer_base_unlock() - the reverse of apic_timer_base_lock()
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
 * apic_timer_base_enqueue() - make a timer pending
 * @base:	its base, locked and online
 * @timer:	the timer, not pending
 */
static __always_inline void
apic_timer_base_enqueue(struct apic_timer_base *base,
			struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	lockdep_assert_held(&base->lock);

	apic_timer_set_state(timer, APIC_TIMER_PENDING);
	if (apic_timer_queue_add(&base->queue, timer))
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

#endif /* _APIC_TIMER_PENDING_H */
