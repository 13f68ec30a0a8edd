// SPDX-License-Identifier: GPL-2.0
/*
 * Change a timer's expiry from task context, on its own CPU. Interrupts are off where nothing may
 * run meanwhile, on machines of any speed.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "selftest.h"

static u64 in_us(unsigned int us)
{
	return apic_timer_now() + apic_timer_us_to_tsc(us);
}

/* Let mod_apic_timer() set the moment. */
static int mod_to(struct selftest_shot *shot, u64 expires)
{
	WRITE_ONCE(shot->due, expires);
	return mod_apic_timer(&shot->timer, expires);
}

static void mod_arms(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	EXPECT_EQ(test, mod_to(&shot, in_us(2000)), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.cpu, smp_processor_id());

	/* And again after it has run. */
	EXPECT_EQ(test, mod_to(&shot, in_us(2000)), 0);
	EXPECT_RUNS(test, &shot, 2);
	EXPECT_EQ(test, shot.cpu, smp_processor_id());
	del_apic_timer_sync(&shot.timer);
}

static void mod_earlier(struct selftest *test)
{
	struct selftest_shot shot;
	u64 expires;

	selftest_shot_init(&shot, NULL);
	shot.timer.expires = in_us(3600000000U);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	expires = in_us(2000);
	EXPECT_EQ(test, mod_to(&shot, expires), 1);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.timer.expires, expires);
	del_apic_timer_sync(&shot.timer);
}

static void mod_later(struct selftest *test)
{
	struct selftest_shot shot;
	int i;

	selftest_shot_init(&shot, NULL);
	local_irq_disable();
	selftest_shot_due_us(&shot, 1000);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(test, mod_to(&shot, shot.due +
				       apic_timer_us_to_tsc(200)), 1);
	local_irq_enable();
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

static void mod_to_the_past(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	shot.timer.expires = U64_MAX;
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, mod_to(&shot, 0), 1);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

/* Delete the head and add it again: the timer behind it is still on time. */
static void mod_head_behind(struct selftest *test)
{
	struct selftest_shot head, next;

	selftest_shot_init(&head, NULL);
	selftest_shot_init(&next, NULL);
	local_irq_disable();
	selftest_shot_due_us(&head, 2000);
	selftest_shot_due_us(&next, 3000);
	EXPECT_EQ(test, add_apic_timer(&head.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&next.timer), 0);
	EXPECT_EQ(test, mod_to(&head, next.due + 1), 1);
	local_irq_enable();
	EXPECT_RUNS(test, &next, 1);
	EXPECT_RUNS(test, &head, 1);
	EXPECT(test, head.order > next.order);
	del_apic_timer_sync(&head.timer);
	del_apic_timer_sync(&next.timer);
}

/* A timer moved to an expiry that others have runs after them. */
static void mod_to_equal(struct selftest *test)
{
	struct selftest_shot a, b;

	selftest_shot_init(&a, NULL);
	selftest_shot_init(&b, NULL);
	local_irq_disable();
	selftest_shot_due_us(&a, 2000);
	selftest_shot_due(&b, a.due);
	EXPECT_EQ(test, add_apic_timer(&a.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&b.timer), 0);
	EXPECT_EQ(test, mod_to(&a, a.due), 1);
	local_irq_enable();
	EXPECT_RUNS(test, &a, 1);
	EXPECT_RUNS(test, &b, 1);
	EXPECT(test, a.order > b.order);
	del_apic_timer_sync(&a.timer);
	del_apic_timer_sync(&b.timer);
}

static void deleted_never_runs(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	local_irq_disable();
	selftest_shot_due_us(&shot, 2000);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, del_apic_timer(&shot.timer), 1);
	local_irq_enable();
	EXPECT(test, !apic_timer_pending(&shot.timer));
	selftest_sleep_ms(10);
	EXPECT_EQ(test, atomic_read(&shot.runs), 0);

	/* It can be armed again. */
	selftest_shot_due_us(&shot, 1000);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

/* From the head, the middle and the end of the queue. */
static void delete_anywhere(struct selftest *test)
{
	struct selftest_shot shots[9];
	unsigned int i;

	local_irq_disable();
	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		selftest_shot_init(&shots[i], NULL);
		selftest_shot_due_us(&shots[i], 2000 + 100 * i);
		EXPECT_EQ(test, add_apic_timer(&shots[i].timer), 0);
	}
	for (i = 0; i < ARRAY_SIZE(shots); i += 4)
		EXPECT_EQ(test, del_apic_timer_sync(&shots[i].timer), 1);
	local_irq_enable();
	for (i = 0; i < ARRAY_SIZE(shots); i++)
		EXPECT_RUNS(test, &shots[i], i % 4 ? 1 : 0);
	for (i = 0; i < ARRAY_SIZE(shots); i++)
		del_apic_timer_sync(&shots[i].timer);
}

struct watch {
	struct selftest_shot shot;
	unsigned int looks, wrong;
};

static int watch_it(void *data)
{
	struct watch *watch = data;

	while (!kthread_should_stop()) {
		cond_resched();
		watch->looks++;
		watch->wrong += !apic_timer_pending(&watch->shot.timer);
	}
	return 0;
}

/* Another CPU finds it pending all the time while its expiry is changed. */
static void pending_while_modified(struct selftest *test)
{
	struct watch watch = {};
	struct task_struct *watcher;
	unsigned int i;

	selftest_shot_init(&watch.shot, NULL);
	EXPECT_EQ(test, mod_to(&watch.shot, in_us(3600000000U)), 0);
	watcher = kthread_create(watch_it, &watch, "apic_timer_watch");
	if (EXPECT(test, !IS_ERR(watcher))) {
		kthread_bind(watcher, cpumask_last(cpu_online_mask));
		wake_up_process(watcher);
		EXPECT(test, selftest_wait(READ_ONCE(watch.looks)));
		for (i = 0; i < 100000; i++) {
			EXPECT_EQ(test, mod_to(&watch.shot, in_us(3600000000U)), 1);
			cond_resched();
		}
		kthread_stop(watcher);
		EXPECT_EQ(test, watch.wrong, 0);
	}
	EXPECT_EQ(test, del_apic_timer_sync(&watch.shot.timer), 1);
}

const struct selftest_case selftest_change_cases[] = {
	CASE(mod_arms),
	CASE(mod_earlier),
	CASE(mod_later),
	CASE(mod_to_the_past),
	CASE(mod_head_behind),
	CASE(mod_to_equal),
	CASE(deleted_never_runs),
	CASE(delete_anywhere),
	CASE_SMP(pending_while_modified),
	{}
};
