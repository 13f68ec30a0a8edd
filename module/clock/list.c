// SPDX-License-Identifier: GPL-2.0
/*
 * List of the timers of clocks for which an hrtimer is pending: timers that the core does not
 * have, or not alone. It is searched when a module is unloaded, and when a PTP clock is set or
 * vanishes.
 *
 * Lock order: a timer's lock is taken before the locks here.
 */
#include <linux/apic_clock.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "list.h"

/* Number of timers checked at a time with interrupts off. */
#define AT_A_TIME	32

/**
 * struct home - the timers whose hrtimer was started on this CPU
 * @lock:	protects the other fields
 * @timers:	the list, newest last
 * @cursor:	position of next_of() in @timers; otherwise in no list
 */
struct home {
	raw_spinlock_t lock;
	struct list_head timers;
	struct list_head cursor;
};

static DEFINE_PER_CPU(struct home, homes);

/* There is only one cursor: serialise searches. */
static DEFINE_MUTEX(each_mutex);

/**
 * apic_clock_timer_enlist() - add a timer to the list
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
 * apic_clock_timer_delist() - remove a timer from the list
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
 * Don't wait for the timer's lock: it comes before ours, and its holder may be waiting for
 * ours. @use unlocks it. Not raw_spin_trylock(), to hide both from sparse.
 */
static bool try_lock(struct apic_clock_timer *timer)
{
	return _raw_spin_trylock(&timer->lock);
}

/*
 * Check a few timers after the cursor, and find the first wanted one. It cannot be freed while
 * it is in the list, or while it is locked: its owner has to delete it first.
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
 * apic_clock_list_each() - find timers and use each
 * @wanted:	the timers to find, and the function to call
 *
 * A timer that is armed meanwhile may or may not be found.
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
 * apic_clock_list_init() - initialise the lists, before any timer is armed
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
