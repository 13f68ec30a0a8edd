// SPDX-License-Identifier: GPL-2.0
/*
 * The TSC of the last CPU is set forward or back, as by firmware, while timers are pending there:
 * none is lost, and none is early by that TSC. QEMU's emulated CPUs ignore writes to their TSC,
 * Bochs's do not.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <asm/msr.h>
#include "compat/msr.h"

#include "selftest.h"

/*
 * Small enough that the kernel still trusts the TSC. If it sees that TSC_ADJUST has changed it
 * restores it, so that the jump back is another one.
 */
#define SKEW_US	100

/**
 * struct jump - result of setting a TSC
 * @by:		TSC cycles by which it should have moved forward
 * @took:	TSC cycles by which it moved, including some between two reads
 */
struct jump {
	s64 by;
	s64 took;
};

static void jump_here(void *arg)
{
	struct jump *jump = arg;
	u64 before = apic_timer_now();

	apic_timer_native_wrmsrq(MSR_IA32_TSC, before + jump->by);
	jump->took = apic_timer_now() - before;
}

static void again(struct selftest *test, struct selftest_shot *shot, int cpu)
{
	int runs = atomic_read(&shot->runs);

	selftest_shot_due_us(shot, 1000);
	EXPECT_EQ(test, add_apic_timer_on(&shot->timer, cpu), 0);
	EXPECT_RUNS(test, shot, runs + 1);
	EXPECT_EQ(test, shot->cpu, cpu);
}

static void goes_on_after(struct selftest *test, s64 by)
{
	int cpu = cpumask_last(cpu_online_mask);
	struct selftest_shot shot;
	struct jump jump = { .by = by };

	selftest_shot_init(&shot, NULL);
	selftest_shot_due_us(&shot, 20000);
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);
	smp_call_function_single(cpu, jump_here, &jump, true);
	selftest_note(test, "went forward by %lld cycles, wanted %lld\n",
		      jump.took, by);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.cpu, cpu);
	again(test, &shot, cpu);

	jump.by = -by;
	smp_call_function_single(cpu, jump_here, &jump, true);
	again(test, &shot, cpu);
	del_apic_timer_sync(&shot.timer);
}

static void tsc_set_forward(struct selftest *test)
{
	goes_on_after(test, apic_timer_us_to_tsc(SKEW_US));
}

static void tsc_set_back(struct selftest *test)
{
	goes_on_after(test, -(s64)apic_timer_us_to_tsc(SKEW_US));
}

const struct selftest_case selftest_skew_cases[] = {
	CASE(tsc_set_forward),
	CASE(tsc_set_back),
	{}
};
