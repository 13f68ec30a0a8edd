/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SPIN_H
#define _APIC_TIMER_SPIN_H

#include <linux/types.h>

#include "tsc/tsc.h"

#ifdef CONFIG_APIC_TIMER_SIM

static __always_inline u64 apic_timer_spin(u64 until)
{
	return apic_timer_sim_wait(until);
}

#else

#include <asm/cpufeature.h>
#include <asm/mwait.h>
#include <asm/processor.h>

/*
 * Approximate maximum number of TSC cycles that it takes to wake from TPAUSE or PAUSE:
 * they end this long before @until. On some CPUs a PAUSE takes 140 core cycles; with
 * the RDTSC of its loop 180, which are 1125 TSC cycles if the core runs at 800 MHz and
 * the TSC at 5 GHz.
 */
#define APIC_TIMER_SPIN_REST	2048

/**
 * apic_timer_spin() - wait on the TSC
 * @until:	absolute TSC
 *
 * Wait with TPAUSE, at low power, or with PAUSE where the CPU has none, and finally in
 * the tightest possible loop, which reads the TSC every few cycles. The caller
 * ensures that @until is near.
 *
 * Return: the TSC as last read: @until or later.
 */
static __always_inline u64 apic_timer_spin(u64 until)
{
	u64 wake = until - APIC_TIMER_SPIN_REST;
	u32 low, high;

	while ((s64)(wake - rdtsc()) > 0) {
		/* An interrupt request or the CPU's limit may end TPAUSE early. */
		if (cpu_feature_enabled(X86_FEATURE_WAITPKG))
			__tpause(TPAUSE_C01_STATE, wake >> 32, wake);
		else
			cpu_relax();
	}

	/*
	 * This close, the lowest 16 bits distinguish before from after: one
	 * instruction and one cycle of error less than with all 64. If an SMI or
	 * the host of a virtual machine interrupts the loop, the wait may be up to
	 * 2^15 cycles too long. No fence: the code below depends on the value read.
	 */
	asm volatile(".balign 32\n"
		     "1:\trdtsc\n\t"
		     "cmpw %w[until], %%ax\n\t"
		     "js 1b"
		     : "=&a" (low), "=&d" (high)
		     : [until] "r" (until)
		     : "cc");
	return (u64)high << 32 | low;
}

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_SPIN_H */
