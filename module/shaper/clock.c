// SPDX-License-Identifier: GPL-2.0
/*
 * Departure times in nanoseconds of a kernel clock, as TSC values.
 *
 * NTP steers the kernel's clocks, by up to 500 ppm, and may set them: what was
 * converted a second ahead may be off by half a millisecond when its moment comes. So a
 * packet whose turn it is next is converted again on the way to its moment.
 */
#include <linux/apic_timer.h>

#include "clock.h"

/**
 * shaper_clock_to_tsc() - convert a departure time
 * @clock:	CLOCK_MONOTONIC, CLOCK_REALTIME or CLOCK_TAI
 * @time:	departure time in that clock
 *
 * With another clocksource than the TSC, the conversion may be off by what it takes to read
 * that, and the further away the more. A packet may be late by that, but not early.
 *
 * Context: Any but NMI.
 * Return: absolute TSC; 0 for what was before the TSC began to count, U64_MAX if it
 * does not fit.
 */
u64 shaper_clock_to_tsc(clockid_t clock, ktime_t time)
{
	u64 error, tsc = apic_timer_clock_to_tsc(clock, time, &error);

	return apic_timer_add_tsc(tsc, error);
}

/**
 * shaper_clock_look() - choose when to convert a departure time again
 * @now:	TSC
 * @at:		the departure, as converted
 * @near:	distance at which that is good enough, TSC cycles
 *
 * Context: Any.
 * Return: absolute TSC, after 15 of 16 parts of the way: four looks for ten seconds.
 * 0 if @at is near.
 */
u64 shaper_clock_look(u64 now, u64 at, u64 near)
{
	if (at <= now || at - now <= near)
		return 0;
	return at - (at - now) / 16 - 1;
}
