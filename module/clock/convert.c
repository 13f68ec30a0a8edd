// SPDX-License-Identifier: GPL-2.0
/*
 * Convert between the reference CPU's TSC and that of another CPU.
 *
 * Values are converted only on request. A timer's expiry remains a TSC value of the CPU that
 * its handler runs on: the handler reads that TSC by rdtsc(), which software cannot correct,
 * and would otherwise find itself late or early by the skew.
 */
#include <linux/apic_clock.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>

/* Saturating addition: never stays never, and no result is below 0. */
static u64 add(u64 tsc, s64 cycles)
{
	if (cycles >= 0)
		return apic_timer_add_tsc(tsc, cycles);
	return tsc == U64_MAX ? tsc : tsc - min(tsc, -(u64)cycles);
}

/* How far a CPU's TSC is ahead; @error is U64_MAX if that is not known. */
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
 * @tsc:	moment, TSC of the reference CPU; U64_MAX stays U64_MAX
 * @error:	set to the result's possible error in cycles, by the latest measurement of
 *		the skew; U64_MAX if the skew is not known. May be NULL.
 *
 * A later measurement of the skew does not change earlier results.
 *
 * Context: Any but NMI.
 * Return: the TSC of @cpu at that moment; @tsc if the skew is not known.
 */
u64 apic_clock_to_cpu(int cpu, u64 tsc, u64 *error)
{
	return add(tsc, offset_of(cpu, error));
}
EXPORT_SYMBOL_GPL(apic_clock_to_cpu);

/**
 * apic_clock_from_cpu() - convert a value of the TSC of a CPU
 * @cpu:	the CPU
 * @tsc:	moment, TSC of @cpu; U64_MAX stays U64_MAX
 * @error:	as for apic_clock_to_cpu()
 *
 * Context: Any but NMI.
 * Return: the TSC of the reference CPU at that moment; @tsc if the skew is not known.
 */
u64 apic_clock_from_cpu(int cpu, u64 tsc, u64 *error)
{
	return add(tsc, -offset_of(cpu, error));
}
EXPORT_SYMBOL_GPL(apic_clock_from_cpu);
