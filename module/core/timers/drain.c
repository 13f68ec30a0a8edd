// SPDX-License-Identifier: GPL-2.0
/*
 * Drain: take pending timers out of a base. When its CPU goes offline, they
 * migrate; when their module, or apic_timer, is unloaded, they are cancelled.
 *
 * Timers migrate one after the other. A timer stays PENDING all the time, and
 * code that has to lock its base waits while its cpu is APIC_TIMER_CPU_MOVING:
 *
 *	CPU1 goes offline			CPU0
 *
 *	base 1: online = false
 *						add_apic_timer_on(other, 1): -ENODEV
 *	lock base 1, dequeue the head
 *	head->cpu = MOVING
 *	unlock base 1
 *						apic_timer_pending(head): true
 *						del_apic_timer(head): spin
 *	lock base 0
 *	head->cpu = 0, queue it
 *	  if it is the new head, kick CPU0
 *	unlock base 0
 *						lock base 0: delete it from there
 *
 * Unloading a module: if its timers were only cancelled on one CPU after the other,
 * a handler could arm one on a CPU whose timers are cancelled already:
 *
 *	CPU0: rmmod				CPU1: handler of the module
 *
 *	cancel the timers of base 0
 *						add_apic_timer_on(timer, 0)
 *	cancel the timers of base 1
 *	free the module's memory
 *	  a timer in it is pending on CPU0
 *
 * So all bases are closed to the module's timers first. Calls that arm a timer see
 * that under the lock, and cancel the timer instead if it belongs to the module:
 *
 *	CPU0: rmmod				CPU1: handler of the module
 *
 *	each base: lock, open = false, unlock
 *						add_apic_timer_on(timer, 0): -ENODEV
 *	cancel the timers of base 0
 *	cancel the timers of base 1
 *	wait for the handler that CPU1 runs
 *						handler returns
 *	open the bases
 *	free the module's memory
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/spinlock.h>

#include <trace/events/apic_timer.h>

#include "lib/stats.h"
#include "mux/mux.h"
#include "timers/base.h"
#include "timers/drain.h"
#include "timers/state.h"

/*
 * Number of timers cancelled by one unload, or by one CPU that goes offline, for one
 * message per handler. The lock of CPU hotplug serialises these.
 */
static struct {
	raw_spinlock_t lock;	/* inside a base's */
	unsigned int size;
	unsigned long others;
	struct {
		const void *function;
		unsigned long count;
	} handlers[8];
	char name[KSYM_SYMBOL_LEN];
} report = { .lock = __RAW_SPIN_LOCK_UNLOCKED(report.lock) };

static void report_add(const void *function, unsigned int count)
{
	unsigned int i;

	raw_spin_lock(&report.lock);
	for (i = 0; i < report.size; i++)
		if (report.handlers[i].function == function)
			break;
	if (i == ARRAY_SIZE(report.handlers)) {
		report.others += count;
	} else {
		if (i == report.size) {
			report.handlers[i].function = function;
			report.handlers[i].count = 0;
			report.size++;
		}
		report.handlers[i].count += count;
	}
	raw_spin_unlock(&report.lock);
}

/* Print it, and start over. */
static void report_print(void)
{
	unsigned int i;

	for (i = 0; i < report.size; i++) {
		/* Look the name up here: it takes long, and printk() turns interrupts off. */
		snprintf(report.name, sizeof(report.name), "%ps",
			 report.handlers[i].function);
		pr_warn("cancelled %lu pending timer(s) of handler %s\n",
			report.handlers[i].count, report.name);
	}
	if (report.others)
		pr_warn("cancelled %lu pending timer(s) of other handlers\n",
			report.others);
	report.size = 0;
	report.others = 0;
}

static bool has_handler(const struct apic_timer_list *timer,
			const struct module *module)
{
	return !module ||
	       within_module((unsigned long)timer->function, module);
}

static bool is_part_of(const struct apic_timer_list *timer,
		       const struct module *module)
{
	return within_module((unsigned long)timer, module);
}

static bool belongs_to(const struct apic_timer_list *timer,
		       const struct module *module)
{
	return has_handler(timer, module) || is_part_of(timer, module);
}

/* The module that is being unloaded, NULL for apic_timer. Read while a base is closed. */
static DEFINE_MUTEX(leaving_mutex);
static const struct module *leaving;

static void cancelled(const struct apic_timer_list *timer)
{
	trace_apic_timer_cancel(timer);
	apic_timer_stats_inc(CANCELLED);
}

