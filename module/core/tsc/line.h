/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LINE_H
#define _APIC_TIMER_LINE_H

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/types.h>

/**
 * struct apic_timer_line - line by which a kernel clock is computed from the TSC
 * @last:	TSC to count from
 * @base:	ns at @last, without @frac
 * @frac:	fraction of a ns at @last, in units of 2^-@shift ns; may be more
 *		than one ns
 * @mult:	rate, in units of 2^-@shift ns per cycle; 0: no line is known
 * @shift:	1 to 32
 *
 * The clock reads @base + (((TSC - @last) * @mult + @frac) >> @shift), rounded
 * down. The kernel computes the same, so that conversions are exact in both
 * directions.
 */
struct apic_timer_line {
	u64 last;
	s64 base;
	u64 frac;
	u32 mult;
	u32 shift;
};

s64 apic_timer_line_read(const struct apic_timer_line *line, u64 tsc);
u64 apic_timer_line_tsc(const struct apic_timer_line *line, s64 ns);

/**
 * apic_timer_line_read_near() - compute a clock's reading, if 64 bits suffice
 * @line:	its line, with a @mult
 * @tsc:	absolute TSC
 * @ns:		set to the result of apic_timer_line_read()
 *
 * Return: whether they did.
 */
static __always_inline bool
apic_timer_line_read_near(const struct apic_timer_line *line, u64 tsc, s64 *ns)
{
	u64 product;

	return likely(tsc >= line->last) &&
	       likely(!check_mul_overflow(tsc - line->last, (u64)line->mult, &product)) &&
	       likely(!check_add_overflow(product, line->frac, &product)) &&
	       likely((s64)product >= 0) &&
	       likely(!check_add_overflow((s64)(product >> line->shift % 64), line->base, ns));
}

/**
 * apic_timer_line_tsc_near() - compute when a clock reads a value, if 64 bits suffice
 * @line:	its line, with a @mult
 * @ns:		the reading to look for, ns
 * @tsc:	set to the result of apic_timer_line_tsc()
 *
 * They suffice for @ns up to 9 minutes after @line->last, with a shift of 24.
 *
 * Return: whether they did.
 */
static __always_inline bool
apic_timer_line_tsc_near(const struct apic_timer_line *line, s64 ns, u64 *tsc)
{
	unsigned int shift = line->shift % 64;	/* or some kernels check it */
	u64 ahead = (u64)ns - line->base;
	u64 sum = (ahead << shift) - line->frac + line->mult - 1;

	/*
	 * @ahead is not negative, and no bit of it was lost: @sum does not wrap. To round
	 * up, add @mult - 1 and round down.
	 */
	if (unlikely(ahead >> (63 - shift)) || unlikely((s64)sum < 0))
		return false;
	return likely(!check_add_overflow(line->last, div_u64(sum, line->mult), tsc));
}

#endif /* _APIC_TIMER_LINE_H */
