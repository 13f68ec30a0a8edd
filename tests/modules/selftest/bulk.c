// SPDX-License-Identifier: GPL-2.0
/*
 * Ten thousand timers at once.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "selftest.h"

#define BULK 10000

static struct selftest_shot *bulk(struct selftest *test)
{
	struct selftest_shot *shots = kvcalloc(BULK, sizeof(*shots),
					       GFP_KERNEL);
	int i;

	if (!EXPECT(test, shots))
		return NULL;
	for (i = 0; i < BULK; i++)
		selftest_shot_init(&shots[i], NULL);
	return shots;
}

/* Added in random order on all CPUs; deleted in another order. */
static void pending_and_deleted(struct selftest *test)
{
	struct selftest_shot *shots = bulk(test);
	u64 hour = apic_timer_us_to_tsc(3600000000U);
	int i, cpu = -1;

	if (!shots)
		return;
	for (i = 0; i < BULK; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		shots[i].timer.expires = apic_timer_now() + hour +
					 selftest_random();
		EXPECT_EQ(test, add_apic_timer_on(&shots[i].timer, cpu), 0);
	}
	for (i = 0; i < BULK; i++)
		EXPECT(test, apic_timer_pending(&shots[i].timer));
	for (i = 0; i < BULK; i++) {
		/* 7919 is prime: each of them once. */
		EXPECT_EQ(test, del_apic_timer_sync(&shots[i * 7919 % BULK].timer), 1);
		cond_resched();
	}
	for (i = 0; i < BULK; i++) {
		EXPECT(test, !apic_timer_pending(&shots[i].timer));
		EXPECT_EQ(test, atomic_read(&shots[i].runs), 0);
	}
	kvfree(shots);
}

/* And all of them run. */
static void pending_and_run(struct selftest *test)
{
	struct selftest_shot *shots = bulk(test);
	int i;

	if (!shots)
		return;
	for (i = 0; i < BULK; i++) {
		selftest_shot_due_us(&shots[i], selftest_random() % 100000);
		EXPECT_EQ(test, add_apic_timer(&shots[i].timer), 0);
		cond_resched();
	}
	for (i = 0; i < BULK; i++) {
		EXPECT_RUNS(test, &shots[i], 1);
		del_apic_timer_sync(&shots[i].timer);
	}
	kvfree(shots);
}

const struct selftest_case selftest_bulk_cases[] = {
	CASE(pending_and_deleted),
	CASE(pending_and_run),
	{}
};
