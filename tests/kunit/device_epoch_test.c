// SPDX-License-Identifier: GPL-2.0
/*
 * device/epoch.c: waiters are notified of a new epoch, with interrupts on.
 */
#include <kunit/test.h>
#include <linux/irqflags.h>
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

static struct kunit_case device_epoch_test_cases[] = {
	KUNIT_CASE(interrupts_on_test),
	KUNIT_CASE(left_test),
	{}
};

static struct kunit_suite device_epoch_test_suite = {
	.name = "apic_timer_device_epoch",
	.test_cases = device_epoch_test_cases,
};

kunit_test_suite(device_epoch_test_suite);
/* device/epoch.c is not a module of its own here. */
#include "device/epoch.c"
