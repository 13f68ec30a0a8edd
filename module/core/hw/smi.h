/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SMI_H
#define _APIC_TIMER_SMI_H

#include <linux/types.h>

#ifdef CONFIG_APIC_TIMER_SIM

static inline void apic_timer_smi_init(void)
{
}

static inline u32 apic_timer_smi_count(void)
{
	return 0;
}

#else

#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/msr-index.h>

/* The CPUs count their SMIs. */
extern bool apic_timer_smi_counted;

/**
 * apic_timer_smi_init() - see whether the CPUs count SMIs
 *
 * Intel's do, AMD's have no such register, and to read it is a fault. What a
 * hypervisor answers is nothing about the SMIs of its machine, and takes an exit
 * each time.
 */
static inline void apic_timer_smi_init(void)
{
	u32 low, high;

	apic_timer_smi_counted = !boot_cpu_has(X86_FEATURE_HYPERVISOR) &&
				 !rdmsr_safe(MSR_SMI_COUNT, &low, &high);
}

/**
 * apic_timer_smi_count() - how many SMIs this CPU has had
 *
 * Context: Interrupts off. Slow where they are counted.
 * Return: their number, modulo 2^32; 0 where they aren't counted.
 */
static inline u32 apic_timer_smi_count(void)
{
	u32 low, high;

	if (!apic_timer_smi_counted ||
	    rdmsr_safe(MSR_SMI_COUNT, &low, &high))
		return 0;
	return low;
}

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_SMI_H */