/**
 * apic_timer_drain_cancels() - cancel a timer if its module is being unloaded
 * @base:	its base, locked
 * @timer:	the timer, about to be armed or to change its expiry
 *
 * Return: true if so, and the timer is not pending. One that was not is reported, too: its handler
 * would go on arming it.
 */
bool apic_timer_drain_cancels(struct apic_timer_base *base,
			      struct apic_timer_list *timer)
{
	lockdep_assert_held(&base->lock);

	if (likely(base->open) || !base->online || !belongs_to(timer, leaving))
		return false;
	report_add(timer->function, 1);
	if (timer->state == APIC_TIMER_PENDING) {
		cancelled(timer);
		if (apic_timer_base_sooner(apic_timer_base_dequeue(base, timer), timer))
			apic_timer_base_program(base);
	}
	return true;
}

/* Open the bases to all timers, or close them to those of the leaving module. */
static void open_all(bool open)
{
	struct apic_timer_base *base;
	unsigned long flags;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		base = apic_timer_base_of(cpu);
		raw_spin_lock_irqsave(&base->lock, flags);
		base->open = open && base->online;
		raw_spin_unlock_irqrestore(&base->lock, flags);
	}
}

/*
 * Cancel a base's timers: those of @module, or all of them if NULL. Interrupts are
 * enabled every few timers.
 */
static void cancel(struct apic_timer_base *base, const struct module *module)
{
	struct apic_timer_list *timers[APIC_TIMER_QUEUE_GROUP];
	struct apic_timer_queue_cursor cursor;
	unsigned long flags;
	unsigned int i, n, theirs, same = 0;
	const void *handler = NULL;
	bool more, found = false, its_handler = false;

	apic_timer_queue_cursor_init(&cursor);
	do {
		raw_spin_lock_irqsave(&base->lock, flags);
		more = apic_timer_queue_walk(&base->queue, &cursor, timers, &n);
		for (i = 0, theirs = 0; i < n; i++) {
			/* Neighbours often have the same handler. */
			if (timers[i]->function != handler) {
				if (same)
					report_add(handler, same);
				same = 0;
				handler = timers[i]->function;
				its_handler = has_handler(timers[i], module);
			}
			if (!its_handler && !is_part_of(timers[i], module))
				continue;
			same++;
			found = true;
			cancelled(timers[i]);
			timers[theirs++] = timers[i];
		}
		/* Delete the group's leader last: otherwise another timer has to become leader. */
		while (theirs)
			apic_timer_base_dequeue(base, timers[--theirs]);
		if (!more) {
			/* Also if none is left: that CPU's tick may have stopped. */
			if (found && base->online)
				apic_timer_base_program(base);
			apic_timer_queue_walk_end(&base->queue, &cursor);
			if (same)
				report_add(handler, same);
		}
		raw_spin_unlock_irqrestore(&base->lock, flags);
		cond_resched();
	} while (more);
}

/* Wait until the running handler returns: its timer may be one of those cancelled. */
static void wait_for_handler(struct apic_timer_base *base)
{
	struct apic_timer_list *running;
	unsigned long flags;
	unsigned int run;

	raw_spin_lock_irqsave(&base->lock, flags);
	running = base->running;
	run = base->run;
	raw_spin_unlock_irqrestore(&base->lock, flags);

	if (!running)
		return;
	while (apic_timer_base_in_run(base, running, run))
		cpu_relax();
}

/*
 * While the bases are closed, a timer of the module can only expire, be deleted or be
 * cancelled. No CPU may go offline meanwhile, because its timers would migrate.
 */
static void cancel_everywhere(const struct module *module)
{
	unsigned int cpu;

	mutex_lock(&leaving_mutex);
	cpus_read_lock();
	leaving = module;
	open_all(false);
	for_each_possible_cpu(cpu) {
		cancel(apic_timer_base_of(cpu), module);
		cond_resched();
	}
	for_each_possible_cpu(cpu)
		wait_for_handler(apic_timer_base_of(cpu));
	open_all(true);
	report_print();
	cpus_read_unlock();
	mutex_unlock(&leaving_mutex);
}

/**
 * apic_timer_drain_all() - cancel all timers because apic_timer is being unloaded
 *
 * No consumer is left. Only a handler that is still running could arm a timer, and
 * its call is refused.
 *
 * Context: Task.
 */
void apic_timer_drain_all(void)
{
	cancel_everywhere(NULL);
}

