/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_ESTIMATE_H
#define _APIC_TIMER_ESTIMATE_H

#include <linux/types.h>

/* Quantiles are in parts of this. */
#define APIC_TIMER_QUANTILE_ONE		10000
/* So many samples give the first value. */
#define APIC_TIMER_ESTIMATE_FIRST	5
/* After so many, the estimate is as good as it gets. */
#define APIC_TIMER_ESTIMATE_WARM	32

/**
 * struct apic_timer_estimate - mean and a high quantile of a latency
 * @seen:	number of samples, up to %APIC_TIMER_ESTIMATE_WARM
 * @averaged:	of those, how many @mean is the mean of, since it last began
 * @mean:	mean, TSC cycles times 2^16
 * @spread:	mean distance from the mean, TSC cycles times 2^16
 * @high:	the high quantile, TSC cycles times 2^16
 * @astray:	successive samples far above the mean, negative below
 * @boost:	log2 of how much faster than usual @high rises
 * @sink:	by how much @high sinks with each sample, TSC cycles times 2^16
 * @window:	samples in the present window, at whose end @high may sink
 * @peak:	largest sample of the window, TSC cycles times 2^16
 * @first:	the first samples, in ascending order, TSC cycles
 *
 * All zeroes is an estimate that has seen nothing.
 */
struct apic_timer_estimate {
	u32 seen;
	u32 averaged;
	u64 mean;
	u64 spread;
	u64 high;
	s32 astray;
	u32 boost;
	u64 sink;
	u32 window;
	u64 peak;
	u64 first[APIC_TIMER_ESTIMATE_FIRST];
};

void apic_timer_estimate_add(struct apic_timer_estimate *estimate, u64 sample,
			     unsigned int quantile);
u64 apic_timer_estimate_mean(const struct apic_timer_estimate *estimate);
u64 apic_timer_estimate_high(const struct apic_timer_estimate *estimate);

static inline bool
apic_timer_estimate_warm(const struct apic_timer_estimate *estimate)
{
	return estimate->seen == APIC_TIMER_ESTIMATE_WARM;
}

#endif /* _APIC_TIMER_ESTIMATE_H */
