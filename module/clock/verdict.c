// SPDX-License-Identifier: GPL-2.0
/*
 * Collect the facts about what this machine's TSC is worth.
 */
#include <linux/apic_clock.h>
#include <linux/bits.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <asm/cpufeature.h>
#include <asm/kvm_para.h>
#include <asm/msr.h>
#include <asm/msr-index.h>

#include "compat.h"
#include "raw.h"
#include "resync.h"
#include "verdict.h"
#include "watched.h"
#include "worth.h"

/**
 * struct adjust - TSC_ADJUST of a CPU
 * @value:	value of the register
 * @known:	the register could be read
 */
struct adjust {
	u64 value;
	bool known;
};

static void read_adjust(void *data)
{
	struct adjust *adjust = data;
	u32 low, high;

	if (rdmsr_safe(MSR_IA32_TSC_ADJUST, &low, &high))
		return;
	adjust->value = (u64)high << 32 | low;
	adjust->known = true;
}

/**
 * apic_clock_tsc_adjust() - read TSC_ADJUST of a CPU
 * @cpu:	the CPU
 * @cycles:	set to the cycles by which its TSC was set ahead
 *
 * Context: Task; interrupts the CPU.
 * Return: false if the CPU is offline, or has no TSC_ADJUST.
 */
bool apic_clock_tsc_adjust(int cpu, s64 *cycles)
{
	struct adjust adjust = {};

	if (boot_cpu_has(X86_FEATURE_TSC_ADJUST))
		smp_call_function_single(cpu, read_adjust, &adjust, true);
	*cycles = adjust.value;
	return adjust.known;
}

/* Check whether the TSC of some CPUs has been written to. */
static bool is_adjusted(void)
{
	unsigned int cpu;
	s64 first, cycles;

	if (!apic_clock_tsc_adjust(cpumask_first(cpu_online_mask), &first))
		return false;
	for_each_online_cpu(cpu)
		if (apic_clock_tsc_adjust(cpu, &cycles) && cycles != first)
			return true;
	return false;
}

/* Read the hypervisor's signature, which all put into the same CPUID leaf. */
static void read_hypervisor(char name[APIC_CLOCK_HYPERVISOR])
{
	u32 eax, word[3];
	unsigned int i;

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return;
	cpuid(0x40000000, &eax, &word[0], &word[1], &word[2]);
	memcpy(name, word, sizeof(word));
	for (i = 0; i < sizeof(word) && name[i]; i++)
		if (!isascii(name[i]) || !isprint(name[i]))
			name[i] = '?';
}

/*
 * KVM announces by a feature that its clock, and so the TSC that it is derived from, is the
 * same on all CPUs. For other hypervisors the kernel sets this flag: the TSC needs no watchdog.
 */
static bool is_vouched_for(const struct apic_clock_verdict *verdict)
{
	if (boot_cpu_has(X86_FEATURE_TSC_RELIABLE))
		return true;
	if (!verdict->virtual || strcmp(verdict->hypervisor, KVM_SIGNATURE))
		return false;
	return cpuid_eax(KVM_CPUID_FEATURES) & BIT(KVM_FEATURE_CLOCKSOURCE_STABLE_BIT);
}

/**
 * apic_clock_rate_ppb() - get a clock's rate as conversions use it
 * @clock:	the clock
 *
 * Context: Any but NMI.
 * Return: how much faster it runs than the TSC at its nominal frequency, 10^-9.
 */
s64 apic_clock_rate_ppb(clockid_t clock)
{
	u64 now = apic_timer_now(), second = apic_timer_us_to_tsc(USEC_PER_SEC);

	return apic_timer_tsc_to_clock(clock, now + second) -
	       apic_timer_tsc_to_clock(clock, now) - NSEC_PER_SEC;
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
 * The skew is the one measured last: see apic_clock_measure_skew().
 *
 * Context: Task; may sleep, and interrupts each CPU.
 */
void apic_clock_judge(struct apic_clock_verdict *verdict)
{
	struct apic_timer_info info;
	struct apic_clock_skew skew;
	unsigned int cpu;
	u64 error;

	*verdict = (struct apic_clock_verdict) {};
	cpus_read_lock();
	/* These members are filled in even for a CPU that does not accept timers. */
	apic_timer_query(cpumask_first(cpu_online_mask), &info);
	verdict->kind = info.tsc_kind;
	verdict->sleepless = boot_cpu_has(X86_FEATURE_NONSTOP_TSC_S3);
	verdict->rate_given = boot_cpu_has(X86_FEATURE_TSC_KNOWN_FREQ);
	verdict->stable = info.tsc_stable;
	verdict->slept = info.tsc_epoch;
	verdict->virtual = boot_cpu_has(X86_FEATURE_HYPERVISOR);
	read_hypervisor(verdict->hypervisor);
	verdict->vouched = is_vouched_for(verdict);
	verdict->watch = apic_clock_watched();
	apic_timer_clock_to_tsc(CLOCK_MONOTONIC, ktime_get(), &error);
	verdict->clocksource = !error;
	verdict->adjusted = is_adjusted();
	verdict->packages = has_packages();
	for_each_online_cpu(cpu)
		apic_clock_worth_add(verdict, &skew, apic_clock_get_skew(cpu, &skew));
	apic_clock_resync_judge(verdict);
	apic_clock_raw_judge(verdict);
	cpus_read_unlock();
	apic_clock_worth_conclude(verdict);
}
EXPORT_SYMBOL_GPL(apic_clock_judge);
