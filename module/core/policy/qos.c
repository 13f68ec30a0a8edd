// SPDX-License-Identifier: GPL-2.0
/*
 * What an armed CPU says of its exact timers, for qos_requests.c: who arms one
 * only compares two numbers, and has a work item queued now and then.
 */
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "policy/qos.h"

DEFINE_PER_CPU(struct apic_timer_qos, apic_timer_qos);

struct workqueue_struct *apic_timer_qos_workqueue;
struct delayed_work apic_timer_qos_work;

/* From here a work item can be queued whatever locks the caller holds. */
static void kicked(struct irq_work *work)
{
	mod_delayed_work(apic_timer_qos_workqueue, &apic_timer_qos_work, 0);
}

static DEFINE_IRQ_WORK(kick_irq_work, kicked);

/**
 * apic_timer_qos_kick() - have a look at this CPU's timers
 *
 * Context: Interrupts off, this CPU's base locked.
 */
void apic_timer_qos_kick(void)
{
	WRITE_ONCE(this_cpu_ptr(&apic_timer_qos)->until, 0);
	irq_work_queue(&kick_irq_work);
}

/**
 * apic_timer_qos_kick_sync() - wait for a kick that is on its way
 *
 * Context: Task.
 */
void apic_timer_qos_kick_sync(void)
{
	irq_work_sync(&kick_irq_work);
}
