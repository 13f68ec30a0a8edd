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

/* True if the CPUs count their SMIs. */
extern bool apic_timer_smi_counted;

/**
 * apic_timer_smi_init() - find out whether the CPUs count SMIs
 *
 * Intel's CPUs do. AMD's have no such register, and reading it faults. Under a
 * hypervisor, each read causes a VM exit, and the value says nothing about the
 * machine's SMIs.
 */
static inline void apic_timer_smi_init(void)
{
	u32 low, high;

	apic_timer_smi_counted = !boot_cpu_has(X86_FEATURE_HYPERVISOR) &&
				 !rdmsr_safe(MSR_SMI_COUNT, &low, &high);
}

/**
 * apic_timer_smi_count() - read the number of SMIs of this CPU
 *
 * Context: Interrupts off. Slow where SMIs are counted.
 * Return: number of SMIs, modulo 2^32; 0 where they are not counted.
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
