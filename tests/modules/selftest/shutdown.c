// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that are shut down stay so, whatever tries to arm them.
 */
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/smp.h>

#include "selftest.h"

/* Nothing can arm it, at any number of tries, in any way. */
static void expect_shut_down(struct selftest *test, struct selftest_shot *shot)
{
	u64 expires = shot->timer.expires;

	EXPECT_EQ(test, add_apic_timer(&shot->timer), -ESHUTDOWN);
	EXPECT_EQ(test, add_apic_timer_on(&shot->timer, 0), -ESHUTDOWN);
	EXPECT_EQ(test, mod_apic_timer(&shot->timer, 0), -ESHUTDOWN);
	EXPECT_EQ(test, shot->timer.expires, expires);
	EXPECT(test, !apic_timer_pending(&shot->timer));
	EXPECT_EQ(test, del_apic_timer(&shot->timer), 0);
	EXPECT_EQ(test, del_apic_timer_sync(&shot->timer), 0);
	EXPECT_EQ(test, apic_timer_shutdown_sync(&shot->timer), 0);
}

static void shutdown_never_armed(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	EXPECT_EQ(test, apic_timer_shutdown_sync(&shot.timer), 0);
	expect_shut_down(test, &shot);

	/* It is fully usable again. */
	selftest_shot_init(&shot, NULL);
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, apic_timer_shutdown_sync(&shot.timer), 0);
	expect_shut_down(test, &shot);
}

static void shutdown_pending(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	shot.timer.expires = apic_timer_now() + apic_timer_us_to_tsc(3600000000U);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, apic_timer_shutdown_sync(&shot.timer), 1);
	expect_shut_down(test, &shot);
	EXPECT_EQ(test, atomic_read(&shot.runs), 0);
}

static void shutdown_no_timer(struct selftest *test)
{
	struct apic_timer_list zeroed = {};

	EXPECT_EQ(test, apic_timer_shutdown_sync(NULL), -EINVAL);
	EXPECT_EQ(test, apic_timer_shutdown_sync(&zeroed), -EINVAL);
}

/* It does not end here, but does not begin again either. */
static void shut_oneself_down(struct selftest_shot *shot)
{
	shot->ret = apic_timer_shutdown_sync(&shot->timer);
	shot->limit = -add_apic_timer(&shot->timer);
}

static void shutdown_from_its_handler(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, shut_oneself_down);
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.ret, -EDEADLK);
	EXPECT_EQ(test, shot.limit, ESHUTDOWN);
	EXPECT_EQ(test, apic_timer_shutdown_sync(&shot.timer), 0);
	expect_shut_down(test, &shot);
}

/* Two timers whose handlers arm the other one, each on the other's CPU. */
struct pair {
	struct selftest_shot shot[2];
	int cpu[2];
};

static void arm_the_other(struct selftest_shot *shot)
{
	struct pair *pair = shot->context;
	unsigned int other = shot == &pair->shot[0];

	selftest_shot_due(&pair->shot[other], shot->now + apic_timer_us_to_tsc(20));
	shot->ret = add_apic_timer_on(&pair->shot[other].timer, pair->cpu[other]);
}

static void shutdown_a_pair(struct selftest *test)
{
	struct pair pair;
	unsigned int i, n;
	int runs[2];

	pair.cpu[0] = smp_processor_id();
	pair.cpu[1] = cpumask_any_but(cpu_online_mask, pair.cpu[0]);
	if (pair.cpu[1] >= nr_cpu_ids)
		pair.cpu[1] = pair.cpu[0];

	for (n = 0; n < 200 && !test->failed; n++) {
		for (i = 0; i < 2; i++) {
			selftest_shot_init(&pair.shot[i], arm_the_other);
			pair.shot[i].context = &pair;
		}
		selftest_shot_due_us(&pair.shot[0], 10);
		EXPECT_EQ(test, add_apic_timer(&pair.shot[0].timer), 0);
		EXPECT(test, selftest_wait(atomic_read(&pair.shot[n % 2].runs) > n % 8));

		EXPECT_GE(test, apic_timer_shutdown_sync(&pair.shot[0].timer), 0);
		EXPECT_GE(test, apic_timer_shutdown_sync(&pair.shot[1].timer), 0);
		for (i = 0; i < 2; i++) {
			expect_shut_down(test, &pair.shot[i]);
			EXPECT_EQ(test, atomic_read(&pair.shot[i].inside), 0);
			EXPECT_EQ(test, atomic_read(&pair.shot[i].faults), 0);
			runs[i] = atomic_read(&pair.shot[i].runs);
		}
		selftest_spin_us(100);
		for (i = 0; i < 2; i++)
			EXPECT_EQ(test, atomic_read(&pair.shot[i].runs), runs[i]);
	}
}

/* A handler that arms its timer while a caller waits for it is rejected. */
struct late_rearm {
	struct selftest_shot shot;
	bool release;
};

static void rearm_when_released(struct selftest_shot *shot)
{
	struct late_rearm *late = container_of(shot, struct late_rearm, shot);

	selftest_spin_until(READ_ONCE(late->release));
	selftest_spin_us(2000);
	shot->ret = mod_apic_timer(&shot->timer, 0);
	/* The waiting CPU may be delayed for longer than these 2 ms. */
	if (!shot->ret)
		shot->then = NULL;
}

static void shutdown_waits(struct selftest *test)
{
	int cpu = cpumask_any_but(cpu_online_mask, smp_processor_id()), ret;
	struct late_rearm late = {};

	selftest_shot_init(&late.shot, rearm_when_released);
	EXPECT_EQ(test, add_apic_timer_on(&late.shot.timer, cpu), 0);
	EXPECT(test, selftest_wait(atomic_read(&late.shot.inside)));
	WRITE_ONCE(late.release, true);
	ret = apic_timer_shutdown_sync(&late.shot.timer);
	EXPECT_EQ(test, atomic_read(&late.shot.inside), 0);
	EXPECT(test, late.shot.ret == -ESHUTDOWN || late.shot.ret == 0);
	EXPECT_EQ(test, atomic_read(&late.shot.runs), 1 + (!late.shot.ret && !ret));
	expect_shut_down(test, &late.shot);
}

const struct selftest_case selftest_shutdown_cases[] = {
	CASE(shutdown_never_armed),
	CASE(shutdown_pending),
	CASE(shutdown_no_timer),
	CASE(shutdown_from_its_handler),
	CASE(shutdown_a_pair),
	CASE_SMP(shutdown_waits),
	{}
};
