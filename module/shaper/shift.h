/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SHIFT_H
#define _SHAPER_SHIFT_H

#include <linux/limits.h>
#include <linux/overflow.h>
#include <linux/types.h>

/* A TSC value @cycles after another, or U64_MAX if that does not fit. */
static inline u64 shaper_later(u64 tsc, u64 cycles)
{
	u64 sum;

	return check_add_overflow(tsc, cycles, &sum) ? U64_MAX : sum;
}

/*
 * Convert a TSC value of the previous epoch to this one, @shift cycles later. A value that does
 * not fit becomes the first or the last one, so that values keep their order.
 */
static inline u64 shaper_shifted(u64 tsc, s64 shift)
{
	u64 back = -(u64)shift;

	if (shift >= 0)
		return tsc < U64_MAX - shift ? tsc + shift : U64_MAX;
	return tsc > back ? tsc - back : 0;
}

#endif /* _SHAPER_SHIFT_H */
