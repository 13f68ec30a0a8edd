// SPDX-License-Identifier: GPL-2.0
/*
 * The timers of each CPU: their queue and its lock, and programming the CPU's
 * hardware for the head of the queue, here or by interrupting that CPU.
 *
 * A timer belongs to the base of @timer->cpu, whose lock covers it. No path
 * holds the locks of two bases: while a timer moves from one base to another,
 * its cpu is APIC_TIMER_CPU_MOVING, and code that has to lock its base waits:
 *
 *	CPU0: add_apic_timer_on(timer, 1)	CPU2: del_apic_timer(timer)
 *
 *	lock base 0
 *	timer->cpu = MOVING
 *	unlock base 0
 *						timer->cpu is MOVING: spin
 *	lock base 1
 *	timer->cpu = 1
 *						timer->cpu is 1: lock base 1
 *	queue the timer, kick CPU1		  wait
 *	unlock base 1
 *						  locked; timer->cpu is still 1
 *						delete the timer from base 1
 *
 * A timer that is initialised by init_apic_timer() belongs to the CPU that called it;
 * a static timer belongs to the CPU that uses it first.
 *
 * A handler may still be running on CPU0 while its timer is pending, and
 * expires, on CPU1: see expire.c. For CPUs that go offline and modules that are
 * unloaded, see drain.c.
 */
#include <linux/cpumask.h>
#include <linux/lockdep.h>
#include <linux/processor.h>

#include "lib/stats.h"
#include "mux/mux.h"
#include "policy/mode.h"
#include "policy/qos.h"
#include "policy/target.h"
#include "policy/throttle.h"
#include "timers/base.h"
#include "timers/state.h"
#include "tsc/tsc.h"

DEFINE_PER_CPU(struct apic_timer_base, apic_timer_base);

/**
 * apic_timer_base_lock() - lock the base that a timer belongs to
 * @timer:	the timer
 * @flags:	interrupt state, for apic_timer_base_unlock()
 *
 * Return: the base, locked.
 */
struct apic_timer_base *apic_timer_base_lock(struct apic_timer_list *timer,
					     unsigned long *flags)
	__acquires(&base->lock)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	for (;;) {
		cpu = READ_ONCE(timer->cpu);
		if (likely(cpu < APIC_TIMER_CPU_NONE)) {
			base = apic_timer_base_of(cpu);
			raw_spin_lock_irqsave(&base->lock, *flags);
			/* Racy read: a timer of another base may be changing. */
			if (likely(data_race(timer->cpu == cpu)))
				return base;
			raw_spin_unlock_irqrestore(&base->lock, *flags);
		} else if (cpu == APIC_TIMER_CPU_NONE) {
			/*
			 * If several CPUs use the timer first at the same time, one of them wins.
			 */
			cmpxchg(&timer->cpu, cpu, raw_smp_processor_id());
			continue;
		}
		cpu_relax();
	}
}

/**
 * apic_timer_base_move() - move a timer to another base
 * @base:	its base, locked
 * @timer:	the timer, in no queue
 * @cpu:	CPU of the new base
 *
 * Return: the new base, locked instead of @base. Interrupts stay off.
 */
struct apic_timer_base *apic_timer_base_move(struct apic_timer_base *base,
					     struct apic_timer_list *timer,
					     unsigned int cpu)
{
	lockdep_assert_held(&base->lock);

	if (base->cpu == cpu)
		return base;

	/*
	 * The last run was here: it is the current run, or it has ended. If the
	 * last run is on another CPU, that run waits, or has waited, for the run
	 * here, and the next run only has to wait for the last one.
	 */
	if (timer->prev_cpu == base->cpu)
		timer->prev_run = base->run;
	WRITE_ONCE(timer->cpu, APIC_TIMER_CPU_MOVING);
	raw_spin_unlock(&base->lock);

	base = apic_timer_base_of(cpu);
	raw_spin_lock(&base->lock);
	WRITE_ONCE(timer->cpu, cpu);
	return base;
}

