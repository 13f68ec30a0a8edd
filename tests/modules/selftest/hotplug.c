// SPDX-License-Identifier: GPL-2.0
/*
 * An offline CPU accepts no timers; its timers migrate to others.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "selftest.h"
#include "timers/state.h"

static int last_cpu(void)
{
	return cpumask_last(cpu_online_mask);
}

static void offline_cpu(struct selftest *test)
{
	struct selftest_shot bound, shot;
	struct apic_timer_info info;
	int cpu = last_cpu();

	/* A timer that has run there. */
	selftest_shot_init(&bound, NULL);
	EXPECT_EQ(test, add_apic_timer_on(&bound.timer, cpu), 0);
	EXPECT_RUNS(test, &bound, 1);
	EXPECT_EQ(test, bound.cpu, cpu);

	if (!EXPECT_EQ(test, remove_cpu(cpu), 0))
		return;
	selftest_shot_init(&shot, NULL);
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), -ENODEV);
	EXPECT(test, !apic_timer_pending(&shot.timer));
	EXPECT_EQ(test, apic_timer_query(cpu, &info), -ENODEV);

	/* A rejected timer stays usable, and one bound there comes here. */
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.cpu, smp_processor_id());
	EXPECT_EQ(test, mod_apic_timer(&bound.timer, 0), 0);
	EXPECT_RUNS(test, &bound, 2);
	EXPECT_EQ(test, bound.cpu, smp_processor_id());
	EXPECT_EQ(test, add_cpu(cpu), 0);

	EXPECT_EQ(test, apic_timer_query(cpu, &info), 0);
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);
	EXPECT_RUNS(test, &shot, 2);
	EXPECT_EQ(test, shot.cpu, cpu);
	del_apic_timer_sync(&shot.timer);
	del_apic_timer_sync(&bound.timer);
}

/*
 * Timers pending on a CPU that goes offline run on time on the others, which take them in turn,
 * and on each in their order.
 */
static void migration(struct selftest *test)
{
	struct selftest_shot shots[8], far;
	int cpu = last_cpu(), next = cpu;
	unsigned int i, others = num_online_cpus() - 1;

	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		selftest_shot_init(&shots[i], NULL);
		selftest_shot_due_us(&shots[i], 3000000 + 50 * i);
		EXPECT_EQ(test, add_apic_timer_on(&shots[i].timer, cpu), 0);
	}
	selftest_shot_init(&far, NULL);
	far.timer.expires = U64_MAX;
	EXPECT_EQ(test, add_apic_timer_on(&far.timer, cpu), 0);

	if (!EXPECT_EQ(test, remove_cpu(cpu), 0))
		goto out;
	EXPECT(test, apic_timer_pending(&far.timer));
	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		EXPECT_RUNS(test, &shots[i], 1);
		next = cpumask_next(next, cpu_online_mask);
		if (next >= nr_cpu_ids)
			next = cpumask_first(cpu_online_mask);
		EXPECT_EQ(test, shots[i].cpu, next);
		if (i >= others)
			EXPECT(test, shots[i].order > shots[i - others].order);
	}
	EXPECT_EQ(test, add_cpu(cpu), 0);
	EXPECT_EQ(test, del_apic_timer(&far.timer), 1);
out:
	for (i = 0; i < ARRAY_SIZE(shots); i++)
		del_apic_timer_sync(&shots[i].timer);
	del_apic_timer_sync(&far.timer);
}

/* Off and on while a timer travels, and another is bound to the CPU. */
static void travel(struct selftest_shot *shot)
{
	int cpu = cpumask_next(shot->cpu, cpu_online_mask);

	if (READ_ONCE(shot->ret))
		return;
	if (cpu >= nr_cpu_ids)
		cpu = cpumask_first(cpu_online_mask);
	selftest_shot_due(shot, shot->now + apic_timer_us_to_tsc(200));
	/* The next CPU may be going offline. This one too? Then none is left. */
	if (add_apic_timer_on(&shot->timer, cpu) &&
	    add_apic_timer_on(&shot->timer, cpumask_first(cpu_online_mask)))
		atomic_or(SHOT_CONTEXT, &shot->faults);
}

static void on_and_off(struct selftest *test)
{
	struct selftest_shot shot;
	int i, runs, cpu = last_cpu();

	selftest_shot_init(&shot, travel);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	for (i = 0; i < 5 && !test->failed; i++) {
		EXPECT_EQ(test, remove_cpu(cpu), 0);
		runs = atomic_read(&shot.runs);
		EXPECT(test, selftest_wait(atomic_read(&shot.runs) > runs + 5));
		EXPECT_EQ(test, add_cpu(cpu), 0);
		runs = atomic_read(&shot.runs);
		EXPECT(test, selftest_wait(atomic_read(&shot.runs) > runs + 5));
	}
	WRITE_ONCE(shot.ret, 1);
	EXPECT_GE(test, del_apic_timer_sync(&shot.timer), 0);
	EXPECT_EQ(test, atomic_read(&shot.faults), 0);
}

