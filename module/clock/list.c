// SPDX-License-Identifier: GPL-2.0
/*
 * The timers of clocks that an hrtimer is pending for: those that are not the core's, or not
 * only. They are looked for when a module is unloaded, and when a PTP clock is set or goes.
 *
 * A timer's lock is the outer one of those here.
 */
#include <linux/apic_clock.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "list.h"

/* Timers that are looked at with interrupts off. */
#define AT_A_TIME	32

/**
 * struct home - the timers that an hrtimer is pending for, by the CPU that has started it
 * @lock:	for the rest
 * @timers:	the list, newest last
 * @cursor:	of next_of(), among them; otherwise in no list
 */
struct home {
	raw_spinlock_t lock;
	struct list_head timers;
	struct list_head cursor;
};

static DEFINE_PER_CPU(struct home, homes);

/* One cursor: several may look at a time. */
static DEFINE_MUTEX(each_mutex);

/**
 * apic_clock_timer_enlist() - have a timer found
 * @timer:	the timer; it may be in a list already
 *
 * Context: Under the timer's lock, interrupts off.
 */
void apic_clock_timer_enlist(struct apic_clock_timer *timer)
{
	struct home *home;

	lockdep_assert_held(&timer->lock);
	if (!list_empty(&timer->node))
		return;
	timer->home = raw_smp_processor_id();
	home = per_cpu_ptr(&homes, timer->home);
	raw_spin_lock(&home->lock);
	list_add_tail(&timer->node, &home->timers);
	raw_spin_unlock(&home->lock);
}

/**
 * apic_clock_timer_delist() - the reverse: it is the core's, or nobody's
 * @timer:	the timer; it may be in no list
 *
 * Context: Under the timer's lock, interrupts off.
 */
void apic_clock_timer_delist(struct apic_clock_timer *timer)
{
	struct home *home = per_cpu_ptr(&homes, timer->home);

	lockdep_assert_held(&timer->lock);
	raw_spin_lock(&home->lock);
	list_del_init(&timer->node);
	raw_spin_unlock(&home->lock);
}

/*
 * The lock of a timer is the outer one: who has it may be waiting for ours. It is passed on to
 * @use, which unlocks it: sparse, for which this is not raw_spin_trylock(), sees neither.
 */
static bool try_lock(struct apic_clock_timer *timer)
{
	return _raw_spin_trylock(&timer->lock);
}

/*
 * Look at a few timers behind the cursor, for the first that is wanted. It cannot be freed
 * as long as it is in the list, nor under its lock: its owner has to take it out before.
 * Return: false at the end of the list, where the cursor leaves it.
 */
static bool next_of(struct home *home, const struct apic_clock_wanted *wanted,
		    struct apic_clock_timer **found)
{
	struct apic_clock_timer *timer;
	bool more = false;
	unsigned int i;

	*found = NULL;
	raw_spin_lock(&home->lock);
	for (i = 0; !*found && i < AT_A_TIME; i++) {
		more = !list_is_last(&home->cursor, &home->timers);
		if (!more) {
			list_del_init(&home->cursor);
			break;
		}
		timer = list_entry(home->cursor.next, struct apic_clock_timer, node);
		if (wanted->is(timer, wanted->of)) {
			if (wanted->locked && !try_lock(timer))
				break;
			*found = timer;
		}
		list_move(&home->cursor, &timer->node);
	}
	raw_spin_unlock(&home->lock);
	return more;
}

static unsigned int each_in(struct home *home, const struct apic_clock_wanted *wanted)
{
	struct apic_clock_timer *timer;
	unsigned int sum = 0;
	unsigned long flags;
	bool more;

	raw_spin_lock_irqsave(&home->lock, flags);
	list_add(&home->cursor, &home->timers);
	raw_spin_unlock_irqrestore(&home->lock, flags);
	do {
		local_irq_save(flags);
		more = next_of(home, wanted, &timer);
		if (timer && wanted->locked) {
			sum += wanted->use(timer);
			timer = NULL;
		}
		local_irq_restore(flags);
		if (timer)
			sum += wanted->use(timer);
		cpu_relax();
		cond_resched();
	} while (more);
	return sum;
}

/**
 * apic_clock_list_each() - find timers
 * @wanted:	which, and what for
 *
 * Those that are armed meanwhile are found, or not.
 *
 * Context: Task. Sleeps.
 * Return: the sum of what @wanted->use has returned.
 */
unsigned int apic_clock_list_each(const struct apic_clock_wanted *wanted)
{
	unsigned int sum = 0;
	int cpu;

	mutex_lock(&each_mutex);
	for_each_possible_cpu(cpu)
		sum += each_in(per_cpu_ptr(&homes, cpu), wanted);
	mutex_unlock(&each_mutex);
	return sum;
}

/**
 * apic_clock_list_init() - before a timer is armed
 */
void apic_clock_list_init(void)
{
	struct home *home;
	int cpu;

	for_each_possible_cpu(cpu) {
		home = per_cpu_ptr(&homes, cpu);
		raw_spin_lock_init(&home->lock);
		INIT_LIST_HEAD(&home->timers);
		INIT_LIST_HEAD(&home->cursor);
	}
}
