// SPDX-License-Identifier: GPL-2.0
/*
 * Which latency requests a CPU has, by the real code of qos.c and qos_requests.c, on fakes of
 * the kernel's requests, work items and irq_work. A cycle of machine_plain is a ns.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kunit/test.h>
#include <linux/cpu.h>
#include <linux/errno.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/pm_qos.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

#include "machine.h"
#include "policy/lead.h"
#include "timers/base.h"
#include "tsc/tsc.h"

/* Declare the real functions, which the simulation replaces in the rest of the core. */
#undef CONFIG_APIC_TIMER_SIM
#include "policy/qos.h"
#include "qos_requests.h"
#define CONFIG_APIC_TIMER_SIM 1

#define MS		NSEC_PER_MSEC
#define NO_REQUEST	(-1)
#define ALLOWED_US	7
#define C1_US		3	/* exit latency of Nehalem's C1, the longest in intel_idle */

/**
 * struct fake_qos - the kernel around it
 * @no_device:	the CPU has no device
 * @error:	error that adding a request returns
 * @us:		the present request, or NO_REQUEST
 * @adds:	number of requests added
 * @updates:	number of changes of a request
 * @removes:	number of requests withdrawn
 * @kicked:	queued irq_work
 * @queued:	the work item is queued
 * @delay:	its delay, jiffies
 * @wakes:	number of times that the CPU was woken
 * @workqueues:	number of workqueues
 * @no_memory:	no workqueue can be allocated
 */
static struct fake_qos {
	bool no_device;
	int error;
	s32 us;
	unsigned int adds, updates, removes;
	struct irq_work *kicked;
	bool queued;
	unsigned long delay;
	unsigned int wakes;
	int workqueues;
	bool no_memory;
} fake;

static struct device cpu_device;

static struct device *fake_cpu_device(unsigned int cpu)
{
	return fake.no_device ? NULL : &cpu_device;
}

static int fake_add(struct device *device, struct dev_pm_qos_request *request,
		    enum dev_pm_qos_req_type type, s32 us)
{
	if (type != DEV_PM_QOS_RESUME_LATENCY || device != &cpu_device || request->dev)
		return -EINVAL;
	/* As in the kernel, which has filled in the request before it fails. */
	request->dev = device;
	request->data.pnode.prio = us;
	if (fake.error)
		return fake.error;
	fake.us = us;
	fake.adds++;
	return 1;
}

static int fake_update(struct dev_pm_qos_request *request, s32 us)
{
	if (!request->dev)
		return -EINVAL;
	request->data.pnode.prio = us;
	fake.us = us;
	fake.updates++;
	return 1;
}

static int fake_remove(struct dev_pm_qos_request *request)
{
	if (!request->dev)
		return -EINVAL;
	memset(request, 0, sizeof(*request));
	fake.us = NO_REQUEST;
	fake.removes++;
	return 1;
}

static bool fake_irq_work_queue(struct irq_work *work)
{
	fake.kicked = work;
	return true;
}

static void fake_irq_work_sync(struct irq_work *work)
{
	fake.kicked = NULL;
}

static bool fake_queue(unsigned long delay, bool instead)
{
	if (fake.queued && !instead)
		return false;
	fake.queued = true;
	fake.delay = delay;
	return true;
}

static struct workqueue_struct *fake_workqueue(void)
{
	if (fake.no_memory)
		return NULL;
	fake.workqueues++;
	return (struct workqueue_struct *)&fake;
}

#define dev_pm_qos_add_request		fake_add
#define dev_pm_qos_update_request	fake_update
#define dev_pm_qos_remove_request	fake_remove
#define get_cpu_device			fake_cpu_device
#define irq_work_queue			fake_irq_work_queue
#define irq_work_sync			fake_irq_work_sync
#define mod_delayed_work(queue, work, delay)	fake_queue(delay, true)
#define queue_delayed_work(queue, work, delay)	fake_queue(delay, false)
#define cancel_delayed_work_sync(work)		(fake.queued = false)
#undef alloc_workqueue
#define alloc_workqueue(...)		fake_workqueue()
#define destroy_workqueue(queue)	(fake.workqueues--)
#define apic_timer_base_wake(cpu)	(fake.wakes++)

#include "../../module/core/policy/qos.c"
#include "../../module/core/qos_requests.c"

static void handler(unsigned long long now, unsigned long data)
{
}

static struct apic_timer_list timers[3];

/* Do what the core does to program for an exact timer; here the core calls a stub instead. */
static void program(void)
{
	struct apic_timer_base *base = machine_base();
	struct apic_timer_base_head head;
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	apic_timer_base_peek(base, &head);
	if (head.exact)
		apic_timer_qos_want(head.expires);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

static void arm(struct kunit *test, unsigned int n, u64 ns)
{
	timers[n].expires = apic_timer_sim.now + ns;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[n]), 0);
	program();
}

/* Run what the kernel would run: the kick at once, then the work item when it is due. */
static void run_work(void)
{
	if (fake.kicked)
		fake.kicked->func(fake.kicked);
	fake.kicked = NULL;
	if (!fake.queued)
		return;
	apic_timer_sim_run(apic_timer_sim.now + fake.delay * TICK_NSEC, MACHINE_LIMIT);
	fake.queued = false;
	reevaluate(NULL);
}

