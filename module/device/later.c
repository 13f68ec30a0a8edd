// SPDX-License-Identifier: GPL-2.0
/*
 * What handlers leave to be done out of the hard interrupt: it takes locks that sleep on
 * PREEMPT_RT.
 *
 * An irq_work of each CPU does it for all, which is never freed. One in a structure that is
 * freed would have to be synchronised with before: there that takes a grace period of RCU,
 * or, on kernels that do not wait for one, is too early.
 */
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include "later.h"

struct later_cpu {
	struct llist_head due;
	struct irq_work work;
};

static DEFINE_PER_CPU(struct later_cpu, later_cpus);

static void run(struct irq_work *work)
{
	struct later_cpu *own = container_of(work, struct later_cpu, work);
	struct llist_node *list = llist_reverse_order(llist_del_all(&own->due));
	struct device_later *later, *next;

	llist_for_each_entry_safe(later, next, list, node)
		later->call(later);
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

	later->cpu = get_cpu();
	own = this_cpu_ptr(&later_cpus);
	llist_add(&later->node, &own->due);
	/* Also if others are due: who has added those may not have come that far. */
	irq_work_queue(&own->work);
	put_cpu();
}

/**
 * device_later_sync() - wait until it has been done
 * @later:	queued, or its function runs; that does not free it
 *
 * Context: Task. Sleeps.
 */
void device_later_sync(const struct device_later *later)
{
	irq_work_sync(per_cpu_ptr(&later_cpus.work, later->cpu));
}

/**
 * device_later_init() - prepare for what is to be done
 *
 * By code, as many kernels relocate no pointers in the per-CPU variables of a module.
 *
 * Context: Any.
 */
void device_later_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		init_irq_work(per_cpu_ptr(&later_cpus.work, cpu), run);
}

/**
 * device_later_exit() - wait until nothing runs any more
 *
 * Context: Task, when nothing more is queued. Sleeps.
 */
void device_later_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&later_cpus.work, cpu));
}
