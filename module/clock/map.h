/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_MAP_H
#define _APIC_CLOCK_MAP_H

/*
 * Arithmetic of the map from TSCs that may stop to the time of a counter that never
 * does, the reference (HPET or PM timer).
 *
 * Common time is a function of the reference alone: straight pieces, each with the slope of
 * the TSC's rate as last known. The offset of a CPU's TSC from common time is measured anew
 * each time, never added up, so an error of one measurement is gone with the next one.
 *
 *	reference -- scale --> common time = TSC + offset  (follow, for each CPU)
 *	    |                                 ^
 *	    +-- rate (fit) -------------------+
 */
#include <linux/types.h>

/* log2 of the factor by which rates, in cycles per tick of the reference, are scaled. */
#define APIC_CLOCK_RATE_SHIFT	32

/**
 * struct apic_clock_rate - bounds of a rate
 * @low:	lower bound, cycles per tick times 2^32
 * @high:	upper bound
 */
struct apic_clock_rate {
	u64 low;
	u64 high;
};

/**
 * struct apic_clock_reading - bounds of the TSC value at which a tick of the reference began
 * @ref:	the tick
 * @low:	lower bound
 * @high:	upper bound; less than @low: no single TSC value explains all reads
 * @reads:	number of reads of the reference that were used, 0: none yet
 *
 * Each read of the reference is between two reads of the TSC (a bracket): the tick had begun
 * at the second one, and the next tick had not begun at the first one. An interrupt or an SMI
 * makes a bracket wider, but not wrong, so the narrowest bound of each side is kept.
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
 * @common:	common time at that tick, cycles
 * @rate:	cycles per tick, times 2^32
 * @step:	step of the TSC, cycles
 */
struct apic_clock_scale {
	u64 ref;
	u64 common;
	u64 rate;
	u64 step;
};

/**
 * struct apic_clock_fit - rate of the TSC, measured by the reference
 * @nominal:	rate by the kernel's frequency, times 2^32
 * @rate:	bounds of the measured rate
 * @anchor:	reading since which the TSC has run without a stop
 * @last:	tick of the last reading
 * @doubted:	length, in ticks, of the window that contradicted the known rate and ended at
 *		@anchor; 0: the rate is not in doubt
 * @fitted:	@rate was measured for long enough, and @first is set
 * @first:	middle of @rate when @fitted was set, or when the rate last moved
 * @moved:	number of times that the rate changed by more than %APIC_CLOCK_MOVED_PPB
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

/* Two crystals that age and warm up deviate by less than this; 1/400 of 800 ppm. */
#define APIC_CLOCK_MOVED_PPB	2000

/**
 * struct apic_clock_follow - a CPU's TSC against common time
 * @known:	the members below are known
 * @ref:	tick of the last measurement
 * @offset:	common time minus TSC, cycles
 * @error:	half the width of the bounds of the last measurement, plus what else it left open
 * @least:	half the width of such bounds when nothing delays the reads
 * @vague:	excess over @least when @offset was measured
 * @stops:	number of stops of the TSC that were found
 * @lost:	cycles lost in these stops
 * @longest:	cycles lost in the longest stop
 * @ahead:	number of times that the TSC was found ahead: it was written to, or the reference
 *		stopped
 * @proven:	number of @stops and @ahead that exceed the error of the readings
 * @rejected:	number of measurements that contradict themselves
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
