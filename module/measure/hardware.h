/* SPDX-License-Identifier: GPL-2.0 */
/* Bare instructions, so that the kernel's wrappers are not measured. */
#ifndef _APIC_MEASURE_HARDWARE_H
#define _APIC_MEASURE_HARDWARE_H

#include <linux/types.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tsc.h>

static __always_inline void measure_cpuid(void)
{
	u32 eax = 0, ebx, ecx = 0, edx;

	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
}

static __always_inline u64 measure_rdmsr_tsc(void)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (MSR_IA32_TSC));
	return (u64)high << 32 | low;
}

/*
 * Check whether the MSR returns the same value as RDTSC. Under Xen without hardware support
 * we do not run in ring 0. In QEMU without KVM the MSR reads as 0, and a loop over it would
 * never end.
 */
static inline bool measure_msr_tsc_there(void)
{
	u64 before, by_msr;

	if (boot_cpu_has(X86_FEATURE_XENPV))
		return false;
	before = rdtsc_ordered();
	by_msr = measure_rdmsr_tsc();
	return by_msr - before <= rdtsc_ordered() - before;
}

#endif /* _APIC_MEASURE_HARDWARE_H */