/* A handler must never find that its CPU accepts no timers. */
static void arm_again(struct selftest_shot *shot)
{
	if (READ_ONCE(shot->ret))
		return;
	selftest_shot_due(shot, shot->now + apic_timer_us_to_tsc(100));
	if (add_apic_timer(&shot->timer))
		atomic_or(SHOT_CONTEXT, &shot->faults);
}

static void never(unsigned long long now, unsigned long data)
{
}

/* Moving this many takes a while, in which other timers become due. */
#define MANY	5000

static void periodic_goes_on(struct selftest *test)
{
	struct apic_timer_list *many;
	struct selftest_shot shot;
	int i, cpu = last_cpu();

	many = kvcalloc(MANY, sizeof(*many), GFP_KERNEL);
	if (!EXPECT(test, many))
		return;
	for (i = 0; i < MANY; i++) {
		many[i].function = never;
		init_apic_timer(&many[i]);
		many[i].expires = U64_MAX - i;
		EXPECT_EQ(test, add_apic_timer_on(&many[i], cpu), 0);
	}
	selftest_shot_init(&shot, arm_again);
	selftest_shot_due_us(&shot, 1000);
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);

	if (EXPECT_EQ(test, remove_cpu(cpu), 0)) {
		int runs = atomic_read(&shot.runs);

		EXPECT(test, selftest_wait(atomic_read(&shot.runs) > runs + 5));
		EXPECT_EQ(test, atomic_read(&shot.faults), 0);
		EXPECT_EQ(test, add_cpu(cpu), 0);
	}
	WRITE_ONCE(shot.ret, 1);
	del_apic_timer_sync(&shot.timer);
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(test, del_apic_timer_sync(&many[i]), 1);
	kvfree(many);
}

/* Checks timers in the order in which they move, each until it has moved. */
struct watch {
	struct apic_timer_list *timers;
	unsigned int from, moved, wrong;
};

static int watch_them(void *data)
{
	struct watch *watch = data;
	struct apic_timer_list *timer;

	while (!kthread_should_stop()) {
		cond_resched();
		if (watch->moved == MANY)
			continue;
		timer = &watch->timers[watch->moved];
		watch->wrong += !apic_timer_pending(timer);
		if (READ_ONCE(timer->cpu) != watch->from &&
		    READ_ONCE(timer->cpu) != APIC_TIMER_CPU_MOVING)
			WRITE_ONCE(watch->moved, watch->moved + 1);
	}
	return 0;
}

/* Only the CPU that goes offline touches them. */
static void pending_all_the_time(struct selftest *test)
{
	struct task_struct *watcher;
	struct watch watch = { .from = last_cpu() };
	unsigned int i;

	watch.timers = kvcalloc(MANY, sizeof(*watch.timers), GFP_KERNEL);
	if (!EXPECT(test, watch.timers))
		return;
	for (i = 0; i < MANY; i++) {
		watch.timers[i].function = never;
		init_apic_timer(&watch.timers[i]);
		watch.timers[i].expires = U64_MAX - MANY + i;
		EXPECT_EQ(test, add_apic_timer_on(&watch.timers[i], watch.from),
			  0);
	}
	watcher = kthread_create(watch_them, &watch, "apic_timer_watch");
	if (EXPECT(test, !IS_ERR(watcher))) {
		kthread_bind(watcher, cpumask_first(cpu_online_mask));
		wake_up_process(watcher);
		if (EXPECT_EQ(test, remove_cpu(watch.from), 0)) {
			EXPECT(test, selftest_wait(READ_ONCE(watch.moved) ==
						   MANY));
			EXPECT_EQ(test, add_cpu(watch.from), 0);
		}
		kthread_stop(watcher);
		EXPECT_EQ(test, watch.moved, MANY);
		EXPECT_EQ(test, watch.wrong, 0);
	}
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(test, del_apic_timer_sync(&watch.timers[i]), 1);
	kvfree(watch.timers);
}

const struct selftest_case selftest_hotplug_cases[] = {
	CASE_SMP(offline_cpu),
	CASE_SMP(migration),
	CASE_SMP(on_and_off),
	CASE_SMP(periodic_goes_on),
	CASE_SMP(pending_all_the_time),
	{}
};
