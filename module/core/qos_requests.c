// SPDX-License-Identifier: GPL-2.0
/*
 * Keep a CPU out of deep idle states while an exact expiry of its own is near,
 * because waking from such a state takes longer than anything else that makes an
 * expiry late.
 *
 * A work item makes a resume latency QoS request for the CPU, as drivers do. When the
 * CPU goes idle, a cpuidle governor takes the strictest of these and of the global
 * requests, and avoids states that take longer to wake from. A request for less than the
 * shallowest of them takes would leave only polling, with the tick running: the request allows
 * the time that the spin compensates for, and at least that state.
 *
 * Programming the hardware costs a store and a comparison. An exact timer that is
 * pending behind others is not searched for: it counts once it is the head, and
 * its CPU, which is awake then, programs it. If exact expiries closely follow
 * others, the CPU would be asleep again before the request is made; therefore, a
 * request stays until no exact timer has been the head for some time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pm_qos.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

#include "mux/mux.h"
#include "policy/lead.h"
#include "policy/qos.h"
#include "qos_requests.h"
#include "timers/base.h"
#include "tsc/tsc.h"

static bool latency_qos = true;
module_param(latency_qos, bool, 0444);
MODULE_PARM_DESC(latency_qos, "keep a CPU out of deep idle states while one of its expiries of mode exact is near");

static int latency_qos_us = -1;
module_param(latency_qos_us, int, 0444);
MODULE_PARM_DESC(latency_qos_us, "maximum time to wake from an idle state while an expiry of mode exact is near, in us; 0 makes idle CPUs poll; -1 uses the time that the spin budget covers, at least 3 us");

/*
 * Distance before and after an expiry within which it counts as near, and the
 * period of re-evaluation meanwhile. Long enough for the timer wheel and a work
 * item on a busy CPU.
 */
#define NEAR_NS		(50 * NSEC_PER_MSEC)
/* An expiry up to this much before the known one needs no re-evaluation. */
#define SLACK_NS	(NEAR_NS / 2)
/*
 * What the shallowest state that is not polling takes to wake from, on any CPU: intel_idle has
 * 1 to 3 us for C1, and a governor passes over a state that takes longer than the request.
 */
#define SHALLOWEST_US	3

/* Accessed, made and changed under the mutex. An inactive request is one that is not made. */
static DEFINE_PER_CPU(struct dev_pm_qos_request, requests);
static DEFINE_MUTEX(mutex);

/**
 * apic_timer_qos_restart() - start over because the TSC may have jumped
 *
 * Context: Interrupts off.
 */
void apic_timer_qos_restart(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	if (!latency_qos)
		return;
	raw_spin_lock(&base->lock);
	this_cpu_ptr(&apic_timer_qos)->next = APIC_TIMER_NEVER;
	apic_timer_qos_kick();
	raw_spin_unlock(&base->lock);
}

/* Expiries for which a request for a CPU may be needed. */
struct demand {
	s32 us;
	u64 next;	/* of the exact timer that it is for, perhaps past */
	u64 head;	/* expiry of the head */
};

static s32 allowed_us(unsigned int cpu, u64 budget)
{
	u64 ns;

	if (latency_qos_us >= 0)
		return latency_qos_us;
	ns = apic_timer_tsc_to_ns(apic_timer_lead_room(cpu, budget));
	/* Polling costs more than the spin that a small budget was to spare. */
	return max_t(u64, div_u64(ns, NSEC_PER_USEC), SHALLOWEST_US);
}

/* Compute the demand of a CPU, and the TSC before which a new expiry has to kick. */
static struct demand demand_of(unsigned int cpu, u64 now)
{
	struct apic_timer_qos *qos = per_cpu_ptr(&apic_timer_qos, cpu);
	struct apic_timer_base *base = apic_timer_base_of(cpu);
	struct demand demand = { .us = PM_QOS_RESUME_LATENCY_NO_CONSTRAINT };
	u64 near = apic_timer_ns_to_tsc(NEAR_NS), until, distance;
	struct apic_timer_base_head head;
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	apic_timer_base_peek(base, &head);
	demand.head = head.expires;
	if (head.exact)
		qos->next = head.expires;
	else if (qos->next > now && head.expires > qos->next)
		qos->next = APIC_TIMER_NEVER;	/* It has been deleted. */

