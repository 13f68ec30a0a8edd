// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers that would occupy a CPU forever: its tick and its tasks still run.
 */
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "selftest.h"

/* Arm the own timer for the past until requested to stop. */
static void greedy(struct selftest_shot *shot)
{
	if (shot->limit)
		selftest_spin_us(shot->limit);
	if (READ_ONCE(shot->ret))
		return;
	shot->timer.expires = 0;
	add_apic_timer(&shot->timer);
}

/* This thread and the handler are on one CPU. */
static void share(struct selftest *test, unsigned int shots_count,
		  unsigned int handler_us)
{
	struct selftest_shot shots[4];
	unsigned long ticks = jiffies;
	unsigned int i, slept;
	u64 start = apic_timer_now();
	ktime_t time = ktime_get();

	for (i = 0; i < shots_count; i++) {
		selftest_shot_init(&shots[i], greedy);
		shots[i].limit = handler_us;
		EXPECT_EQ(test, add_apic_timer(&shots[i].timer), 0);
	}
	/* It wakes up again and again, and computes in between. */
	for (slept = 0; slept < 20; slept++) {
		selftest_sleep_ms(10);
		selftest_spin_us(10);
		cond_resched();
	}
	/* Both handler and tick got their share. */
	for (i = 0; i < shots_count; i++)
		EXPECT_GE(test, atomic_read(&shots[i].runs), 10);
	EXPECT_GE(test, jiffies - ticks, 5);
	EXPECT_GE(test, ktime_to_ms(ktime_sub(ktime_get(), time)), 200);
	selftest_note(test, "20 sleeps of 10 ms: %llu us, %u handlers\n",
		      apic_timer_tsc_to_ns(apic_timer_now() - start) / 1000,
		      atomic_read(&shots[0].runs));

	/* And the handler can be stopped from here. */
	for (i = 0; i < shots_count; i++) {
		EXPECT_GE(test, del_apic_timer_sync(&shots[i].timer), 0);
		EXPECT(test, !apic_timer_pending(&shots[i].timer));
		EXPECT_EQ(test, atomic_read(&shots[i].faults), 0);
	}
}

static void rearms_in_the_past(struct selftest *test)
{
	share(test, 1, 0);
}

static void several_rearm_in_the_past(struct selftest *test)
{
	share(test, 4, 0);
}

static void runs_long(struct selftest *test)
{
	share(test, 1, 5000);
}

const struct selftest_case selftest_bounded_cases[] = {
	CASE(rearms_in_the_past),
	CASE(several_rearm_in_the_past),
	CASE(runs_long),
	{}
};