/**
 * apic_timer_base_program_head() - program this CPU's hardware for its head
 * @base:	of this CPU, locked
 */
void apic_timer_base_program_head(struct apic_timer_base *base)
{
	struct apic_timer_target target = apic_timer_base_target(base);

	apic_timer_mux_set_target(&target);
	if (target.exact)
		apic_timer_qos_want(target.expires);
}

/* Another CPU has queued a new head. */
static void program_kicked(void *unused)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&base->lock);
	if (base->online && !base->expiring)
		apic_timer_base_program_head(base);
	raw_spin_unlock(&base->lock);
}

/**
 * apic_timer_base_program() - program for a new head, here or on the base's CPU
 * @base:	the base, locked and online
 */
void apic_timer_base_program(struct apic_timer_base *base)
{
	lockdep_assert_held(&base->lock);

	/* The end of the interrupt programs the hardware. */
	if (base->expiring)
		return;

	if (base->cpu == smp_processor_id()) {
		apic_timer_base_program_head(base);
		return;
	}
	/*
	 * -EBUSY: an earlier kick is under way, and will see this head because
	 * it takes the lock. -ENXIO: the CPU is going offline, and its timers
	 * migrate, see apic_timer_drain_cpu().
	 */
	if (!smp_call_function_single_async(base->cpu, &base->kick))
		apic_timer_stats_inc(KICKS);
}

/**
 * apic_timer_base_runs() - check whether a timer's handler is running
 * @base:	the timer's base, locked
 * @timer:	the timer
 *
 * Return: true while it runs, on any CPU.
 */
bool apic_timer_base_runs(const struct apic_timer_base *base,
			  const struct apic_timer_list *timer)
{
	lockdep_assert_held(&base->lock);

	return apic_timer_base_running(base, timer) ||
	       apic_timer_base_running(apic_timer_base_of(timer->prev_cpu), timer);
}

/**
 * apic_timer_base_reprogram() - program this CPU's hardware, which has lost its state
 *
 * Context: Interrupts off; this CPU is online.
 */
void apic_timer_base_reprogram(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&base->lock);
	apic_timer_base_program_head(base);
	apic_timer_mux_reprogram();
	raw_spin_unlock(&base->lock);
}

/**
 * apic_timer_base_shift() - move all pending timers with the TSC
 * @shift:	TSC cycles by which the TSC has jumped
 *
 * The caller makes the CPUs program their hardware anew.
 *
 * Context: Interrupts off, no other CPU in this module.
 */
void apic_timer_base_shift(s64 shift)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	lockdep_assert_irqs_disabled();
	for_each_possible_cpu(cpu) {
		base = apic_timer_base_of(cpu);
		raw_spin_lock(&base->lock);
		apic_timer_queue_shift(&base->queue, shift);
		/* The following are TSC values too; handlers have not kept the CPU busy. */
		if (base->online)
			base->not_before = 0;
		apic_timer_throttle_reset(&base->throttle, apic_timer_tsc_now());
		apic_timer_throttle_forgive(&base->debt);
		raw_spin_unlock(&base->lock);
	}
}

/**
 * apic_timer_base_has_timers() - check whether timers are pending on a CPU
 * @cpu:	the CPU
 *
 * Context: Any; the answer may be outdated at once, unless interrupts are off
 * on all CPUs.
 */
bool apic_timer_base_has_timers(unsigned int cpu)
{
	return READ_ONCE(apic_timer_base_of(cpu)->queue.first);
}

/**
 * apic_timer_base_moved() - reset state that depends on this CPU's TSC, which has jumped
 *
 * Its pending timers, if there are any, have been moved.
 *
 * Context: Interrupts off.
 */
void apic_timer_base_moved(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	if (!base->online)
		return;
	raw_spin_lock(&base->lock);
	base->not_before = 0;
	apic_timer_throttle_reset(&base->throttle, apic_timer_tsc_now());
	apic_timer_throttle_forgive(&base->debt);
	raw_spin_unlock(&base->lock);
	apic_timer_base_reprogram();
}

