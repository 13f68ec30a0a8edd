// SPDX-License-Identifier: GPL-2.0
/*
 * From the reference CPU's TSC to that of another CPU, and back.
 *
 * Only what is asked for is converted. A timer's deadline is a value of the TSC of the CPU
 * that its handler runs on, and stays one: the handler reads that TSC by rdtsc(), which no
 * software corrects, and would find itself late or early by the skew.
 */
#include <linux/apic_clock.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>

/* Saturates: never stays never, and nothing is before the beginning. */
static u64 add(u64 tsc, s64 cycles)
{
	if (cycles >= 0)
		return apic_timer_add_tsc(tsc, cycles);
	return tsc == U64_MAX ? tsc : tsc - min(tsc, -(u64)cycles);
}

/* How far a CPU's TSC is ahead, and how far that may be off: by anything, if it is not known. */
static s64 offset_of(int cpu, u64 *error)
{
	struct apic_clock_skew skew;

	if (apic_clock_get_skew(cpu, &skew)) {
		if (error)
			*error = U64_MAX;
		return 0;
	}
	if (error)
		*error = max(skew.high - skew.offset, skew.offset - skew.low);
	return skew.offset;
}

/**
 * apic_clock_to_cpu() - convert a moment to the TSC of a CPU
 * @cpu:	the CPU
 * @tsc:	moment, TSC of the reference CPU; U64_MAX stays what it is
 * @error:	set to how many cycles the result may be off: of the skew as it was
 *		measured last; U64_MAX if that is not known. May be NULL.
 *
 * What is converted before the skew is measured anew is not converted again.
 *
 * Context: Any but NMI.
 * Return: what the TSC of @cpu reads then; @tsc if the skew is not known.
 */
u64 apic_clock_to_cpu(int cpu, u64 tsc, u64 *error)
{
	return add(tsc, offset_of(cpu, error));
}
EXPORT_SYMBOL_GPL(apic_clock_to_cpu);

/**
 * apic_clock_from_cpu() - convert a value of the TSC of a CPU
 * @cpu:	the CPU
 * @tsc:	moment, TSC of @cpu; U64_MAX stays what it is
 * @error:	as that of apic_clock_to_cpu()
 *
 * Context: Any but NMI.
 * Return: what the TSC of the reference CPU reads then; @tsc if the skew is not known.
 */
u64 apic_clock_from_cpu(int cpu, u64 tsc, u64 *error)
{
	return add(tsc, -offset_of(cpu, error));
}
EXPORT_SYMBOL_GPL(apic_clock_from_cpu);
