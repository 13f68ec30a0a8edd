// SPDX-License-Identifier: GPL-2.0
/*
 * Departure times in nanoseconds of a kernel clock, as TSC values.
 *
 * NTP steers the kernel's clocks, by up to 500 ppm, and the TSC goes its own way:
 * what was converted a second ahead may be off by half a millisecond. So a packet
 * whose turn it is next is converted again on the way to its moment.
 */
#include <linux/apic_timer.h>
#include <linux/limits.h>

#include "clock.h"

/* TSC cycles of a distance, rounded up: a packet must not leave early by a fraction of one. */
static u64 cycles_ahead(u64 ns)
{
	u64 cycles = apic_timer_ns_to_tsc(ns);

	return cycles + (apic_timer_tsc_to_ns(cycles) < ns && cycles < U64_MAX);
}

/**
 * shaper_clock_to_tsc() - convert a departure time
 * @pair:	TSC and clocks at a moment, the nearer the better
 * @clock:	which of the clocks
 * @ns:		departure time in that clock
 *
 * Context: Any.
 * Return: absolute TSC; 0 for what was before the TSC began to count, U64_MAX if it
 * does not fit.
 */
u64 shaper_clock_to_tsc(const struct shaper_pair *pair, enum shaper_clock clock, s64 ns)
{
	s64 now = pair->ns[clock];
	u64 distance;

	if (ns >= now)
		return apic_timer_add_tsc(pair->tsc, cycles_ahead((u64)ns - (u64)now));
	distance = apic_timer_ns_to_tsc((u64)now - (u64)ns);
	return distance < pair->tsc ? pair->tsc - distance : 0;
}

/**
 * shaper_clock_from_tsc() - convert a moment
 * @pair:	TSC and clocks at a moment, the nearer the better
 * @clock:	which of the clocks
 * @tsc:	absolute TSC
 *
 * Context: Any.
 * Return: ns of the clock, within one of the truth; what does not fit is its last or first ns.
 */
s64 shaper_clock_from_tsc(const struct shaper_pair *pair, enum shaper_clock clock, u64 tsc)
{
	s64 now = pair->ns[clock];
	u64 ns;

	if (tsc >= pair->tsc) {
		ns = apic_timer_tsc_to_ns(tsc - pair->tsc);
		return ns < (u64)S64_MAX - (u64)now ? now + (s64)ns : S64_MAX;
	}
	ns = apic_timer_tsc_to_ns(pair->tsc - tsc);
	return ns < (u64)now - (u64)S64_MIN ? now - (s64)ns : S64_MIN;
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
