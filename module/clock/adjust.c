// SPDX-License-Identifier: GPL-2.0
/*
 * Correct the skew in the TSCs themselves, by TSC_ADJUST, at root's request.
 *
 * While the kernel trusts the TSC, it maintains TSC_ADJUST itself (tsc_sync.c): it reverts a
 * foreign value when the CPU next becomes idle, at most once a second, and by a timer of 10
 * minutes. This is therefore for machines whose TSC the kernel does not trust; there it
 * leaves the register alone. The register may be reset when the CPU goes offline, or in a
 * suspend. CPUs that come online are measured, but nothing is written unless root asks again.
 *
 * The reference CPU's TSC is never written.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": TSC_ADJUST: " fmt

#include <linux/apic_clock.h>
#include <linux/compiler.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/msr-index.h>
#include <asm/tsc.h>

#include "adjust.h"
#include "bounds.h"
#include "resync.h"
#include "skew.h"

static DEFINE_MUTEX(adjust_mutex);
static bool failed;		/* cleared under adjust_mutex */

static int check_machine(void)
{
	if (!boot_cpu_has(X86_FEATURE_TSC_ADJUST)) {
		pr_err("not written: the CPUs do not have this register\n");
		return -EOPNOTSUPP;
	}
	if (boot_cpu_has(X86_FEATURE_HYPERVISOR)) {
		pr_err("not written: a hypervisor may move CPUs\n");
		return -EOPNOTSUPP;
	}
	if (!check_tsc_unstable()) {
		pr_err("not written: the kernel trusts the TSC and would restore the old value within about a second; boot with tsc=unstable\n");
		return -EPERM;
	}
	return 0;
}

/* Choose the CPUs whose TSC is certain to be nearer to the reference's after a correction. */
static int choose(struct cpumask *cpus)
{
	struct apic_clock_skew skew;
	int cpu, ret = 0;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		ret = apic_clock_get_skew(cpu, &skew);
		if (ret)
			break;
		if (skew.low <= 0 && skew.high >= 0)
			continue;
		if (!apic_clock_skew_is_sure(skew.low, skew.high, skew.offset)) {
			pr_err("not written: CPU %d is %lld cycles ahead of CPU %d, possibly %lld to %lld: a write could increase the skew\n",
			       cpu, skew.offset, skew.reference, skew.low, skew.high);
			ret = -ERANGE;
			break;
		}
		cpumask_set_cpu(cpu, cpus);
	}
	cpus_read_unlock();
	return ret;
}

/* Runs with interrupts off on all CPUs. */
static void move_here(void)
{
	struct apic_clock_skew skew;
	u32 low, high;
	u64 value;

	/* The CPU may have gone offline and come back since it was chosen. */
	if (apic_clock_get_skew(smp_processor_id(), &skew))
		return;
	if (rdmsr_safe(MSR_IA32_TSC_ADJUST, &low, &high)) {
		WRITE_ONCE(failed, true);
		return;
	}
	value = ((u64)high << 32 | low) - skew.offset;
	if (wrmsr_safe(MSR_IA32_TSC_ADJUST, (u32)value, (u32)(value >> 32)))
		WRITE_ONCE(failed, true);
	else
		apic_clock_resync_moved(-skew.offset);
}

static int move(struct cpumask *cpus)
{
	int ret;

	if (cpumask_empty(cpus)) {
		pr_info("not written: no CPU's TSC is certain to differ from the reference CPU's\n");
		return 0;
	}
	failed = false;
	ret = apic_timer_move_tsc(cpus, move_here);
	if (ret == -EBUSY)
		pr_err("not written: timers pending on CPUs %*pbl would expire at the wrong moment\n",
		       cpumask_pr_args(cpus));
	else if (ret == -EOPNOTSUPP)
		pr_err("not written: without high-resolution timers the kernel's next tick would come at the wrong moment\n");
	else if (ret)
		pr_err("not written: a CPU went offline meanwhile (%d)\n", ret);
	if (ret)
		return ret;
	if (failed) {
		pr_err("access to the register failed on a CPU\n");
		return -EIO;
	}
	pr_info("removed the skew of CPUs %*pbl\n", cpumask_pr_args(cpus));
	return 0;
}

/**
 * apic_clock_adjust() - correct the skew in the TSCs, where it is certain
 *
 * Measure all CPUs, write to those that certainly differ from the reference CPU (all or
 * none of them), and measure all again.
 *
 * Context: Task; stops all CPUs for some microseconds. The kernel log has the reason for
 * an error.
 * Return:
 * * %0 - done, or there was nothing to do
 * * %-EOPNOTSUPP - no such register, a hypervisor, or no high resolution timers
 * * %-EPERM - the kernel trusts the TSC, and would undo the correction
 * * %-ERANGE - a CPU's skew is not known well enough
 * * %-EBUSY - timers are pending on a CPU that would be written to
 * * %-ENODEV - a CPU has gone offline meanwhile
 * * %-EIO - a CPU has refused the access
 * * others - as apic_clock_get_skew()
 */
int apic_clock_adjust(void)
{
	cpumask_var_t cpus;
	int ret = check_machine();

	if (ret)
		return ret;
	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	mutex_lock(&adjust_mutex);
	ret = apic_clock_skew_measure_all() ?: choose(cpus);
	if (ret && ret != -ERANGE)
		pr_err("not written: the skew of a CPU could not be measured (%d)\n", ret);
	if (!ret)
		ret = move(cpus) ?: apic_clock_skew_measure_all();
	mutex_unlock(&adjust_mutex);
	free_cpumask_var(cpus);
	return ret;
}
