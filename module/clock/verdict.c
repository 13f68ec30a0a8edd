// SPDX-License-Identifier: GPL-2.0
/*
 * What this machine's TSC is worth: the facts.
 */
#include <linux/apic_clock.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/msr-index.h>

#include "resync.h"
#include "worth.h"

static void read_adjust(void *value)
{
	u32 low, high;

	if (!rdmsr_safe(MSR_IA32_TSC_ADJUST, &low, &high))
		*(u64 *)value = (u64)high << 32 | low;
}

/* Has the TSC of some CPUs been written to? */
static bool is_adjusted(void)
{
	unsigned int cpu;
	u64 first = 0, value;

	if (!boot_cpu_has(X86_FEATURE_TSC_ADJUST))
		return false;
	smp_call_function_single(cpumask_first(cpu_online_mask), read_adjust, &first, true);
	for_each_online_cpu(cpu) {
		value = first;
		smp_call_function_single(cpu, read_adjust, &value, true);
		if (value != first)
			return true;
	}
	return false;
}

static bool has_packages(void)
{
	unsigned int cpu, first = cpumask_first(cpu_online_mask);

	for_each_online_cpu(cpu)
		if (topology_physical_package_id(cpu) != topology_physical_package_id(first))
			return true;
	return false;
}

/**
 * apic_clock_judge() - judge what TSC values of different CPUs are worth to each other
 * @verdict:	filled in
 *
 * Skew is as it was measured last: see apic_clock_measure_skew().
 *
 * Context: Task; interrupts each CPU.
 */
void apic_clock_judge(struct apic_clock_verdict *verdict)
{
	struct apic_timer_info info;
	struct apic_clock_skew skew;
	unsigned int cpu;
	u64 error;

	*verdict = (struct apic_clock_verdict) {};
	cpus_read_lock();
	/* Of a CPU that takes no timers these members are filled in, too. */
	apic_timer_query(cpumask_first(cpu_online_mask), &info);
	verdict->kind = info.tsc_kind;
	verdict->stable = info.tsc_stable;
	verdict->virtual = boot_cpu_has(X86_FEATURE_HYPERVISOR);
	apic_timer_clock_to_tsc(CLOCK_MONOTONIC, ktime_get(), &error);
	verdict->clocksource = !error;
	verdict->adjusted = is_adjusted();
	verdict->packages = has_packages();
	for_each_online_cpu(cpu)
		apic_clock_worth_add(verdict, &skew, apic_clock_get_skew(cpu, &skew));
	apic_clock_resync_judge(verdict);
	cpus_read_unlock();
	apic_clock_worth_conclude(verdict);
}
EXPORT_SYMBOL_GPL(apic_clock_judge);
