/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_ESTIMATE_H
#define _APIC_TIMER_ESTIMATE_H

#include <linux/types.h>

/* Quantiles are in units of 1 / this. */
#define APIC_TIMER_QUANTILE_ONE		10000
/* Number of samples that the first mean is taken from. */
#define APIC_TIMER_ESTIMATE_FIRST	5

/**
 * struct apic_timer_estimate - mean and a high quantile of a latency
 * @seen:	number of samples, up to %APIC_TIMER_ESTIMATE_FIRST
 * @averaged:	number of samples in @mean, until it is large enough
 * @mean:	mean, TSC cycles times 2^16
 * @spread:	mean distance from the mean, TSC cycles times 2^16
 * @astray:	number of successive outliers; negative: below the mean
 * @high:	the high quantile, TSC cycles times 2^16
 * @sink:	decrement of @high per sample, TSC cycles times 2^16
 * @boost:	log2 of the factor by which @high rises faster than usual
 * @window:	samples in the present window, at whose end @high may drop
 * @peak:	largest sample of the window, TSC cycles times 2^16
 * @last_peak:	@peak of the window before
 * @passed:	samples of other classes, up to a window of them
 * @first:	the first samples, in ascending order, TSC cycles
 */
struct apic_timer_estimate {
	u32 seen;
	u32 averaged;
	u64 mean;
	u64 spread;
	s32 astray;
	u64 high;
	u64 sink;
	u32 boost;
	u32 window;
	u64 peak;
	u64 last_peak;
	u32 passed;
	u64 first[APIC_TIMER_ESTIMATE_FIRST];
};

void apic_timer_estimate_init(struct apic_timer_estimate *estimate, u64 guess,
			      unsigned int quantile);
void apic_timer_estimate_add(struct apic_timer_estimate *estimate, u64 sample,
			     unsigned int quantile);
void apic_timer_estimate_add_high(struct apic_timer_estimate *estimate,
				  u64 sample, unsigned int quantile);
void apic_timer_estimate_pass(struct apic_timer_estimate *estimate,
			      unsigned int quantile);
u64 apic_timer_estimate_mean(const struct apic_timer_estimate *estimate);
u64 apic_timer_estimate_high(const struct apic_timer_estimate *estimate);

#endif /* _APIC_TIMER_ESTIMATE_H */
