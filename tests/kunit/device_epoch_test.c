// SPDX-License-Identifier: GPL-2.0
/*
 * device/epoch.c: waiters are notified of a new epoch, with interrupts on.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "device/epoch.h"

#define WAITERS	10000

static unsigned int calls, calls_off;

static void count(struct device_epoch_waiter *waiter)
{
	calls++;
	calls_off += irqs_disabled();
}

static struct device_epoch_waiter *crowd(struct kunit *test)
{
	struct device_epoch_waiter *waiters;
	unsigned int i;

	waiters = kunit_kcalloc(test, WAITERS, sizeof(*waiters), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, waiters);
	for (i = 0; i < WAITERS; i++) {
		waiters[i].began = count;
		device_epoch_add(&waiters[i]);
	}
	calls = 0;
	calls_off = 0;
	return waiters;
}

/* An epoch begins with interrupts off, and calls no waiter then. */
static void interrupts_on_test(struct kunit *test)
{
	struct device_epoch_waiter *waiters = crowd(test);
	unsigned int i, at_once;
	unsigned long flags;

	local_irq_save(flags);
	device_epoch_began();
	at_once = calls;
	local_irq_restore(flags);
	device_epoch_sync();
	KUNIT_EXPECT_EQ(test, at_once, 0);
	KUNIT_EXPECT_EQ(test, calls_off, 0);
	KUNIT_EXPECT_EQ(test, calls, WAITERS);
	for (i = 0; i < WAITERS; i++)
		device_epoch_del(&waiters[i]);
}

/* A removed waiter is not notified; a remaining one is, in each epoch. */
static void left_test(struct kunit *test)
{
	struct device_epoch_waiter *waiters = crowd(test);
	unsigned int i;

	for (i = 1; i < WAITERS; i++)
		device_epoch_del(&waiters[i]);
	device_epoch_began();
	device_epoch_sync();
	KUNIT_EXPECT_EQ(test, calls, 1);
	device_epoch_began();
	device_epoch_sync();
	KUNIT_EXPECT_EQ(test, calls, 2);
	device_epoch_del(&waiters[0]);
}

static struct device_epoch_waiter *last;
static struct task_struct *leaver;
static unsigned int calls_at_leave;
static DECLARE_COMPLETION(gone);

static int leave(void *unused)
{
	device_epoch_del(last);
	calls_at_leave = calls;
	complete(&gone);
	return 0;
}

static void have_last_leave(struct device_epoch_waiter *waiter)
{
	calls++;
	wake_up_process(leaver);
}

/* A thread that removes a waiter does not wait until all others have been notified. */
static void meanwhile_test(struct kunit *test)
{
	struct device_epoch_waiter *waiters = crowd(test);
	unsigned int i;

	/* The one that was added last is notified first. */
	waiters[WAITERS - 1].began = have_last_leave;
	last = &waiters[0];
	reinit_completion(&gone);
	leaver = kthread_create(leave, NULL, "leaver");
	KUNIT_ASSERT_FALSE(test, IS_ERR(leaver));
	/* It preempts the thread that notifies. */
	sched_set_fifo(leaver);
	device_epoch_began();
	device_epoch_sync();
	wait_for_completion(&gone);
	KUNIT_EXPECT_EQ(test, calls_at_leave, 1);
	KUNIT_EXPECT_EQ(test, calls, WAITERS - 1);
	for (i = 1; i < WAITERS; i++)
		device_epoch_del(&waiters[i]);
}

static struct kunit_case device_epoch_test_cases[] = {
	KUNIT_CASE(interrupts_on_test),
	KUNIT_CASE(left_test),
	KUNIT_CASE(meanwhile_test),
	{}
};

static struct kunit_suite device_epoch_test_suite = {
	.name = "apic_timer_device_epoch",
	.test_cases = device_epoch_test_cases,
};

kunit_test_suite(device_epoch_test_suite);
/* device/epoch.c is not a module of its own here. */
#include "device/epoch.c"
