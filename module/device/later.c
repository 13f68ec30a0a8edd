// SPDX-License-Identifier: GPL-2.0
/*
 * What handlers leave to be done out of the hard interrupt: it takes locks that sleep on
 * PREEMPT_RT.
 *
 * An irq_work of each CPU does it for all, which is never freed. One in a structure that is
 * freed would have to be synchronised with before: there that takes a grace period of RCU,
 * or, on kernels that do not wait for one, is too early.
 *
 * Users may have any number of timers for one moment. Interrupts are off in an irq_work, and
 * its vector goes before that of the kernel's tick, also if it is queued again. So it does some
 * at a time, and a timer queues it again for the others.
 *
 * What the irq_work has not begun can be cancelled. Who closes a file does not depend on it:
 * the thread that is the irq_work on PREEMPT_RT has a low priority. One is taken out of the
 * list without a walk, as interrupts are off and a handler may wait for the lock.
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

/* At a time, and how long interrupts are on until the next ones. On PREEMPT_RT they are on. */
#define BATCH		(IS_ENABLED(CONFIG_PREEMPT_RT) ? UINT_MAX : 8)
#define PAUSE_US	5

/**
 * struct later_cpu - what a CPU has to do
 * @lock:	@due: handlers of this CPU add, any CPU takes one out
 * @due:	first one first
 * @work:	does it
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
	/* Unless no CPU has a timer any more */
	if (mod_apic_timer(&own->resume, apic_timer_add_tsc(apic_timer_now(),
							    apic_timer_us_to_tsc(PAUSE_US))) < 0)
		finish(own);
}

static void resume(unsigned long long now, unsigned long data)
{
	irq_work_queue(&((struct later_cpu *)data)->work);
}

/**
 * device_later() - do something soon
 * @later:	what, with its function; not queued, and its function does not run
 *
 * Context: Any but NMI.
 */
void device_later(struct device_later *later)
{
	struct later_cpu *own;
	unsigned long flags;

	later->cpu = get_cpu();
	own = this_cpu_ptr(&later_cpus);
	raw_spin_lock_irqsave(&own->lock, flags);
	later->queued = true;
	list_add_tail(&later->node, &own->due);
	raw_spin_unlock_irqrestore(&own->lock, flags);
	irq_work_queue(&own->work);
	put_cpu();
}

/**
 * device_later_cancel() - do not do it
 * @later:	zeroed before its first use; nobody queues it meanwhile
 *
 * Context: Any but NMI.
 * Return: true if it was queued, and will not be done. Otherwise its function may run.
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

/* Its timer that ends a pause has been cancelled, if no other CPU accepts timers. */
static int died(unsigned int cpu)
{
	finish(per_cpu_ptr(&later_cpus, cpu));
	return 0;
}

/**
 * device_later_init() - prepare for what is to be done
 *
 * By code, as many kernels relocate no pointers in the per-CPU variables of a module.
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
 * device_later_exit() - wait until nothing runs any more
 *
 * Context: Task, when nothing more is queued. Sleeps.
 */
void device_later_exit(void)
{
	int cpu;

	cpuhp_remove_state_nocalls(cpu_state);
	for_each_possible_cpu(cpu) {
		struct later_cpu *own = per_cpu_ptr(&later_cpus, cpu);

		/* What runs may have begun a pause, and what ends one runs. */
		irq_work_sync(&own->work);
		del_apic_timer_sync(&own->resume);
		irq_work_sync(&own->work);
	}
}
