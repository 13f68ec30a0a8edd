// SPDX-License-Identifier: GPL-2.0
/*
 * The LAPIC timer of the last CPU is stopped behind our back: timers there, ours and the kernel's,
 * still continue, because the other CPUs stay awake.
 */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/apic.h>
#include "compat/msr.h"

#include "selftest.h"

#define TRIES		10

/* Whether the CPU's timer is its LAPIC's; otherwise the hardware is not ours to stop. */
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
 * With watchdog_ms=0 it is not found. If the kernel's tick is broadcast by the same vector, the
 * next tick serves the shot, which is due by then.
 */
static void masked_for_long(struct selftest *test)
{
	int cpu = cpumask_last(cpu_online_mask);
	struct selftest_shot shot;
	unsigned int tries;

	if (!has_lapic(cpu))
		return;
	for (tries = 0; tries < TRIES; tries++) {
		arm_and_stop(test, &shot, cpu, mask);
		if (apic_timer_now() < shot.due)
			break;
		/* This CPU was delayed: the timer may have expired before the mask. */
		smp_call_function_single(cpu, start, NULL, true);
		del_apic_timer_sync(&shot.timer);
	}
	selftest_sleep_ms(1000);
	selftest_note(test, atomic_read(&shot.runs) ? "ran meanwhile\n" : "did not run\n");
	/* In any case: without a watchdog, no tick would come to that CPU again. */
	smp_call_function_single(cpu, start, NULL, true);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

/* Like firmware that programs the LAPIC itself. */
static void masked_again_and_again(struct selftest *test)
{
	int cpu = cpumask_last(cpu_online_mask);
	struct selftest_shot shot;
	unsigned int n;
	u64 late = 0;

	if (!has_lapic(cpu))
		return;
	selftest_shot_init(&shot, NULL);
	for (n = 1; n <= 40; n++) {
		selftest_shot_due_us(&shot, 3000);
		EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);
		smp_call_function_single(cpu, mask, NULL, true);
		if (!EXPECT_RUNS(test, &shot, n))
			break;
		late = max(late, shot.now - shot.due);
	}
	del_apic_timer_sync(&shot.timer);
	selftest_note(test, "latest by %llu us\n",
		      div_u64(apic_timer_tsc_to_ns(late), NSEC_PER_USEC));
}

/*
 * One CPU is late while all others are awake and check for it. If two of them sent the same call
 * of the kernel's at once, it would be queued twice, and the late CPU would walk its queue
 * forever. A CPU about to send one waits a moment for another to do the same, which must not
 * happen.
 */
#define LATE_US		200000
#define RENDEZVOUS_US	5000

static DEFINE_PER_CPU(void *, about_to_send);
static DEFINE_PER_CPU(struct selftest_shot, watchers);
static struct selftest_shot overdue;
static int late_cpu;
static bool late;
static atomic_t sent, sent_at_once;

static bool another_sends(void *csd)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (cpu != smp_processor_id() &&
		    READ_ONCE(per_cpu(about_to_send, cpu)) == csd)
			return true;
	return false;
}

/* int smp_call_function_single_async(int cpu, call_single_data_t *csd) */
static int sends(struct kprobe *probe, struct pt_regs *regs)
{
	void *csd = (void *)regs_get_kernel_argument(regs, 1);
	u64 until = apic_timer_now() + apic_timer_us_to_tsc(RENDEZVOUS_US);

	if ((int)regs_get_kernel_argument(regs, 0) != late_cpu || !READ_ONCE(late))
		return 0;
	atomic_inc(&sent);
	/* Pairs with the same on another CPU: one of the two sees the other. */
	smp_store_mb(*this_cpu_ptr(&about_to_send), csd);
	while (!another_sends(csd) && apic_timer_now() < until)
		cpu_relax();
	if (another_sends(csd)) {
		atomic_inc(&sent_at_once);
		/* That suffices: successive calls are harmless. */
		selftest_spin_us(100 * smp_processor_id());
	}
	WRITE_ONCE(*this_cpu_ptr(&about_to_send), NULL);
	return 0;
}

static struct kprobe sends_probe = {
	.symbol_name = "smp_call_function_single_async",
	.pre_handler = sends,
};

static void be_late(void *unused)
{
	selftest_shot_due_us(&overdue, 1000);
	add_apic_timer(&overdue.timer);
	WRITE_ONCE(late, true);
	selftest_spin_us(LATE_US);
	WRITE_ONCE(late, false);
}

/* Keep the CPU awake, and program the hardware: this includes the check of others. */
static void again(struct selftest_shot *shot)
{
	selftest_shot_due_us(shot, 300);
	add_apic_timer(&shot->timer);
}

static void late_among_watchers(struct selftest *test)
{
	struct selftest_shot *watcher;
	unsigned int tries;
	int cpu;

	late_cpu = cpumask_last(cpu_online_mask);
	if (!has_lapic(late_cpu))
		return;
	atomic_set(&sent, 0);
	atomic_set(&sent_at_once, 0);
	if (!EXPECT_EQ(test, register_kprobe(&sends_probe), 0))
		return;

	selftest_shot_init(&overdue, NULL);
	for_each_online_cpu(cpu) {
		watcher = per_cpu_ptr(&watchers, cpu);
		selftest_shot_init(watcher, again);
		selftest_shot_due_us(watcher, 300);
		if (cpu != late_cpu)
			EXPECT_EQ(test, add_apic_timer_on(&watcher->timer, cpu), 0);
	}
	/*
	 * Nobody calls a CPU that has not yet answered its last call, and in a virtual machine it
	 * may have been found late before this.
	 */
	for (tries = 0; tries < TRIES && !atomic_read(&sent); tries++) {
		EXPECT_EQ(test, smp_call_function_single(late_cpu, be_late, NULL, true), 0);
		EXPECT_RUNS(test, &overdue, tries + 1);
	}
	for_each_online_cpu(cpu)
		del_apic_timer_sync(&per_cpu(watchers, cpu).timer);
	del_apic_timer_sync(&overdue.timer);
	unregister_kprobe(&sends_probe);
	/* A probe can be registered again without these. */
	sends_probe.addr = NULL;
	sends_probe.flags = 0;
	selftest_note(test, "calls %d\n", atomic_read(&sent));
	EXPECT_EQ(test, atomic_read(&sent_at_once), 0);
}

const struct selftest_case selftest_lost_cases[] = {
	CASE_CPUS(late_among_watchers, 3),
	CASE_SMP(masked),
	CASE_SMP(masked_again_and_again),
	CASE_SMP(masked_for_long),
	CASE_SMP(stopped),
	CASE_SMP(vector_changed),
	{}
};
