// SPDX-License-Identifier: GPL-2.0
/*
 * The LAPIC timer stopped behind our back, on the last CPU: timers there, ours
 * and the kernel's, go on all the same, as the other CPUs stay awake.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/apic.h>
#include "compat/msr.h"

#include "selftest.h"

/* The hardware is another's there. */
static bool has_lapic(int cpu)
{
	struct apic_timer_info info;

	return !apic_timer_query(cpu, &info) &&
	       (info.hardware == APIC_TIMER_HW_ONESHOT ||
		info.hardware == APIC_TIMER_HW_TSC_DEADLINE);
}

static void mask(void *unused)
{
	apic->write(APIC_LVTT, apic->read(APIC_LVTT) | APIC_LVT_MASKED);
}

static void stop(void *unused)
{
	struct apic_timer_info info;

	apic_timer_query(smp_processor_id(), &info);
	if (info.hardware == APIC_TIMER_HW_ONESHOT)
		apic->write(APIC_TMICT, 0);
	else
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE, 0);
}

static void start(void *unused)
{
	struct apic_timer_info info;

	apic_timer_query(smp_processor_id(), &info);
	apic->write(APIC_LVTT, apic->read(APIC_LVTT) & ~APIC_LVT_MASKED);
	if (info.hardware == APIC_TIMER_HW_ONESHOT)
		apic->write(APIC_TMICT, 1);
	else
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE, rdtsc());
}

static void other_vector(void *unused)
{
	apic->write(APIC_LVTT, (apic->read(APIC_LVTT) & ~0xffU) |
			       APIC_LVT_MASKED | 0xfe);
}

static int sleep_there(void *unused)
{
	selftest_sleep_ms(20);
	return 0;
}

/* Stop the hardware of @cpu while it waits for @shot. */
static void arm_and_stop(struct selftest *test, struct selftest_shot *shot,
			 int cpu, void (*sabotage)(void *))
{
	selftest_shot_init(shot, NULL);
	selftest_shot_due_us(shot, 20000);
	EXPECT_EQ(test, add_apic_timer_on(&shot->timer, cpu), 0);
	smp_call_function_single(cpu, sabotage, NULL, true);
}

static void goes_on_after(struct selftest *test, void (*sabotage)(void *))
{
	int cpu = cpumask_last(cpu_online_mask);
	struct selftest_shot shot;

	if (!has_lapic(cpu))
		return;
	arm_and_stop(test, &shot, cpu, sabotage);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.cpu, cpu);

	/* Idle, with nothing of ours pending. */
	smp_call_function_single(cpu, sabotage, NULL, true);
	EXPECT_EQ(test, smp_call_on_cpu(cpu, sleep_there, NULL, false), 0);

	selftest_shot_due_us(&shot, 1000);
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);
	EXPECT_RUNS(test, &shot, 2);
	del_apic_timer_sync(&shot.timer);
}

static void masked(struct selftest *test)
{
	goes_on_after(test, mask);
}

static void stopped(struct selftest *test)
{
	goes_on_after(test, stop);
}

static void vector_changed(struct selftest *test)
{
	goes_on_after(test, other_vector);
}

/*
 * With guard_ms=0 nobody finds it. Where the kernel's tick is broadcast by the
 * same vector, the next one serves the shot, which is due by then.
 */
static void masked_for_long(struct selftest *test)
{
	int cpu = cpumask_last(cpu_online_mask);
	struct selftest_shot shot;

	if (!has_lapic(cpu))
		return;
	arm_and_stop(test, &shot, cpu, mask);
	selftest_sleep_ms(1000);
	if (atomic_read(&shot.runs)) {
		selftest_note(test, "ran meanwhile\n");
	} else {
		selftest_note(test, "did not run\n");
		smp_call_function_single(cpu, start, NULL, true);
	}
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

const struct selftest_case selftest_lost_cases[] = {
	CASE_SMP(masked),
	CASE_SMP(masked_for_long),
	CASE_SMP(stopped),
	CASE_SMP(vector_changed),
	{}
};
