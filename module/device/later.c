// SPDX-License-Identifier: GPL-2.0
/*
 * Work that handlers defer out of the hard interrupt, because it takes locks that sleep on
 * PREEMPT_RT.
 *
 * Each CPU has one irq_work for all of it, which is never freed. An irq_work in a structure
 * that is freed would have to be synchronised with first. On PREEMPT_RT that takes an RCU
 * grace period; kernels that do not wait for one return too early.
 *
 * Users may have any number of timers for one moment. Interrupts are off in an irq_work, and
 * its vector has a higher priority than the kernel's tick, even if it is queued again.
 * Therefore it processes one batch at a time, and a timer queues it again for the rest.
 *
 * Work that the irq_work has not begun can be cancelled. Closing a file does not depend on the
 * irq_work, because on PREEMPT_RT that runs in a thread of low priority, which may be preempted in
 * the middle of an item: by the task that it has just woken, for as long as that task runs. An item
 * is removed from the list without a walk, because interrupts are off and a handler may wait for
 * the lock.
 */
#include <linux/apic_timer.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kconfig.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "later.h"

/*
 * Items in a batch, and the pause with interrupts on before the next batch. On PREEMPT_RT
 * interrupts are on anyway.
 */
#define BATCH		(IS_ENABLED(CONFIG_PREEMPT_RT) ? UINT_MAX : 8)
#define PAUSE_US	5

/**
 * struct later_cpu - the work of one CPU
 * @lock:	protects @due: handlers on this CPU add items, any CPU removes them
 * @due:	queued items, oldest first
 * @work:	processes @due
 * @resume:	queues @work again
 */
struct later_cpu {
	raw_spinlock_t lock;
	struct list_head due;
	struct irq_work work;
	struct apic_timer_list resume;
};

static DEFINE_PER_CPU(struct later_cpu, later_cpus);
static int cpu_state;

static void take(struct later_cpu *own, struct device_later *later)
	__must_hold(&own->lock)
{
	lockdep_assert_held(&own->lock);
	list_del(&later->node);
	later->queued = false;
}

static struct device_later *next(struct later_cpu *own)
{
	struct device_later *later;
	unsigned long flags;

	raw_spin_lock_irqsave(&own->lock, flags);
	later = list_first_entry_or_null(&own->due, struct device_later, node);
	if (later)
		take(own, later);
	raw_spin_unlock_irqrestore(&own->lock, flags);
	return later;
}

static void finish(struct later_cpu *own)
{
	struct device_later *later;

	while ((later = next(own)))
		later->call(later);
}

static void run(struct irq_work *work)
{
	struct later_cpu *own = container_of(work, struct later_cpu, work);
	struct device_later *later;
	unsigned int n = 0;

	while (n++ < BATCH) {
		later = next(own);
		if (!later)
			return;
		later->call(later);
	}
	if (list_empty(&own->due))
		return;
	/* This fails only if no CPU accepts timers any more. */
	if (mod_apic_timer(&own->resume, apic_timer_add_tsc(apic_timer_now(),
							    apic_timer_us_to_tsc(PAUSE_US))) < 0)
		finish(own);
}

static void resume(unsigned long long now, unsigned long data)
{
	irq_work_queue(&((struct later_cpu *)data)->work);
}

/**
 * device_later_cancel() - cancel queued work
 * @later:	the item, zeroed before its first use; the caller prevents that it is queued
 *		meanwhile
 *
 * Context: Any but NMI.
 * Return: true if it was queued, and will not run. Otherwise its function may be running.
 */
bool device_later_cancel(struct device_later *later)
{
	struct later_cpu *own = per_cpu_ptr(&later_cpus, later->cpu);
	unsigned long flags;
	bool queued;

	raw_spin_lock_irqsave(&own->lock, flags);
	queued = later->queued;
	if (queued)
		take(own, later);
	raw_spin_unlock_irqrestore(&own->lock, flags);
	return queued;
}

/**
 * device_later() - queue work of a handler on this CPU
 * @later:	the item, zeroed before its first use, with its function, which may be running: then
 *		it runs again, perhaps at the same time. The caller prevents that two queue it at
 *		once.
 *
 * An item that is queued keeps its turn on this CPU. It is taken from another one, which a task
 * of high priority may keep from it.
 *
 * Context: Any but NMI.
 * Return: true if it was not queued before.
 */
bool device_later(struct device_later *later)
{
	struct later_cpu *own;
	unsigned long flags;
	bool was_queued = false;
	int cpu = get_cpu();

	if (later->cpu != cpu) {
		was_queued = device_later_cancel(later);
		later->cpu = cpu;
	}
	own = this_cpu_ptr(&later_cpus);
	raw_spin_lock_irqsave(&own->lock, flags);
	if (later->queued) {
		was_queued = true;
	} else {
		later->queued = true;
		list_add_tail(&later->node, &own->due);
	}
	raw_spin_unlock_irqrestore(&own->lock, flags);
	irq_work_queue(&own->work);
	put_cpu();
	return !was_queued;
}

/* If no other CPU accepts timers, the timer that ends the dead CPU's pause was cancelled. */
static int died(unsigned int cpu)
{
	finish(per_cpu_ptr(&later_cpus, cpu));
	return 0;
}

/**
 * device_later_init() - initialise the per-CPU lists
 *
 * This needs code, because many kernels do not relocate pointers in a module's per-CPU
 * variables.
 *
 * Context: Task. Sleeps.
 * Return: 0 or an error.
 */
int device_later_init(void)
{
	int cpu, ret;

	for_each_possible_cpu(cpu) {
		struct later_cpu *own = per_cpu_ptr(&later_cpus, cpu);

		raw_spin_lock_init(&own->lock);
		INIT_LIST_HEAD(&own->due);
		init_irq_work(&own->work, run);
		own->resume.function = resume;
		own->resume.data = (unsigned long)own;
		init_apic_timer(&own->resume);
		own->resume.flags = APIC_TIMER_RAW;
	}
	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "apic_timer_dev:later", NULL, died);
	if (ret < 0)
		return ret;
	cpu_state = ret;
	return 0;
}

/**
 * device_later_exit() - wait until no work runs any more
 *
 * Context: Task, when nothing more is queued. Sleeps.
 */
void device_later_exit(void)
{
	int cpu;

	cpuhp_remove_state_nocalls(cpu_state);
	for_each_possible_cpu(cpu) {
		struct later_cpu *own = per_cpu_ptr(&later_cpus, cpu);

		/* Running work may start the timer of a pause, and that timer queues the work. */
		irq_work_sync(&own->work);
		del_apic_timer_sync(&own->resume);
		irq_work_sync(&own->work);
	}
}
