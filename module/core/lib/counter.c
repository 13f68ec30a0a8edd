// SPDX-License-Identifier: GPL-2.0
/*
 * Convert TSC cycles to counts of the LAPIC's one-shot counter. Pure arithmetic
 * without hardware registers, so that it can be tested anywhere.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "lib/counter.h"

/* Maximum plausible ratio between bus clock and TSC, either way. */
#define RATIO_MAX 4096

/**
 * apic_timer_counter_init() - describe a counter
 * @counter:		filled in
 * @ticks_per_sec:	rate of the undivided counter, Hz
 * @cycles_per_sec:	rate of the TSC, Hz
 *
 * Return: 0; -ERANGE when either rate is 0 or over 2^40 Hz, or one is more
 * than 4096 times the other.
 */
int apic_timer_counter_init(struct apic_timer_counter *counter,
			    u64 ticks_per_sec, u64 cycles_per_sec)
{
	u64 whole, rest;
	int shift;

	if (!ticks_per_sec || ticks_per_sec >> 40 ||
	    !cycles_per_sec || cycles_per_sec >> 40 ||
	    ticks_per_sec / cycles_per_sec >= RATIO_MAX ||
	    cycles_per_sec / ticks_per_sec >= RATIO_MAX)
		return -ERANGE;

	/* (ticks << 32) / cycles in two steps of 16 bits: no overflow */
	whole = div64_u64_rem(ticks_per_sec << 16, cycles_per_sec, &rest);
	counter->mult = (whole << 16) + div64_u64(rest << 16, cycles_per_sec);

	counter->max_delta = div64_u64((u64)U32_MAX << (APIC_TIMER_COUNTER_DIVIDER_MAX + 24),
				       (counter->mult >> 8) + 1);

	/* The product of 30 and 34 bits fits in 64. */
	shift = max(fls64(counter->mult) - 30, 0);
	counter->near_mult = counter->mult >> shift;
	counter->near_shift = 32 - shift;
	counter->near = min(counter->max_delta >> APIC_TIMER_COUNTER_DIVIDER_MAX,
			    1ULL << 34);
	return 0;
}