/**
 * apic_timer_base_snapshot() - copy the next few pending timers, in the order of expiry
 * @base:	of a CPU
 * @cursor:	initialised, or as left by the previous call
 * @views:	filled in; room for APIC_TIMER_QUEUE_GROUP
 *
 * Timers may be added and removed between calls: see apic_timer_queue_walk().
 * Interrupts are off for a few timers at a time, no matter how many are pending.
 *
 * Context: Any but NMI.
 * Return: number of @views filled in; 0 at the end. The caller has to call
 * apic_timer_base_snapshot_end() in any case.
 */
unsigned int apic_timer_base_snapshot(struct apic_timer_base *base,
				      struct apic_timer_queue_cursor *cursor,
				      struct apic_timer_base_view *views)
{
	struct apic_timer_list *timers[APIC_TIMER_QUEUE_GROUP];
	unsigned int i, n;
	unsigned long flags;
	bool more;

	do {
		raw_spin_lock_irqsave(&base->lock, flags);
		more = apic_timer_queue_walk(&base->queue, cursor, timers, &n);
		for (i = 0; i < n; i++)
			views[i] = (struct apic_timer_base_view) {
				.timer = timers[i],
				.function = timers[i]->function,
				.expires = timers[i]->key,
				.flags = timers[i]->flags,
			};
		raw_spin_unlock_irqrestore(&base->lock, flags);
	} while (!n && more);
	return n;
}

/**
 * apic_timer_base_snapshot_end() - end a series of snapshots
 * @base:	as for apic_timer_base_snapshot()
 * @cursor:	the same, or only initialised
 *
 * Context: Any but NMI.
 */
void apic_timer_base_snapshot_end(struct apic_timer_base *base,
				  struct apic_timer_queue_cursor *cursor)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	apic_timer_queue_walk_end(&base->queue, cursor);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/**
 * apic_timer_base_peek() - describe the head of a queue
 * @base:	the base, locked
 * @head:	filled in; as for an empty queue if the base is offline
 */
void apic_timer_base_peek(const struct apic_timer_base *base,
			  struct apic_timer_base_head *head)
{
	const struct apic_timer_list *first = base->queue.first;

	lockdep_assert_held(&base->lock);

	*head = (struct apic_timer_base_head) {
		.expires = APIC_TIMER_NEVER,
		.budget = apic_timer_target_spin_max,
	};
	if (!first || !base->online)
		return;
	head->expires = first->key;
	head->exact = apic_timer_mode_of(first) == APIC_TIMER_EXACT ||
		      first->flags & APIC_TIMER_UNDISTURBED;
	if (head->exact)
		head->budget = apic_timer_target_budget(first);
}

/**
 * apic_timer_base_wake() - interrupt a CPU, which may be idle
 * @cpu:	the CPU; if it is this one, which is awake, nothing is done
 *
 * Context: Any but NMI.
 */
void apic_timer_base_wake(unsigned int cpu)
{
	struct apic_timer_base *base = apic_timer_base_of(cpu);
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	/* -EBUSY and -ENXIO: see apic_timer_base_program(). */
	if (base->online && cpu != smp_processor_id() &&
	    !smp_call_function_single_async(cpu, &base->kick))
		apic_timer_stats_inc(KICKS);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/**
 * apic_timer_base_init() - set up the bases, all of them offline
 */
void apic_timer_base_init(void)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	apic_timer_throttle_init();
	apic_timer_target_init();
	for_each_possible_cpu(cpu) {
		base = apic_timer_base_of(cpu);
		raw_spin_lock_init(&base->lock);
		base->cpu = cpu;
		apic_timer_queue_init(&base->queue);
		INIT_CSD(&base->kick, program_kicked, NULL);
	}
}

/**
 * apic_timer_base_online() - accept timers on this CPU
 *
 * Context: Task, bound to the CPU, whose source is attached.
 */
void apic_timer_base_online(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	WRITE_ONCE(base->online, true);
	base->open = true;
	base->not_before = 0;
	raw_spin_unlock_irqrestore(&base->lock, flags);
}
