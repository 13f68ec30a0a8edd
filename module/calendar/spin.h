/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_SPIN_H
#define _APIC_CALENDAR_SPIN_H

#include <linux/processor.h>
#include <linux/types.h>
#include <asm/msr.h>
#include <asm/tsc.h>

/**
 * calendar_spin() - wait for a TSC value in the tightest possible loop
 * @until:	the value
 *
 * Context: Any.
 * Return: the last TSC value read.
 */
static __always_inline u64 calendar_spin(u64 until)
{
	u32 low, high;

	/* A PAUSE with its RDTSC takes up to 1,125 cycles: 180 of a slow core's clock. */
	while ((s64)(until - rdtsc()) > 2048)
		cpu_relax();
	asm volatile(".balign 32\n"
		     "1:\trdtsc\n\t"
		     "subl %k[low], %%eax\n\t"
		     "sbbl %k[high], %%edx\n\t"
		     "js 1b"
		     : "=&a" (low), "=&d" (high)
		     : [low] "r" (until), [high] "r" (until >> 32)
		     : "cc");
	return until + ((u64)high << 32 | low);
}

#endif /* _APIC_CALENDAR_SPIN_H */
