// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's clocks as functions of the TSC, at any distance.
 */
#include <linux/minmax.h>

#include "tsc/line.h"

/**
 * apic_timer_line_read() - compute a clock's reading at a TSC value
 * @line:	its line, with a @mult
 * @tsc:	absolute TSC
 *
 * Context: Any.
 * Return: ns, within -KTIME_MAX to KTIME_MAX.
 */
s64 apic_timer_line_read(const struct apic_timer_line *line, u64 tsc)
{
	__int128 ns = (__int128)tsc - line->last;

	ns = ns * line->mult + line->frac;
	ns = (ns >> line->shift) + line->base;
	if (ns > KTIME_MAX)
		return KTIME_MAX;
	return ns < -KTIME_MAX ? -KTIME_MAX : (s64)ns;
}

/* Divide by 32 bits, rounded down; a quotient that does not fit is U64_MAX. */
static u64 divide(unsigned __int128 value, u32 by)
{
	u64 high = value >> 32, low = (u32)value;
	u64 quotient;
	u32 rest;

	/* The callers' values have less than 97 bits. */
	quotient = div_u64_rem(high, by, &rest);
	if (quotient >> 32)
		return U64_MAX;
	return quotient << 32 | div_u64((u64)rest << 32 | low, by);
}

/**
 * apic_timer_line_tsc() - compute when a clock reads a value
 * @line:	its line, with a @mult
 * @ns:		the reading to look for, ns
 *
 * Context: Any.
 * Return: the first TSC value at which the clock reads @ns or more; 0 if that
 * was before the TSC started, U64_MAX if it does not fit.
 */
u64 apic_timer_line_tsc(const struct apic_timer_line *line, s64 ns)
{
	__int128 ahead = (((__int128)ns - line->base) << line->shift) - line->frac;
	u64 cycles, sum;

	if (ahead <= 0) {
		cycles = divide(-ahead, line->mult);
		return cycles < line->last ? line->last - cycles : 0;
	}
	cycles = divide(ahead + line->mult - 1, line->mult);
	return check_add_overflow(line->last, cycles, &sum) ? U64_MAX : sum;
}
