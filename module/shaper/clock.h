/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CLOCK_H
#define _SHAPER_CLOCK_H

#include <linux/types.h>

/**
 * enum shaper_clock - clocks of departure times
 * @SHAPER_MONOTONIC:	CLOCK_MONOTONIC
 * @SHAPER_REALTIME:	CLOCK_REALTIME
 * @SHAPER_TAI:		CLOCK_TAI
 * @SHAPER_CLOCKS:	number of clocks
 */
enum shaper_clock {
	SHAPER_MONOTONIC,
	SHAPER_REALTIME,
	SHAPER_TAI,
	SHAPER_CLOCKS
};

/**
 * struct shaper_pair - the TSC and the kernel's clocks at one moment
 * @tsc:	TSC, cycles
 * @ns:		each clock, ns
 */
struct shaper_pair {
	u64 tsc;
	s64 ns[SHAPER_CLOCKS];
};

u64 shaper_clock_to_tsc(const struct shaper_pair *pair, enum shaper_clock clock, s64 ns);
s64 shaper_clock_from_tsc(const struct shaper_pair *pair, enum shaper_clock clock, u64 tsc);
u64 shaper_clock_look(u64 now, u64 at, u64 near);

#endif /* _SHAPER_CLOCK_H */
