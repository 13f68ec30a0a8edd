// SPDX-License-Identifier: GPL-2.0
/*
 * Moments of the kernel's clock, and notifications about the TSC.
 */
#include <linux/errno.h>
#include <linux/ktime.h>

#include "selftest.h"

#define AHEAD_MS	100

static void take_time(struct selftest_shot *shot)
{
	*(ktime_t *)shot->context = ktime_get();
}

/* A moment of CLOCK_MONOTONIC converted to TSC is met, judged by that clock. */
static void monotonic_moment(struct selftest *test)
{
	ktime_t moment = ktime_add_ms(ktime_get(), AHEAD_MS), time = 0;
	struct selftest_shot shot;

	selftest_shot_init(&shot, take_time);
	shot.context = &time;
	selftest_shot_due(&shot, apic_timer_ktime_to_tsc(moment));
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	selftest_note(test, "off by %lld ns\n",
		      ktime_to_ns(ktime_sub(time, moment)));
	del_apic_timer_sync(&shot.timer);
}

static int ignore(struct notifier_block *block, unsigned long event,
		  void *notice)
{
	return NOTIFY_OK;
}

static void notifier(struct selftest *test)
{
	static struct notifier_block block = { .notifier_call = ignore };
	struct apic_timer_info info;

	EXPECT_EQ(test, apic_timer_unregister_notifier(&block), -ENOENT);
	EXPECT_EQ(test, apic_timer_register_notifier(&block), 0);
	EXPECT_EQ(test, apic_timer_register_notifier(&block), -EEXIST);
	EXPECT_EQ(test, apic_timer_unregister_notifier(&block), 0);

	EXPECT_EQ(test, apic_timer_query(0, &info), 0);
	EXPECT_EQ(test, info.tsc_epoch, 0);
}

const struct selftest_case selftest_clock_cases[] = {
	CASE(monotonic_moment),
	CASE(notifier),
	{}
};
