// SPDX-License-Identifier: GPL-2.0
/*
 * device/later.c: all work of handlers is done, a batch at a time, except cancelled work.
 *
 * Interrupts are off, so that the cases do the work, and not interrupts of the real machine.
 */
#include <kunit/test.h>
#include <linux/irqflags.h>

#include "machine.h"

/* device/later.c is not a module of its own here. */
#include "device/later.c"

#define MOST	(3 * BATCH)

static struct device_later laters[MOST];
static unsigned int calls, order[MOST];
static unsigned long flags;

static void count(struct device_later *later)
{
	if (calls < MOST)
		order[calls] = later - laters;
	calls++;
}

static int device_later_test_init(struct kunit *test)
{
	unsigned int i;
	int ret = machine_init(test);

	if (ret)
		return ret;
	device_later_init();
	for (i = 0; i < MOST; i++)
		laters[i] = (struct device_later) { .call = count };
	calls = 0;
	local_irq_save(flags);
	return 0;
}

static void device_later_test_exit(struct kunit *test)
{
	del_apic_timer_sync(this_cpu_ptr(&later_cpus.resume));
	local_irq_restore(flags);
	device_later_exit();
	machine_exit(test);
}

static void leave(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		device_later(&laters[i]);
}

/* Do what the interrupt does. */
static void interrupt(void)
{
	run(this_cpu_ptr(&later_cpus.work));
}

static bool pauses(void)
{
	return apic_timer_pending(this_cpu_ptr(&later_cpus.resume));
}

static void pause_ends(void)
{
	apic_timer_sim_run(apic_timer_sim.now + 2 * apic_timer_us_to_tsc(PAUSE_US),
			   MACHINE_LIMIT);
}

/* Work is done in the order in which it was queued, with a pause after each batch. */
static void in_turn_test(struct kunit *test)
{
	unsigned int i;

	leave(MOST - 1);
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, BATCH);
	KUNIT_EXPECT_TRUE(test, pauses());
	device_later(&laters[MOST - 1]);
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, 2 * BATCH);
	KUNIT_EXPECT_TRUE(test, pauses());
	pause_ends();
	KUNIT_EXPECT_FALSE(test, pauses());
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, MOST);
	for (i = 0; i < MOST; i++)
		KUNIT_EXPECT_EQ(test, order[i], i);
}

/* There is no pause if no work is left after it. */
static void no_pause_test(struct kunit *test)
{
	leave(BATCH);
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, BATCH);
	KUNIT_EXPECT_FALSE(test, pauses());
	leave(2 * BATCH);
	interrupt();
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, 3 * BATCH);
}

/* There is no pause if no CPU has a timer to end it. */
static void no_timer_test(struct kunit *test)
{
	leave(MOST);
	machine_base()->online = false;
	machine_base()->open = false;
	interrupt();
	machine_base()->online = true;
	machine_base()->open = true;
	KUNIT_EXPECT_EQ(test, calls, MOST);
}

/* The CPU goes offline in the pause, and the timer that would end it is cancelled. */
static void died_test(struct kunit *test)
{
	leave(MOST);
	interrupt();
	del_apic_timer(this_cpu_ptr(&later_cpus.resume));
	died(smp_processor_id());
	KUNIT_EXPECT_EQ(test, calls, MOST);
}

/* Work can be cancelled, whether it was just queued or waits for the pause to end. */
static void cancel_test(struct kunit *test)
{
	leave(BATCH + 2);
	interrupt();
	KUNIT_EXPECT_TRUE(test, device_later_cancel(&laters[BATCH]));
	device_later(&laters[0]);
	device_later(&laters[1]);
	KUNIT_EXPECT_TRUE(test, device_later_cancel(&laters[0]));
	KUNIT_EXPECT_FALSE(test, device_later_cancel(&laters[0]));
	KUNIT_EXPECT_FALSE(test, device_later_cancel(&laters[2]));
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, BATCH + 2);
	KUNIT_EXPECT_EQ(test, order[BATCH], BATCH + 1);
	KUNIT_EXPECT_EQ(test, order[BATCH + 1], 1);
	KUNIT_EXPECT_FALSE(test, device_later_cancel(&laters[1]));
	/* It may be queued again. */
	device_later(&laters[0]);
	interrupt();
	KUNIT_EXPECT_EQ(test, order[BATCH + 2], 0);
}

/* An item that is queued is not queued again, and keeps its turn. */
static void queued_test(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, device_later(&laters[0]));
	KUNIT_EXPECT_TRUE(test, device_later(&laters[1]));
	KUNIT_EXPECT_FALSE(test, device_later(&laters[0]));
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, 2);
	KUNIT_EXPECT_EQ(test, order[0], 0);
	KUNIT_EXPECT_EQ(test, order[1], 1);
	KUNIT_EXPECT_TRUE(test, device_later(&laters[0]));
}

static void again(struct device_later *later)
{
	count(later);
	if (calls < 4)
		device_later(later);
}

/* Work may be queued again while its function runs, as by a handler on another CPU. */
static void again_test(struct kunit *test)
{
	laters[0].call = again;
	leave(2);
	interrupt();
	KUNIT_EXPECT_EQ(test, calls, 4);
	KUNIT_EXPECT_EQ(test, order[0], 0);
	KUNIT_EXPECT_EQ(test, order[1], 1);
	KUNIT_EXPECT_EQ(test, order[2], 0);
	KUNIT_EXPECT_EQ(test, order[3], 0);
	KUNIT_EXPECT_FALSE(test, device_later_cancel(&laters[0]));
}

static struct kunit_case device_later_test_cases[] = {
	KUNIT_CASE(in_turn_test),
	KUNIT_CASE(no_pause_test),
	KUNIT_CASE(no_timer_test),
	KUNIT_CASE(died_test),
	KUNIT_CASE(cancel_test),
	KUNIT_CASE(queued_test),
	KUNIT_CASE(again_test),
	{}
};

static struct kunit_suite device_later_test_suite = {
	.name = "apic_timer_device_later",
	.init = device_later_test_init,
	.exit = device_later_test_exit,
	.test_cases = device_later_test_cases,
};

kunit_test_suite(device_later_test_suite);
