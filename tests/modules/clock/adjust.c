// SPDX-License-Identifier: GPL-2.0
/*
 * Skew of a known size, by writing to TSC_ADJUST.
 */
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/msr-index.h>

#include "compat/msr.h"
#include "clock_test.h"

static u64 base[4];

static void read_here(void *value)
{
	u32 low, high;

	if (!rdmsr_safe(MSR_IA32_TSC_ADJUST, &low, &high))
		*(u64 *)value = (u64)high << 32 | low;
}

static void write_here(void *value)
{
	apic_timer_native_wrmsrq(MSR_IA32_TSC_ADJUST, *(u64 *)value);
}

/* Set a CPU's TSC ahead, relative to its state when this module was loaded. */
int clock_test_adjust(unsigned int cpu, s64 cycles)
{
	u64 value;

	if (cpu >= ARRAY_SIZE(base) || !boot_cpu_has(X86_FEATURE_TSC_ADJUST))
		return -EINVAL;
	value = base[cpu] + cycles;
	return smp_call_function_single(cpu, write_here, &value, true);
}

/* Set this CPU's TSC ahead by that many cycles. Interrupts off. */
void clock_test_adjust_by(void *cycles)
{
	u64 value = 0;

	read_here(&value);
	value += *(s64 *)cycles;
	write_here(&value);
}

void clock_test_adjust_init(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < ARRAY_SIZE(base); cpu++)
		smp_call_function_single(cpu, read_here, &base[cpu], true);
}

/* Show how far each TSC was set ahead since then, by any writer. */
void clock_test_adjust_show(struct seq_file *file)
{
	unsigned int cpu;
	u64 value;

	if (!boot_cpu_has(X86_FEATURE_TSC_ADJUST))
		return;
	seq_puts(file, "adjusted");
	for (cpu = 0; cpu < ARRAY_SIZE(base); cpu++) {
		value = base[cpu];
		if (smp_call_function_single(cpu, read_here, &value, true))
			break;
		seq_printf(file, " %lld", (s64)(value - base[cpu]));
	}
	seq_putc(file, '\n');
}
