/* SPDX-License-Identifier: GPL-2.0 */
/* A histogram by powers of 2: it takes few cache lines, however many samples there are. */
#ifndef _APIC_MEASURE_COUNTS_H
#define _APIC_MEASURE_COUNTS_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <uapi/linux/apic_measure.h>

/**
 * measure_count() - count a value
 * @counts:	the histogram
 * @value:	the value
 *
 * Context: Any; one caller at a time.
 */
static inline void measure_count(struct apic_measure_counts *counts, s32 value)
{
	if (value < 0) {
		counts->early++;
		return;
	}
	counts->largest = max_t(u32, counts->largest, value);
	counts->bucket[min(fls(value), APIC_MEASURE_BUCKETS - 1)]++;
}

/**
 * measure_clamp() - clamp a difference of TSC values to the size of a sample
 * @difference:	TSC cycles
 *
 * Return: @difference, or the nearest value that fits.
 */
static inline s32 measure_clamp(s64 difference)
{
	return clamp_t(s64, difference, S32_MIN, S32_MAX);
}

#endif /* _APIC_MEASURE_COUNTS_H */
