/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_MAP_H
#define _APIC_CLOCK_MAP_H

/*
 * Arithmetic of the map from TSCs that may stop to the time of a counter that never
 * does, the reference (HPET or PM timer).
 *
 * Common time is a function of the reference alone: straight pieces, each as steep as
 * the TSC was last known to run. What a CPU's TSC is behind common time is measured,
 * never added up: an error of one measurement is gone with the next one.
 *
 *	reference -- scale --> common time = TSC + offset  (follow, for each CPU)
 *	    |                                 ^
 *	    +-- rate (fit) -------------------+
 */
#include <linux/types.h>

/* Rates are cycles per tick of the reference times 2 to the power of this. */
#define APIC_CLOCK_RATE_SHIFT	32

/**
 * struct apic_clock_rate - bounds of a rate
 * @low:	it is not less, cycles per tick times 2^32
 * @high:	it is not more
 */
struct apic_clock_rate {
	u64 low;
	u64 high;
};

/**
 * struct apic_clock_reading - when a tick of the reference began
 * @ref:	the tick
 * @low:	TSC before which it did not
 * @high:	TSC after which it did not; less than @low: no one TSC explains all reads
 * @reads:	reads that this comes from, 0 for none yet
 *
 * Each read of the reference is between two of the TSC (a bracket): the tick read had
 * begun by the second, and the next one had not by the first. An interrupt or an SMI
 * makes a bracket wider, not wrong, so that the narrowest of each side are kept.
 */
struct apic_clock_reading {
	u64 ref;
	u64 low;
	u64 high;
	unsigned int reads;
};

/**
 * struct apic_clock_scale - common time as a function of the reference
 * @ref:	tick at which this piece begins
 * @common:	common time then, cycles
 * @rate:	cycles per tick, times 2^32
 * @step:	cycles that the TSC counts in
 */
struct apic_clock_scale {
	u64 ref;
	u64 common;
	u64 rate;
	u64 step;
};

/**
 * struct apic_clock_fit - how fast the TSC runs by the reference
 * @nominal:	by the kernel's frequency, times 2^32
 * @rate:	bounds of it
 * @anchor:	reading from which on the TSC has run without a stop
 * @last:	tick of the last reading
 * @doubted:	@anchor contradicted what was known, after a window of that many ticks; 0 if
 *		nothing is in doubt
 * @fitted:	@rate comes from long enough, and @first is set
 * @first:	what the middle was then
 * @moved:	how often the rate has changed by more than %APIC_CLOCK_MOVED_PPB
 */
struct apic_clock_fit {
	u64 nominal;
	struct apic_clock_rate rate;
	struct apic_clock_reading anchor;
	u64 last;
	u64 doubted;
	bool fitted;
	u64 first;
	unsigned int moved;
};

/* Two crystals that age and warm up stay closer than this; 1/400 of 800 ppm. */
#define APIC_CLOCK_MOVED_PPB	2000

/**
 * struct apic_clock_follow - a CPU's TSC against common time
 * @known:	the rest is
 * @ref:	tick of the last measurement
 * @offset:	common time less TSC, cycles
 * @error:	half the width of the bounds of the last measurement, and what it has left open
 *		besides
 * @least:	half the width that such bounds have when nothing holds the reads up
 * @vague:	by how much more they were open when @offset was measured
 * @stops:	how often the TSC was found to have stopped
 * @lost:	cycles that it lost by that
 * @longest:	the most of one stop
 * @ahead:	how often it was found ahead: written to, or the reference has stopped
 * @proven:	how often one of these was by more than the readings may be off
 * @rejected:	measurements that contradict themselves
 */
struct apic_clock_follow {
	bool known;
	u64 ref;
	s64 offset;
	u64 error;
	u64 least;
	u64 vague;
	u64 stops;
	u64 lost;
	u64 longest;
	u64 ahead;
	u64 proven;
	u64 rejected;
};

void apic_clock_fit_init(struct apic_clock_fit *fit, u64 nominal);
struct apic_clock_rate apic_clock_fit_runs(const struct apic_clock_fit *fit, bool may_stop);
void apic_clock_reading_add(struct apic_clock_reading *reading, const struct apic_clock_rate *rate,
			    u64 before, u64 ref, u64 after);
bool apic_clock_fit_use(struct apic_clock_fit *fit, const struct apic_clock_reading *reading,
			u64 ticks_per_s);
void apic_clock_fit_break(struct apic_clock_fit *fit);
s64 apic_clock_fit_ppb(const struct apic_clock_fit *fit, u64 rate);
u64 apic_clock_fit_error_ppb(const struct apic_clock_fit *fit);
u64 apic_clock_scale_at(const struct apic_clock_scale *scale, u64 ref);
s64 apic_clock_follow_use(struct apic_clock_follow *follow, const struct apic_clock_scale *scale,
			  const struct apic_clock_rate *runs,
			  const struct apic_clock_reading *reading);
u64 apic_clock_expect(u64 ref, s64 ns, u64 ticks_per_s);
u64 apic_clock_extend(u64 expected, u32 raw, unsigned int bits);

static inline u64 apic_clock_rate_middle(const struct apic_clock_rate *rate)
{
	return rate->low + (rate->high - rate->low) / 2;
}

#endif /* _APIC_CLOCK_MAP_H */
