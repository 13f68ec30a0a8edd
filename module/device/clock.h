/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_CLOCK_H
#define _APIC_TIMER_DEVICE_CLOCK_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <uapi/linux/apic_timer.h>

/*
 * Arithmetic of the time page: conversions between the TSC and CLOCK_MONOTONIC in ns, by
 * the parameters of the kernel's own clock. Conversions to the TSC are rounded up: when the
 * TSC has reached the result, the clock has reached the moment.
 */

/**
 * device_clock_mono() - convert a TSC value to CLOCK_MONOTONIC
 * @page:	a consistent copy of the time page
 * @tsc:	absolute TSC
 *
 * Return: nanoseconds.
 */
static inline u64 device_clock_mono(const struct apic_timer_page *page, u64 tsc)
{
	u64 cycles = tsc > page->tsc ? tsc - page->tsc : 0;

	return page->mono + mul_u64_u32_shr(cycles, page->mult, page->shift) +
	       /* The sum of both fractions may carry. */
	       ((((cycles * page->mult) & ((1ULL << page->shift) - 1)) +
		 page->mono_shifted) >> page->shift);
}

/**
 * device_clock_tsc() - convert CLOCK_MONOTONIC to a TSC value
 * @page:	a consistent copy of the time page
 * @mono:	nanoseconds
 *
 * Return: the first TSC value at which the clock shows @mono or later. For a moment too far
 * ahead to be converted, an earlier TSC value, at which the caller should convert again. For
 * a moment before &apic_timer_page.tsc, that value.
 */
static inline u64 device_clock_tsc(const struct apic_timer_page *page, u64 mono)
{
	u64 far = (U64_MAX >> 1) >> page->shift, wanted;

	if (mono <= page->mono)
		return page->tsc;
	wanted = min(mono - page->mono, far) << page->shift;
	if (wanted <= page->mono_shifted)
		return page->tsc;
	return page->tsc + div_u64(wanted - page->mono_shifted + page->mult - 1,
				   page->mult);
}

#endif /* _APIC_TIMER_DEVICE_CLOCK_H */