/* Run the check as it would run for another CPU. */
static void look_now(void)
{
	fake.queued = true;
	fake.delay = 0;
	run_work();
}

static void pass(u64 ns)
{
	apic_timer_sim_run(apic_timer_sim.now + ns, MACHINE_LIMIT);
	program();
}

static int qos_test_init(struct kunit *test)
{
	unsigned int i;
	int ret = machine_init(test);

	if (ret)
		return ret;
	fake = (struct fake_qos) { .us = NO_REQUEST };
	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		init_apic_timer(&timers[i]);
		timers[i].function = handler;
		timers[i].flags = APIC_TIMER_EXACT;
	}
	latency_qos = true;
	latency_qos_us = ALLOWED_US;
	ret = apic_timer_qos_init();
	apic_timer_qos_online();
	return ret;
}

static void qos_test_exit(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(timers); i++)
		del_apic_timer(&timers[i]);
	apic_timer_qos_offline();
	apic_timer_qos_exit();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	KUNIT_EXPECT_EQ(test, fake.adds, fake.removes);
	KUNIT_EXPECT_EQ(test, fake.workqueues, 0);
	machine_exit(test);
}

static void near_test(struct kunit *test)
{
	arm(test, 0, 10 * MS);
	KUNIT_EXPECT_NOT_NULL(test, fake.kicked);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
	KUNIT_EXPECT_EQ(test, apic_timer_qos_requested(0), ALLOWED_US);
	/* While there is a request, an expiry costs no kick. */
	arm(test, 1, 5 * MS);
	KUNIT_EXPECT_NULL(test, fake.kicked);
	KUNIT_EXPECT_TRUE(test, fake.queued);

	/* The request stays for a while after the last expiry, and is then withdrawn. */
	pass(20 * MS);
	look_now();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	KUNIT_EXPECT_EQ(test, apic_timer_qos_requested(0), -1);
	KUNIT_EXPECT_FALSE(test, fake.queued);
	KUNIT_EXPECT_EQ(test, fake.adds, 1U);
}

/* Successive expiries keep one request, which is not added anew for each. */
static void periodic_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 100; i++) {
		arm(test, 0, 40 * MS);
		if (fake.kicked)
			run_work();
		pass(41 * MS);
		KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
	}
	KUNIT_EXPECT_EQ(test, fake.adds, 1U);
	KUNIT_EXPECT_EQ(test, fake.updates, 0U);
}

/* A timer at any distance is checked again in time, although the timer wheel is late. */
static void far_test(struct kunit *test)
{
	static const u64 ns[] = { 80 * MS, 200 * MS, NSEC_PER_SEC, 60 * NSEC_PER_SEC,
				  3600 * NSEC_PER_SEC };
	unsigned int i, looks;
	u64 delay;

	for (i = 0; i < ARRAY_SIZE(ns); i++) {
		arm(test, 0, ns[i]);
		KUNIT_EXPECT_NOT_NULL(test, fake.kicked);
		looks = 0;
		do {
			run_work();
			KUNIT_ASSERT_TRUE(test, fake.queued);
			if (fake.us != NO_REQUEST)
				break;
			delay = fake.delay * TICK_NSEC;
			/* A check that is an eighth late still comes before the expiry. */
			KUNIT_EXPECT_LT_MSG(test, apic_timer_sim.now + delay + delay / 8,
					    timers[0].expires, "%llu ns", ns[i]);
		} while (++looks < 20);
		KUNIT_EXPECT_EQ_MSG(test, fake.us, ALLOWED_US, "%llu ns, %u looks", ns[i], looks);
		KUNIT_EXPECT_GT(test, timers[0].expires, apic_timer_sim.now);
		KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
		look_now();
		KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
		KUNIT_EXPECT_FALSE(test, fake.queued);
	}
}

/* If a far expiry is known, only one well before it needs a check at once. */
static void earlier_test(struct kunit *test)
{
	arm(test, 0, NSEC_PER_SEC);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	arm(test, 1, NSEC_PER_SEC - 10 * MS);
	KUNIT_EXPECT_NULL(test, fake.kicked);
	arm(test, 2, 20 * MS);
	KUNIT_EXPECT_NOT_NULL(test, fake.kicked);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
}

/* Never is no expiry. */
static void never_test(struct kunit *test)
{
	timers[0].expires = U64_MAX;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[0]), 0);
	program();
	KUNIT_EXPECT_NULL(test, fake.kicked);
	arm(test, 1, 10 * MS);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
	pass(10 * MS);
	run_work();
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	KUNIT_EXPECT_FALSE(test, fake.queued);
}

/* Of several timers on one CPU the head counts: a deleted one leaves no request behind. */
static void deleted_test(struct kunit *test)
{
	arm(test, 0, 20 * MS);
	arm(test, 1, 2 * NSEC_PER_SEC);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	/* The other timer is known, and checked in time. */
	KUNIT_EXPECT_TRUE(test, fake.queued);

	/* Timers of other modes need no request. */
	timers[2].flags = APIC_TIMER_RAW;
	arm(test, 2, 10 * MS);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.adds, 1U);
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
}

