/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SMI_H
#define _APIC_TIMER_SMI_H

#include <linux/types.h>

#ifdef CONFIG_APIC_TIMER_SIM

static inline u32 apic_timer_smi_count(void)
{
	return 0;
}

#else

#include <asm/msr.h>
#include <asm/msr-index.h>

/**
 * apic_timer_smi_count() - how many SMIs this CPU has had
 *
 * Context: Interrupts off. Slow.
 * Return: their number, modulo 2^32; 0 where the CPU doesn't count them.
 */
static inline u32 apic_timer_smi_count(void)
{
	u32 low, high;

	if (rdmsr_safe(MSR_SMI_COUNT, &low, &high))
		return 0;
	return low;
}

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_SMI_H */