	demand.next = qos->next;
	distance = demand.next > now ? demand.next - now : now - demand.next;
	if (demand.next != APIC_TIMER_NEVER && distance < near) {
		until = 0;
		demand.us = allowed_us(cpu, head.budget);
	} else if (demand.next != APIC_TIMER_NEVER && demand.next > now) {
		until = demand.next - apic_timer_ns_to_tsc(SLACK_NS);
	} else {
		until = APIC_TIMER_NEVER;
	}
	WRITE_ONCE(qos->until, until);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return demand;
}

static s32 requested_us(struct dev_pm_qos_request *request)
{
	return dev_pm_qos_request_active(request) ?
	       request->data.pnode.prio : PM_QOS_RESUME_LATENCY_NO_CONSTRAINT;
}

/*
 * Make or change a request. Return: how much more latency is allowed than before, us; may
 * be negative.
 */
static s64 request_us(unsigned int cpu, s32 us)
{
	struct dev_pm_qos_request *request = per_cpu_ptr(&requests, cpu);
	s32 was = requested_us(request);
	struct device *device;

	lockdep_assert_held(&mutex);

	if (us == was)
		return 0;
	if (us == PM_QOS_RESUME_LATENCY_NO_CONSTRAINT) {
		dev_pm_qos_remove_request(request);
	} else if (was != PM_QOS_RESUME_LATENCY_NO_CONSTRAINT) {
		dev_pm_qos_update_request(request, us);
	} else {
		device = get_cpu_device(cpu);
		if (device && dev_pm_qos_add_request(device, request,
						     DEV_PM_QOS_RESUME_LATENCY, us) < 0)
			memset(request, 0, sizeof(*request));
	}
	return (s64)us - was;
}

/*
 * An idle CPU does not notice that a request has changed. Wake it once if it may be
 * in a deep state now and would not wake before the expiry, or if it may be in a
 * shallow state and would stay there for long.
 */
static void wake_idle(unsigned int cpu, const struct demand *demand, s64 change, u64 now)
{
	u64 near = apic_timer_ns_to_tsc(NEAR_NS), kernel, expiry, wakes;

	/* Racy read: any of its values will do. */
	kernel = data_race(apic_timer_mux_kernel_deadline(per_cpu_ptr(&apic_timer_mux, cpu)));
	wakes = min(kernel, demand->head);
	if (change > 0) {
		if (wakes > now && wakes - now > near)
			apic_timer_base_wake(cpu);
		return;
	}
	expiry = apic_timer_mux_before(demand->next, apic_timer_mux_tick);
	if (demand->next > now && expiry <= wakes)
		apic_timer_base_wake(cpu);
}

/* Re-evaluate a CPU's request. Return: TSC at which to do so again, or never. */
static u64 reevaluate_cpu(unsigned int cpu, u64 now)
{
	u64 until = READ_ONCE(per_cpu_ptr(&apic_timer_qos, cpu)->until);
	u64 slack = apic_timer_ns_to_tsc(SLACK_NS);
	struct demand demand;
	s64 change;

	if (until == APIC_TIMER_NEVER)
		return until;
	if (until && until - slack > now)
		return until - slack;

	demand = demand_of(cpu, now);
	change = request_us(cpu, demand.us);
	if (change)
		wake_idle(cpu, &demand, change, now);
	if (demand.us != PM_QOS_RESUME_LATENCY_NO_CONSTRAINT)
		return now + apic_timer_ns_to_tsc(NEAR_NS);
	return demand.next != APIC_TIMER_NEVER && demand.next > now ?
	       demand.next - 2 * slack : APIC_TIMER_NEVER;
}

