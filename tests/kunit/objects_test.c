// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel with debug objects warns about misuse of timers, and the timers are
 * deleted before harm is done.
 *
 * "splat expected" in the log informs its reader that one warning follows.
 */
#include <kunit/test.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "machine.h"
#include "timers/state.h"

static unsigned int runs;

static void count_run(unsigned long long now, unsigned long data)
{
	runs++;
}

static DEFINE_APIC_TIMER(static_timer, count_run, 0);

static int debug_objects_test_init(struct kunit *test)
{
	int ret = machine_init(test);

	runs = 0;
	if (!IS_ENABLED(CONFIG_DEBUG_OBJECTS_FREE))
		kunit_skip(test, "the kernel has no CONFIG_DEBUG_OBJECTS_FREE");
	return ret;
}

static void run_for(u64 cycles)
{
	apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

static struct apic_timer_list *pending(struct kunit *test)
{
	struct apic_timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, timer);
	timer->function = count_run;
	init_apic_timer(timer);
	timer->expires = apic_timer_sim.now + 10000;
	KUNIT_EXPECT_EQ(test, add_apic_timer(timer), 0);
	return timer;
}

static void freed_while_pending_test(struct kunit *test)
{
	struct apic_timer_list *timer = pending(test);

	kunit_info(test, "splat expected");
	kfree(timer);
	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 0U);
}

static void initialised_while_pending_test(struct kunit *test)
{
	struct apic_timer_list *timer = pending(test);

	kunit_info(test, "splat expected");
	init_apic_timer(timer);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(timer));
	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 0U);

	/* And the timer can be used. */
	timer->expires = apic_timer_sim.now + 1000;
	KUNIT_EXPECT_EQ(test, add_apic_timer(timer), 0);
	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	kfree(timer);
}

/* As with kzalloc() after a free, or memset() and init, while the timer is pending. */
static void zeroed_while_pending_test(struct kunit *test)
{
	struct apic_timer_list *timer = pending(test);

	kunit_info(test, "splat expected");
	memset(timer, 0, sizeof(*timer));
	timer->function = count_run;
	init_apic_timer(timer);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(timer));

	/* It is still in the queue, which could not be detected. */
	KUNIT_EXPECT_EQ(test, machine_base()->queue.count, 1UL);
	apic_timer_queue_init(&machine_base()->queue);
	kfree(timer);

	timer = pending(test);
	kunit_info(test, "splat expected");
	memset(timer, 0, sizeof(*timer));
	kfree(timer);
	apic_timer_queue_init(&machine_base()->queue);
	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 0U);
}

static void nothing_wrong_test(struct kunit *test)
{
	struct apic_timer_list on_stack = { .function = count_run };
	struct apic_timer_list *timer = pending(test);

	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	kfree(timer);

	timer = pending(test);
	KUNIT_EXPECT_EQ(test, del_apic_timer(timer), 1);
	kfree(timer);

	timer = pending(test);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(timer), 1);
	KUNIT_EXPECT_EQ(test, add_apic_timer(timer), -ESHUTDOWN);
	init_apic_timer(timer);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(timer), 0);
	kfree(timer);

	static_timer.expires = apic_timer_sim.now + 1000;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&static_timer), 0);
	init_apic_timer(&on_stack);
	on_stack.expires = apic_timer_sim.now + 1000;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&on_stack), 0);
	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 3U);
}

static struct kunit_case debug_objects_test_cases[] = {
	KUNIT_CASE(freed_while_pending_test),
	KUNIT_CASE(initialised_while_pending_test),
	KUNIT_CASE(zeroed_while_pending_test),
	KUNIT_CASE(nothing_wrong_test),
	{}
};

static struct kunit_suite debug_objects_test_suite = {
	.name = "apic_timer_debug_objects",
	.init = debug_objects_test_init,
	.exit = machine_exit,
	.test_cases = debug_objects_test_cases,
};

kunit_test_suite(debug_objects_test_suite);
