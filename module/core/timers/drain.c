// SPDX-License-Identifier: GPL-2.0
/*
 * Taking pending timers out of a base: because its CPU goes offline, because
 * the module that they belong to is unloaded, or because we are.
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
#include <linux/spinlock.h>

#include <trace/events/apic_timer.h>

#include "lib/stats.h"
#include "mux/mux.h"
#include "timers/base.h"
#include "timers/drain.h"
#include "timers/state.h"

/*
 * Cancelled timers by handler, for one message each: those of one unload, or of
 * one CPU that goes offline, which the lock of CPU hotplug keeps apart.
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

/* Print and begin anew. */
static void report_print(void)
{
	unsigned int i;

	for (i = 0; i < report.size; i++) {
		/* To look a name up takes long, and printk() has interrupts off. */
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

/* One module at a time leaves, or we do: NULL. Read while a base is closed. */
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
 * So nothing of the module becomes pending once its timers are looked for, nor
 * moves to where they have been looked for.
 *
 * Return: true if so; the timer is not pending then.
 */
bool apic_timer_drain_cancels(struct apic_timer_base *base,
			      struct apic_timer_list *timer)
{
	lockdep_assert_held(&base->lock);

	if (likely(base->open) || !base->online || !belongs_to(timer, leaving))
		return false;
	report_add(timer->function, 1);
	cancelled(timer);
	if (timer->state == APIC_TIMER_PENDING)
		apic_timer_base_dequeue(base, timer);
	return true;
}

/* Open the bases to all, or close them to timers of the leaving module. */
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
 * Cancel a base's timers: those of @module, or all of them for NULL. Interrupts
 * get a turn after a few, of whatever expiries.
 */
static void cancel(struct apic_timer_base *base, const struct module *module)
{
	struct apic_timer_list *timers[APIC_TIMER_QUEUE_GROUP];
	struct apic_timer_queue_cursor cursor;
	unsigned long flags;
	unsigned int i, n, theirs, same = 0;
	const void *handler = NULL;
	bool more, its_handler = false;

	apic_timer_queue_cursor_init(&cursor);
	do {
		raw_spin_lock_irqsave(&base->lock, flags);
		more = apic_timer_queue_walk(&base->queue, &cursor, timers, &n);
		for (i = 0, theirs = 0; i < n; i++) {
			/* Many in a row have the same handler. */
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
			cancelled(timers[i]);
			timers[theirs++] = timers[i];
		}
		/* The leader last: while there are others, one of them leads. */
		while (theirs)
			apic_timer_base_dequeue(base, timers[--theirs]);
		if (!more) {
			apic_timer_queue_walk_end(&base->queue, &cursor);
			if (same)
				report_add(handler, same);
		}
		raw_spin_unlock_irqrestore(&base->lock, flags);
		cond_resched();
	} while (more);
}

/* Wait for a handler to end that may be one of those cancelled. */
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
 * While the bases are closed a timer of the module can only be deleted, expire,
 * or be cancelled: see apic_timer_drain_cancels(). No CPU goes off meanwhile, as
 * its timers would go to another.
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
 * apic_timer_drain_all() - cancel all timers, for our own unload
 *
 * No module that uses us is left, so nothing arms new ones but a handler that
 * is still running, and that is refused.
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
 * Those whose handler or whose memory is the module's. They can't be armed any
 * more, and no handler of theirs is running on return.
 *
 * Context: Task.
 */
void apic_timer_drain_module(const struct module *module)
{
	cancel_everywhere(module);
}

/*
 * Where a timer of a CPU that goes offline moves to: the next online CPU after
 * @prev, which has taken the one before, in a circle. NULL if there is none.
 */
static struct apic_timer_base *successor(unsigned int prev)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (cpu > prev && READ_ONCE(apic_timer_base_of(cpu)->online))
			return apic_timer_base_of(cpu);
	for_each_online_cpu(cpu)
		if (READ_ONCE(apic_timer_base_of(cpu)->online))
			return apic_timer_base_of(cpu);
	return NULL;
}

/*
 * Move the head to another base. It stays pending to all: who looks at its
 * state without the lock sees no change, and who wants the lock waits while its
 * cpu is APIC_TIMER_CPU_MOVING.
 *
 * Return: false when there was none.
 */
static bool migrate_head(struct apic_timer_base *base,
			 struct apic_timer_base *to)
{
	struct apic_timer_list *timer;
	struct apic_timer_base *locked = base;
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	timer = base->queue.first;
	if (timer) {
		apic_timer_queue_del(&base->queue, timer);
		locked = apic_timer_base_move(base, timer, to->cpu);
		if (apic_timer_queue_add(&locked->queue, timer))
			apic_timer_base_program(locked);
		apic_timer_stats_inc(MIGRATED);
		trace_apic_timer_migrate(timer);
	}
	raw_spin_unlock_irqrestore(&locked->lock, flags);
	return timer;
}

/**
 * apic_timer_drain_cpu() - take no more timers on this CPU
 *
 * What is pending goes to the other CPUs, one after the other in the order of
 * expiry: the first to the next online CPU, the second to the one after that,
 * and so on in a circle, so that none gets them all. When no CPU is left, it is
 * cancelled. CPUs go offline one at a time, so the successors stay.
 *
 * From here on no handler runs on this CPU: one that arms its timer again would
 * be refused, and a periodic timer end for that reason.
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
		cancel(base, NULL);
		report_print();
	}
}
