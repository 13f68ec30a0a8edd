// SPDX-License-Identifier: GPL-2.0
/*
 * Track the next exact expiry of each CPU for qos_requests.c. This costs a store and a
 * comparison each time the hardware is programmed for one, and occasionally queues a
 * work item.
 */
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "policy/qos.h"

DEFINE_PER_CPU(struct apic_timer_qos, apic_timer_qos);

struct workqueue_struct *apic_timer_qos_workqueue;
struct delayed_work apic_timer_qos_work;

/* In irq_work: the caller may hold locks that queueing a work item takes. */
static void kicked(struct irq_work *work)
{
	mod_delayed_work(apic_timer_qos_workqueue, &apic_timer_qos_work, 0);
}

/*
 * Hard also on PREEMPT_RT. There, others run in a thread of the lowest real-time priority: another
 * thread of one CPU could keep this work pending, and with it the requests of all CPUs.
 */
static struct irq_work kick_irq_work = IRQ_WORK_INIT_HARD(kicked);

/**
 * apic_timer_qos_kick() - re-evaluate this CPU's requests now
 *
 * Context: Interrupts off, this CPU's base locked.
 */
void apic_timer_qos_kick(void)
{
	WRITE_ONCE(this_cpu_ptr(&apic_timer_qos)->until, 0);
	irq_work_queue(&kick_irq_work);
}

/**
 * apic_timer_qos_kick_sync() - wait until no kick is under way
 *
 * Context: Task.
 */
void apic_timer_qos_kick_sync(void)
{
	irq_work_sync(&kick_irq_work);
}