static void reevaluate(struct work_struct *work)
{
	u64 now = apic_timer_tsc_now(), again = APIC_TIMER_NEVER, ns;
	unsigned int cpu;

	mutex_lock(&mutex);
	for_each_online_cpu(cpu)
		again = min(again, reevaluate_cpu(cpu, now));
	mutex_unlock(&mutex);
	if (again == APIC_TIMER_NEVER)
		return;

	ns = apic_timer_tsc_to_ns(again - min(again, now));
	/* The timer wheel may run a distant timer late by an eighth of the distance. */
	if (ns > NEAR_NS)
		ns -= ns / 8;
	/* This does nothing if a kick has queued the work meanwhile. */
	queue_delayed_work(apic_timer_qos_workqueue, &apic_timer_qos_work,
			   nsecs_to_jiffies(ns) + 1);
}

/**
 * apic_timer_qos_requested() - get the present request for a CPU
 * @cpu:	the CPU
 *
 * Context: Task.
 * Return: us, or -1 for none.
 */
int apic_timer_qos_requested(unsigned int cpu)
{
	s32 us;

	mutex_lock(&mutex);
	us = requested_us(per_cpu_ptr(&requests, cpu));
	mutex_unlock(&mutex);
	return us == PM_QOS_RESUME_LATENCY_NO_CONSTRAINT ? -1 : us;
}

static void reset(void)
{
	struct apic_timer_qos *qos;
	struct apic_timer_base *base;
	unsigned long flags;

	local_irq_save(flags);
	base = this_cpu_ptr(&apic_timer_base);
	qos = this_cpu_ptr(&apic_timer_qos);
	raw_spin_lock(&base->lock);
	qos->next = APIC_TIMER_NEVER;
	WRITE_ONCE(qos->until, APIC_TIMER_NEVER);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/**
 * apic_timer_qos_online() - prepare for timers on this CPU
 *
 * Context: Task, bound to the CPU, before its base accepts timers.
 */
void apic_timer_qos_online(void)
{
	if (latency_qos)
		reset();
}

/**
 * apic_timer_qos_offline() - drop this CPU's request
 *
 * A request must not outlive the CPU's device.
 *
 * Context: Task, bound to the CPU, whose base no longer accepts timers.
 */
void apic_timer_qos_offline(void)
{
	if (!latency_qos)
		return;
	mutex_lock(&mutex);
	/* First, and under the mutex: otherwise reevaluate() makes the request again. */
	reset();
	request_us(smp_processor_id(), PM_QOS_RESUME_LATENCY_NO_CONSTRAINT);
	mutex_unlock(&mutex);
}

/**
 * apic_timer_qos_init() - initialise, without any request
 *
 * Return: 0 or -ENOMEM.
 */
int apic_timer_qos_init(void)
{
	if (latency_qos_us < -1) {
		pr_err("latency_qos_us=%d is out of range: -1 to %d us\n",
		       latency_qos_us, INT_MAX);
		return -ERANGE;
	}
	if (!latency_qos)
		return 0;
	INIT_DELAYED_WORK(&apic_timer_qos_work, reevaluate);
	/* Unbound: isolated CPUs are left alone. */
	apic_timer_qos_workqueue = alloc_workqueue("apic_timer", WQ_UNBOUND, 0);
	return apic_timer_qos_workqueue ? 0 : -ENOMEM;
}

/**
 * apic_timer_qos_exit() - undo apic_timer_qos_init()
 *
 * No CPU is attached any more: there is no request, and no CPU kicks.
 */
void apic_timer_qos_exit(void)
{
	if (!latency_qos)
		return;
	apic_timer_qos_kick_sync();
	cancel_delayed_work_sync(&apic_timer_qos_work);
	destroy_workqueue(apic_timer_qos_workqueue);
}
