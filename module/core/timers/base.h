/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_BASE_H
#define _APIC_TIMER_BASE_H

#include <linux/apic_timer.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "lib/queue.h"
#include "policy/throttle.h"

struct apic_timer_shot;
struct module;

/**
 * struct apic_timer_base - the timers of a CPU
 * @lock:	innermost lock of the module, but for that of a report; taken
 *		with interrupts off, in interrupt context too
 * @cpu:	the CPU; constant
 * @online:	takes timers. Written under @lock.
 * @open:	@online, and takes anybody's: see apic_timer_base_cancels().
 *		Under @lock.
 * @expiring:	in the interrupt, whose end will arm for the head. Under @lock.
 * @queue:	pending timers. Under @lock.
 * @running:	the timer whose handler runs now, or NULL. Written by @cpu, set
 *		under @lock and cleared with a release; compared only, never
 *		followed: the timer may be freed by its handler.
 * @run:	number of handlers run so far, with @running. Written by @cpu
 *		under @lock, before @running.
 * @not_before:	no handler runs before this TSC, 0 if free to;
 *		%APIC_TIMER_NEVER while offline. Under @lock.
 * @stretch:	how long handlers have had @cpu for themselves. @cpu only.
 * @kick:	call of @cpu from another, to arm for a new head. Under @lock.
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
	struct apic_timer_stretch stretch;
	call_single_data_t kick;
};

DECLARE_PER_CPU(struct apic_timer_base, apic_timer_base);

static inline struct apic_timer_base *apic_timer_base_of(unsigned int cpu)
{
	return per_cpu_ptr(&apic_timer_base, cpu);
}

struct apic_timer_base *apic_timer_base_lock(const struct apic_timer_list *timer,
					     unsigned long *flags)
	__acquires(&base->lock);
struct apic_timer_base *apic_timer_base_move(struct apic_timer_base *base,
					     struct apic_timer_list *timer,
					     unsigned int cpu);
void apic_timer_base_arm(struct apic_timer_base *base)
	__must_hold(&base->lock);
bool apic_timer_base_cancels(struct apic_timer_base *base,
			     struct apic_timer_list *timer)
	__must_hold(&base->lock);
bool apic_timer_base_runs(const struct apic_timer_base *base,
			  const struct apic_timer_list *timer)
	__must_hold(&base->lock);

bool apic_timer_base_in_run(const struct apic_timer_base *base,
			    const struct apic_timer_list *timer,
			    unsigned int run);

void apic_timer_base_interrupt(struct apic_timer_shot *shot);

/**
 * struct apic_timer_base_view - a pending timer as it was when looked at
 * @timer:	the timer, not to be followed
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

unsigned int apic_timer_base_look(struct apic_timer_base *base,
				  struct apic_timer_queue_cursor *cursor,
				  struct apic_timer_base_view *views);
void apic_timer_base_look_end(struct apic_timer_base *base,
			      struct apic_timer_queue_cursor *cursor);

/**
 * struct apic_timer_base_head - the timer that a CPU is armed for
 * @expires:	absolute TSC, %U64_MAX when there is none
 * @budget:	longest that it may wait, TSC cycles, or what those may that
 *		don't say
 * @exact:	it is of mode exact
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

void apic_timer_base_rearm(void);
void apic_timer_base_shift(s64 shift);
void apic_timer_base_init(void);
void apic_timer_base_online(void);
void apic_timer_base_offline(void);
void apic_timer_base_cancel_all(void);
void apic_timer_base_cancel_module(const struct module *module);

#endif /* _APIC_TIMER_BASE_H */