/* A request that can't be added is tried again, and not taken for an existing one. */
static void refused_test(struct kunit *test)
{
	fake.error = -ENOMEM;
	arm(test, 0, 30 * MS);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	KUNIT_EXPECT_EQ(test, apic_timer_qos_requested(0), -1);
	KUNIT_EXPECT_TRUE(test, fake.queued);
	fake.error = 0;
	fake.no_device = true;
	look_now();
	KUNIT_EXPECT_EQ(test, apic_timer_qos_requested(0), -1);
	KUNIT_EXPECT_TRUE(test, fake.queued);
	fake.no_device = false;
	look_now();
	KUNIT_EXPECT_EQ(test, apic_timer_qos_requested(0), ALLOWED_US);
	KUNIT_EXPECT_EQ(test, fake.adds, 1U);
}

/* The allowed latency follows from the budget, and changes with it. */
static void budget_test(struct kunit *test)
{
	s32 first;

	latency_qos_us = -1;
	timers[0].spin_budget = 100000;
	arm(test, 0, 30 * MS);
	run_work();
	first = fake.us;
	KUNIT_EXPECT_GT(test, first, 0);
	KUNIT_EXPECT_LE(test, first, 100);
	timers[1].spin_budget = 20000;
	arm(test, 1, 10 * MS);
	look_now();
	KUNIT_EXPECT_LE(test, fake.us, 20);
	KUNIT_EXPECT_LT(test, fake.us, first);
	KUNIT_EXPECT_EQ(test, fake.updates, 1U);
	KUNIT_EXPECT_EQ(test, fake.adds, 1U);

	/* Only latency_qos_us=0 makes an idle CPU poll, no matter how small the budget is. */
	timers[2].spin_budget = 1;
	arm(test, 2, 5 * MS);
	look_now();
	KUNIT_EXPECT_GE(test, fake.us, C1_US);
}

/* A CPU that stays idle until after the expiry notices a request only if it is woken. */
static void woken_test(struct kunit *test)
{
	arm(test, 0, 10 * MS);
	run_work();
	/* The timer itself wakes the CPU, but it would leave a deep state too late. */
	KUNIT_EXPECT_EQ(test, fake.wakes, 1U);
	look_now();
	KUNIT_EXPECT_EQ(test, fake.wakes, 1U);
	pass(10 * MS);
	arm(test, 1, 3600 * NSEC_PER_SEC);
	run_work();
	run_work();
	/* No timer expires for an hour: the CPU is not left polling. */
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	KUNIT_EXPECT_EQ(test, fake.wakes, 2U);
}

/* A CPU that goes offline leaves no request, and gets none while it is offline. */
static void offline_test(struct kunit *test)
{
	arm(test, 0, 20 * MS);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
	machine_base()->online = false;
	apic_timer_qos_offline();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	look_now();
	KUNIT_EXPECT_EQ(test, fake.us, NO_REQUEST);
	KUNIT_EXPECT_FALSE(test, fake.queued);

	apic_timer_qos_online();
	machine_base()->online = true;
	program();
	KUNIT_EXPECT_NOT_NULL(test, fake.kicked);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
}

/* The TSC may have jumped: the expiries are checked anew. */
static void restart_test(struct kunit *test)
{
	unsigned long flags;

	arm(test, 0, 3600 * NSEC_PER_SEC);
	run_work();
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	local_irq_save(flags);
	apic_timer_sim.now = 3 * NSEC_PER_SEC;
	apic_timer_qos_restart();
	local_irq_restore(flags);
	KUNIT_EXPECT_NOT_NULL(test, fake.kicked);
	arm(test, 1, 20 * MS);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, ALLOWED_US);
}

static void parameters_test(struct kunit *test)
{
	latency_qos_us = -2;
	KUNIT_EXPECT_EQ(test, apic_timer_qos_init(), -ERANGE);
	latency_qos_us = 0;
	fake.no_memory = true;
	KUNIT_EXPECT_EQ(test, apic_timer_qos_init(), -ENOMEM);
	/* As set up by init() of the suite */
	apic_timer_qos_workqueue = (struct workqueue_struct *)&fake;

	/* 0 us: idle CPUs poll. */
	arm(test, 0, 20 * MS);
	run_work();
	KUNIT_EXPECT_EQ(test, fake.us, 0);
	KUNIT_EXPECT_EQ(test, apic_timer_qos_requested(0), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(near_test),
	KUNIT_CASE(periodic_test),
	KUNIT_CASE(far_test),
	KUNIT_CASE(earlier_test),
	KUNIT_CASE(never_test),
	KUNIT_CASE(deleted_test),
	KUNIT_CASE(refused_test),
	KUNIT_CASE(budget_test),
	KUNIT_CASE(woken_test),
	KUNIT_CASE(offline_test),
	KUNIT_CASE(restart_test),
	KUNIT_CASE(parameters_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_qos_requests",
	.init = qos_test_init,
	.exit = qos_test_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
