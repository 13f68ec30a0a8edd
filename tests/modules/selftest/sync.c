// SPDX-License-Identifier: GPL-2.0
/*
 * Delete a timer from another CPU while its handler is running.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>

#include "selftest.h"

/* A handler that stays until it is released, and then does a little more. */
struct stay {
	struct selftest_shot shot;
	bool release;
	bool again;	/* arm it once more */
	bool ended;
};

static void stay(struct selftest_shot *shot)
{
	struct stay *stay = container_of(shot, struct stay, shot);

	selftest_spin_until(READ_ONCE(stay->release));
	if (stay->again) {
		stay->again = false;
		shot->timer.expires = 0;
		shot->ret = add_apic_timer(&shot->timer);
	}
	selftest_spin_us(2000);
	WRITE_ONCE(stay->ended, true);
}

static int other_cpu(void)
{
	return cpumask_any_but(cpu_online_mask, smp_processor_id());
}

/* Start it on another CPU, and return while it runs. */
static void enter(struct selftest *test, struct stay *stay_)
{
	selftest_shot_init(&stay_->shot, stay);
	stay_->release = false;
	stay_->ended = false;
	EXPECT_EQ(test, add_apic_timer_on(&stay_->shot.timer, other_cpu()), 0);
	EXPECT(test, selftest_wait(atomic_read(&stay_->shot.inside)));
}

static void delete_running(struct selftest *test)
{
	struct stay stay = {};

	enter(test, &stay);
	EXPECT(test, !apic_timer_pending(&stay.shot.timer));
	EXPECT_EQ(test, del_apic_timer(&stay.shot.timer), -EBUSY);
	EXPECT(test, !stay.ended);
	WRITE_ONCE(stay.release, true);
	EXPECT_RUNS(test, &stay.shot, 1);
	EXPECT_EQ(test, del_apic_timer_sync(&stay.shot.timer), 0);
	EXPECT_EQ(test, del_apic_timer(&stay.shot.timer), 0);
}

static void delete_sync_waits(struct selftest *test)
{
	struct stay stay = {};

	enter(test, &stay);
	WRITE_ONCE(stay.release, true);
	EXPECT_EQ(test, del_apic_timer_sync(&stay.shot.timer), 0);
	EXPECT(test, READ_ONCE(stay.ended));
	EXPECT_EQ(test, atomic_read(&stay.shot.inside), 0);
	EXPECT_RUNS(test, &stay.shot, 1);
}

/* It was armed again elsewhere while running: that shot is deleted, and the run waited for. */
static void delete_sync_moved(struct selftest *test)
{
	struct stay stay = {};

	enter(test, &stay);
	stay.shot.timer.expires = U64_MAX;
	EXPECT_EQ(test, add_apic_timer(&stay.shot.timer), 0);
	WRITE_ONCE(stay.release, true);
	EXPECT_EQ(test, del_apic_timer_sync(&stay.shot.timer), 1);
	EXPECT(test, READ_ONCE(stay.ended));
	EXPECT_RUNS(test, &stay.shot, 1);
}

/* Moved twice while it runs: the CPU where it runs is not forgotten. */
static void delete_sync_moved_twice(struct selftest *test)
{
	int first = other_cpu(), cpu;
	struct stay stay = {};

	enter(test, &stay);
	for_each_online_cpu(cpu) {
		stay.shot.timer.expires = U64_MAX;
		EXPECT_EQ(test, add_apic_timer_on(&stay.shot.timer, cpu), 0);
		EXPECT_EQ(test, del_apic_timer(&stay.shot.timer), 1);
		EXPECT_EQ(test, del_apic_timer(&stay.shot.timer), -EBUSY);
	}
	EXPECT_EQ(test, stay.shot.cpu, first);
	WRITE_ONCE(stay.release, true);
	EXPECT_EQ(test, del_apic_timer_sync(&stay.shot.timer), 0);
	EXPECT(test, READ_ONCE(stay.ended));
	EXPECT_RUNS(test, &stay.shot, 1);
}

/*
 * The handler arms its timer while a caller waits for it: that shot is also deleted, or has run,
 * if this CPU was delayed for as long as the first shot lasts.
 */
static void delete_sync_rearming(struct selftest *test)
{
	struct stay stay = {};
	int ret;

	enter(test, &stay);
	stay.again = true;
	WRITE_ONCE(stay.release, true);
	ret = del_apic_timer_sync(&stay.shot.timer);
	EXPECT(test, ret == 1 || ret == 0);
	EXPECT_EQ(test, stay.shot.ret, 0);
	EXPECT(test, READ_ONCE(stay.ended));
	EXPECT(test, !apic_timer_pending(&stay.shot.timer));
	EXPECT_EQ(test, atomic_read(&stay.shot.inside), 0);
	selftest_sleep_ms(10);
	EXPECT_EQ(test, atomic_read(&stay.shot.runs), 2 - ret);
}

/* Each run arms the next; deleting the timer ends that permanently. */
static void arm_for_ever(struct selftest_shot *shot)
{
	selftest_shot_due(shot, shot->now + apic_timer_us_to_tsc(20));
	add_apic_timer(&shot->timer);
}

static void delete_sync_periodic(struct selftest *test)
{
	struct selftest_shot shot;
	int i, runs;

	for (i = 0; i < 200 && !test->failed; i++) {
		selftest_shot_init(&shot, arm_for_ever);
		selftest_shot_due_us(&shot, 10);
		EXPECT_EQ(test, add_apic_timer_on(&shot.timer, other_cpu()), 0);
		EXPECT(test, selftest_wait(atomic_read(&shot.runs) > i % 8));
		/* If the handler re-arms it, a shot is always found. */
		EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 1);
		EXPECT(test, !apic_timer_pending(&shot.timer));
		EXPECT_EQ(test, atomic_read(&shot.inside), 0);
		runs = atomic_read(&shot.runs);
		selftest_spin_us(100);
		EXPECT_EQ(test, atomic_read(&shot.runs), runs);
		EXPECT_EQ(test, atomic_read(&shot.faults), 0);
	}
}

/* A handler waits for another handler, on another CPU. */
static void wait_for_stay(struct selftest_shot *shot)
{
	struct stay *stay = shot->context;

	WRITE_ONCE(stay->release, true);
	shot->ret = del_apic_timer_sync(&stay->shot.timer);
	if (!READ_ONCE(stay->ended))
		shot->ret = -EAGAIN;
}

static void handler_waits_for_handler(struct selftest *test)
{
	struct selftest_shot shot;
	struct stay stay = {};

	enter(test, &stay);
	selftest_shot_init(&shot, wait_for_stay);
	shot.context = &stay;
	shot.ret = -1;
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.ret, 0);
	EXPECT_RUNS(test, &stay.shot, 1);
	del_apic_timer_sync(&shot.timer);
}

const struct selftest_case selftest_sync_cases[] = {
	CASE_SMP(delete_running),
	CASE_SMP(delete_sync_waits),
	CASE_SMP(delete_sync_moved),
	CASE_SMP(delete_sync_moved_twice),
	CASE_SMP(delete_sync_rearming),
	CASE_SMP(delete_sync_periodic),
	CASE_SMP(handler_waits_for_handler),
	{}
};
