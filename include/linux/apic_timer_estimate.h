/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mean and a high quantile of a latency, estimated sample by sample in a few
 * instructions each. apic_timer estimates with it how early to program the
 * hardware. It is public for code that adds a latency of its own, such as that
 * of a thread which a handler wakes, and has to begin earlier by that latency:
 *
 *	apic_timer_estimate_init(&wakeup, apic_timer_us_to_tsc(10), 9990);
 *
 *	timer.expires = moment - apic_timer_estimate_high(&wakeup);
 *	...
 *	apic_timer_estimate_add(&wakeup, resumed - timer.expires);
 *
 * Samples and results are TSC cycles here, but any unit will do if both have
 * it; samples above 2^40 count as 2^40. Quantiles are in units of 1 /
 * APIC_TIMER_QUANTILE_ONE: 9990 is exceeded by one sample in 1,000.
 *
 * An estimate has no lock: the caller serialises the calls that change it.
 * Reading it meanwhile returns a value from before, during or after the change.
 */
#ifndef _LINUX_APIC_TIMER_ESTIMATE_H
#define _LINUX_APIC_TIMER_ESTIMATE_H

#include <linux/apic_timer.h>	/* for the number of the interface */
#include <linux/build_bug.h>
#include <linux/types.h>

/* Quantiles are in units of 1 / this. */
#define APIC_TIMER_QUANTILE_ONE		10000
/* Lowest quantile: the median. */
#define APIC_TIMER_QUANTILE_MIN		5000
/* Number of samples that the first mean is taken from. */
#define APIC_TIMER_ESTIMATE_FIRST	5
/* Means and quantiles are kept times 2 to the power of this. */
#define APIC_TIMER_ESTIMATE_SHIFT	16

/**
 * struct apic_timer_estimate - mean and a high quantile of a latency
 * @quantile:	private: the quantile, in parts of %APIC_TIMER_QUANTILE_ONE
 * @seen:	private: number of samples, up to %APIC_TIMER_ESTIMATE_FIRST
 * @averaged:	private: number of samples in @mean, until it is large enough
 * @astray:	private: number of successive outliers; negative: below the mean
 * @mean:	private: mean, TSC cycles times 2^16
 * @spread:	private: mean distance from the mean, TSC cycles times 2^16
 * @high:	private: the high quantile, TSC cycles times 2^16
 * @sink:	private: decrement of @high per sample, TSC cycles times 2^16
 * @boost:	private: log2 of the factor by which @high rises faster than usual
 * @window:	private: samples so far in the present window, at whose end @high
 *		may drop
 * @length:	private: length of the present window, samples
 * @passed:	private: samples of other classes in their present window
 * @passing:	private: length of that window, samples
 * @longest:	private: length of the longest window, samples
 * @peak:	private: largest sample of the window, TSC cycles times 2^16
 * @last_peak:	private: @peak of the window before
 * @first:	private: the first samples, in ascending order, TSC cycles
 *
 * Allocated by the caller, anywhere; apic_timer_estimate_init() sets it up.
 */
struct apic_timer_estimate {
	u32 quantile;
	u32 seen;
	u32 averaged;
	s32 astray;
	u64 mean;
	u64 spread;
	u64 high;
	u64 sink;
	u32 boost;
	u32 window;
	u32 length;
	u32 passed;
	u32 passing;
	u32 longest;
	u64 peak;
	u64 last_peak;
	u64 first[APIC_TIMER_ESTIMATE_FIRST];
};

/* Part of the interface that APIC_TIMER_API numbers, as APIC_TIMER_SIZE is. */
static_assert(sizeof(struct apic_timer_estimate) == 128);

/*
 * Start an estimate. @guess: the quantile while there are few samples, TSC cycles;
 * rather too large than too small. @quantile: APIC_TIMER_QUANTILE_MIN to _ONE,
 * other values are clamped to that range; _ONE means the largest of the recent
 * samples.
 */
void apic_timer_estimate_init(struct apic_timer_estimate *estimate, u64 guess,
			      unsigned int quantile);

/*
 * Choose how fast the guess fades; by default it fades soon, after few samples.
 * Where an estimate below a sample costs more than one above it,
 * apic_timer_estimate_wait() keeps the guess for a whole window, which has 4
 * times the samples among which one exceeds the quantile. Where keeping it has
 * turned out to cost too much, apic_timer_estimate_hurry() lets it fade soon
 * again.
 */
void apic_timer_estimate_wait(struct apic_timer_estimate *estimate);
void apic_timer_estimate_hurry(struct apic_timer_estimate *estimate);

/* Add a sample, TSC cycles: to mean and quantile, or to the quantile only. */
void apic_timer_estimate_add(struct apic_timer_estimate *estimate, u64 sample);
void apic_timer_estimate_add_high(struct apic_timer_estimate *estimate, u64 sample);

/*
 * Where several estimates each have a class of samples, note in one of them
 * that another had a sample. This lets the guess of a rarely seen class fade.
 */
void apic_timer_estimate_pass(struct apic_timer_estimate *estimate);

/*
 * Read the estimate, TSC cycles: the mean, or 0 if there was no sample; the
 * quantile, plus its uncertainty.
 */
u64 apic_timer_estimate_mean(const struct apic_timer_estimate *estimate);
u64 apic_timer_estimate_high(const struct apic_timer_estimate *estimate);

/* Get the mean distance from the mean of samples that are no outliers, TSC cycles. */
static inline u64 apic_timer_estimate_spread(const struct apic_timer_estimate *estimate)
{
	return estimate->spread >> APIC_TIMER_ESTIMATE_SHIFT;
}

#endif /* _LINUX_APIC_TIMER_ESTIMATE_H */