/**
 * apic_timer_drain_module() - cancel the timers of a module being unloaded
 * @module:	the module, past its exit function
 *
 * These are the timers whose handler or whose memory belongs to the module; for a timer
 * in the module's per-CPU memory, the handler must. On return, none of them can be armed
 * any more, and none of their handlers is running.
 *
 * Context: Task.
 */
void apic_timer_drain_module(const struct module *module)
{
	cancel_everywhere(module);
}

static bool accepts(unsigned int cpu, bool housekeeping)
{
	return READ_ONCE(apic_timer_base_of(cpu)->online) &&
	       (!housekeeping || housekeeping_test_cpu(cpu, HK_TYPE_TIMER));
}

/* Find the next CPU that accepts timers, round robin. Return: NULL if there is none. */
static struct apic_timer_base *next_after(unsigned int prev, bool housekeeping)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (cpu > prev && accepts(cpu, housekeeping))
			return apic_timer_base_of(cpu);
	for_each_online_cpu(cpu)
		if (accepts(cpu, housekeeping))
			return apic_timer_base_of(cpu);
	return NULL;
}

/*
 * Choose the CPU to which the next timer of a CPU that goes offline migrates: the next
 * one after @prev. Timers do not come back from there, so CPUs of nohz_full= get them
 * only if no other CPU accepts timers. Return: NULL if none does.
 */
static struct apic_timer_base *successor(unsigned int prev)
{
	return next_after(prev, true) ?: next_after(prev, false);
}

/*
 * Make room beforehand: then only one of the two bases changes its tree while interrupts
 * are off.
 */
static void make_room(struct apic_timer_base *to)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&to->lock, flags);
	apic_timer_queue_make_room(&to->queue);
	raw_spin_unlock_irqrestore(&to->lock, flags);
}

/* Migrate the head to another base. Return: false if there was none. */
static bool migrate_head(struct apic_timer_base *base,
			 struct apic_timer_base *to)
{
	struct apic_timer_list *timer;
	struct apic_timer_base *locked = base;
	unsigned long flags;

	make_room(to);
	raw_spin_lock_irqsave(&base->lock, flags);
	timer = base->queue.first;
	if (timer) {
		apic_timer_queue_del(&base->queue, timer);
		locked = apic_timer_base_move(base, timer, to->cpu);
		/* It keeps its expiry, whatever its owner has written there meanwhile. */
		timer->expires = timer->key;
		if (apic_timer_queue_add(&locked->queue, timer))
			apic_timer_base_program(locked);
		apic_timer_stats_inc(MIGRATED);
		trace_apic_timer_migrate(timer);
	}
	raw_spin_unlock_irqrestore(&locked->lock, flags);
	return timer;
}

static bool is_empty(struct apic_timer_base *base)
{
	unsigned long flags;
	bool empty;

	raw_spin_lock_irqsave(&base->lock, flags);
	empty = !base->queue.count;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return empty;
}

/*
 * Cancel all timers of a CPU that is offline. No timer can be armed there any more, but a
 * pending one can be modified until it is cancelled, and may move to a place that the walk
 * has passed:
 *
 *	CPU1 goes offline			CPU0
 *
 *	lock base 1, cancel a few
 *	unlock base 1
 *						mod_apic_timer(timer): pending on
 *						CPU1 as before, but an arrival, or
 *						before what was cancelled
 *	lock base 1, cancel the rest
 *	unlock base 1
 */
static void cancel_offline(struct apic_timer_base *base)
{
	while (!is_empty(base))
		cancel(base, NULL);
	report_print();
}

/**
 * apic_timer_drain_cpu() - migrate this CPU's timers, and accept no more
 *
 * Timers migrate in the order of their expiry to the other CPUs, round robin, so
 * that no CPU gets them all; to CPUs of nohz_full= only if no housekeeping CPU accepts
 * timers. If no CPU does, they are cancelled. CPUs go offline one at a time, so the
 * others stay online.
 *
 * No handler runs on this CPU from here on: its attempt to arm its timer again
 * would fail, which would end a periodic timer.
 *
 * Context: Task, bound to the CPU, whose source is still attached.
 */
void apic_timer_drain_cpu(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);
	struct apic_timer_base *to;
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	WRITE_ONCE(base->online, false);
	base->open = false;
	base->not_before = APIC_TIMER_NEVER;
	raw_spin_unlock_irqrestore(&base->lock, flags);

	to = successor(base->cpu);
	if (to) {
		while (migrate_head(base, to)) {
			to = successor(to->cpu);
			cond_resched();
		}
	} else {
		cancel_offline(base);
	}
}
