// SPDX-License-Identifier: GPL-2.0
/*
 * Keep CPUs out of deep idle states while an exact shot is near: to wake from
 * one takes longer than all else that makes a shot late. Done by a CPU latency
 * QoS request, as any driver would, from a work item that looks at what is
 * pending; who arms a timer only compares two numbers.
 */
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pm_qos.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

#include "base.h"
#include "latency.h"
#include "mode.h"
#include "shot.h"
#include "tsc.h"

static bool latency_qos = true;
module_param(latency_qos, bool, 0444);
MODULE_PARM_DESC(latency_qos, "keep CPUs out of deep idle states while a shot of mode exact is near");

/* How near that is, and how often it is looked at again. */
#define NEAR_NS		(100 * NSEC_PER_MSEC)
/* So many groups of a CPU's timers are looked at for an exact one. */
#define LOOK		2

/*
 * A shot before this needs a look at what is pending: 0 while the request is
 * made or a look is under way, never when nothing is pending.
 */
u64 apic_timer_latency_until;

static struct pm_qos_request request;

static void look_now(struct work_struct *work);
static void look_later(struct work_struct *work);
static DECLARE_WORK(work_now, look_now);
static DECLARE_DELAYED_WORK(work_later, look_later);
static DEFINE_MUTEX(look_lock);

/* From here a work item can be queued whatever locks the caller holds. */
static void kicked(struct irq_work *work)
{
	schedule_work(&work_now);
}

static DEFINE_IRQ_WORK(kick_irq_work, kicked);

/**
 * apic_timer_latency_kick() - have a look at what is pending
 *
 * Context: Any.
 */
void apic_timer_latency_kick(void)
{
	WRITE_ONCE(apic_timer_latency_until, 0);
	irq_work_queue(&kick_irq_work);
}

/* Expiry of a CPU's first exact timer, or never. */
static u64 first_exact_of(struct apic_timer_base *base)
{
	struct apic_timer_base_view views[APIC_TIMER_QUEUE_GROUP];
	struct apic_timer_queue_cursor cursor;
	u64 first = APIC_TIMER_NEVER;
	unsigned int step, i, n;

	apic_timer_queue_cursor_init(&cursor);
	for (step = 0; step < LOOK && first == APIC_TIMER_NEVER; step++) {
		n = apic_timer_base_look(base, &cursor, views);
		if (!n)
			break;
		for (i = 0; i < n && first == APIC_TIMER_NEVER; i++) {
			unsigned int mode = views[i].flags &
					    APIC_TIMER_MODE_MASK;

			if ((mode ?: apic_timer_mode_default) ==
			    APIC_TIMER_EXACT)
				first = views[i].expires;
		}
	}
	apic_timer_base_look_end(base, &cursor);
	return first;
}

/* Expiry of the first exact timer anywhere, or never. */
static u64 first_exact(void)
{
	u64 first = APIC_TIMER_NEVER;
	unsigned int cpu;

	for_each_online_cpu(cpu)
		first = min(first, first_exact_of(apic_timer_base_of(cpu)));
	return first;
}

/* Make the request or take it back. Return: in how many ns to look again. */
static u64 look(void)
{
	u64 near = apic_timer_ns_to_tsc(NEAR_NS), first, now, ns;

	/* From here on a shot that comes too late to be found kicks. */
	WRITE_ONCE(apic_timer_latency_until, APIC_TIMER_NEVER);
	/* Pairs with the locks of the bases, under which shots come. */
	smp_mb();
	first = first_exact();
	now = apic_timer_tsc_now();

	if (first == APIC_TIMER_NEVER || first > apic_timer_add_tsc(now, near)) {
		cpu_latency_qos_update_request(&request, PM_QOS_DEFAULT_VALUE);
		WRITE_ONCE(apic_timer_latency_until, first);
		if (first == APIC_TIMER_NEVER)
			return first;
		ns = apic_timer_tsc_to_ns(first - now - near);
		/* The kernel runs it late by an eighth, at most. */
		return ns - ns / 8;
	}
	WRITE_ONCE(apic_timer_latency_until, 0);
	cpu_latency_qos_update_request(&request, 0);
	return NEAR_NS;
}

static void look_now(struct work_struct *work)
{
	u64 ns;

	mutex_lock(&look_lock);
	ns = look();
	cancel_delayed_work(&work_later);
	if (ns != APIC_TIMER_NEVER)
		schedule_delayed_work(&work_later, nsecs_to_jiffies(ns) + 1);
	mutex_unlock(&look_lock);
}

static void look_later(struct work_struct *work)
{
	look_now(&work_now);
}

/**
 * apic_timer_latency_requested() - whether deep idle states are kept away now
 *
 * Return: true if so.
 */
bool apic_timer_latency_requested(void)
{
	if (!cpu_latency_qos_request_active(&request))
		return false;
	/* The work item may be changing it. */
	return data_race(request.node.prio) == 0;
}

/**
 * apic_timer_latency_init() - get ready, requesting nothing
 */
void apic_timer_latency_init(void)
{
	if (!latency_qos)
		return;
	cpu_latency_qos_add_request(&request, PM_QOS_DEFAULT_VALUE);
	WRITE_ONCE(apic_timer_latency_until, APIC_TIMER_NEVER);
}

/**
 * apic_timer_latency_exit() - take back the request
 *
 * No timer is armed any more.
 */
void apic_timer_latency_exit(void)
{
	WRITE_ONCE(apic_timer_latency_until, 0);
	irq_work_sync(&kick_irq_work);
	cancel_work_sync(&work_now);
	cancel_delayed_work_sync(&work_later);
	if (cpu_latency_qos_request_active(&request))
		cpu_latency_qos_remove_request(&request);
}
