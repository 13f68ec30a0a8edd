// SPDX-License-Identifier: GPL-2.0
/*
 * Mean and a high quantile of a latency, from one sample after the other, in a
 * few instructions each and with integers only.
 *
 * Neither follows an outlier: the mean moves by a clipped distance, and the
 * quantile by a step whose size doesn't depend on the sample. Both follow the
 * latency when it changes for good: the mean begins anew after some samples
 * that are all far off on the same side, and the quantile's steps grow while
 * samples go on exceeding it.
 *
 * The quantile begins with a generous guess, which sinks as evidence grows: of
 * what happens once in 10,000 times, 100 samples tell nothing. The quantile of
 * all samples is the largest of late.
 */
#include <linux/bits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "lib/estimate.h"

/* Fixed point. */
#define SHIFT		16
/* Larger samples are taken for this: nothing below overflows. */
#define SAMPLE_MAX	BIT_ULL(40)
/* The mean is that of about 2^this samples, the spread of so many. */
#define MEAN_SHIFT	6
#define SPREAD_SHIFT	5
/* Samples within so many spreads, and this much more, are no outliers. */
#define SPREADS		4
#define SPREAD_FREE	(8ULL << SHIFT)
/* So many outliers on the same side are none. */
#define ASTRAY_MAX	8
/* Smallest step of the quantile, and the step as a part of the quantile. */
#define STEP_MIN	(16ULL << SHIFT)
#define STEP_SHIFT	6
#define BOOST_MAX	16
/* A window has so many times the samples of which one exceeds the quantile. */
#define WINDOW		4

static u64 step(const struct apic_timer_estimate *estimate)
{
	return max(estimate->high >> STEP_SHIFT, STEP_MIN);
}

/* Do so many samples tell something about the quantile? */
static bool is_window(u32 samples, unsigned int quantile)
{
	unsigned int rest = max(APIC_TIMER_QUANTILE_ONE - quantile, 1U);

	return (u64)samples * rest >= WINDOW * APIC_TIMER_QUANTILE_ONE;
}

/* In balance, one sample of (1 - quantile) rises by @up, the others sink. */
static u64 sink(u64 up, unsigned int quantile)
{
	return div_u64(up * (APIC_TIMER_QUANTILE_ONE - quantile), quantile);
}

/**
 * apic_timer_estimate_init() - begin
 * @estimate:	the estimate
 * @guess:	what the quantile may be at most, TSC cycles
 * @quantile:	the quantile to estimate, in parts of %APIC_TIMER_QUANTILE_ONE,
 *		not 0
 */
void apic_timer_estimate_init(struct apic_timer_estimate *estimate, u64 guess,
			      unsigned int quantile)
{
	u64 high = min(guess, SAMPLE_MAX) << SHIFT;

	*estimate = (struct apic_timer_estimate) {
		.high = high,
		.sink = sink(high, quantile),
	};
}

/* Begin with the median of the first few: any of them may be an outlier. */
static void add_first(struct apic_timer_estimate *estimate, u64 sample)
{
	u64 *first = estimate->first;
	unsigned int i;

	for (i = estimate->seen; i && first[i - 1] > sample; i--)
		first[i] = first[i - 1];
	first[i] = sample;

	estimate->averaged = ++estimate->seen;
	estimate->mean = first[estimate->seen / 2] << SHIFT;
	estimate->spread = (first[estimate->seen / 2] - first[0]) << SHIFT;
}

static void add_to_mean(struct apic_timer_estimate *estimate, u64 x)
{
	u64 limit = SPREADS * estimate->spread + SPREAD_FREE;
	bool above = x > estimate->mean;
	u64 distance = above ? x - estimate->mean : estimate->mean - x;
	u64 part;

	if (distance <= limit)
		estimate->astray = 0;
	else if (above)
		estimate->astray = max(estimate->astray, 0) + 1;
	else
		estimate->astray = min(estimate->astray, 0) - 1;

	if (abs(estimate->astray) == ASTRAY_MAX) {
		/* The latency has changed: this is what it is now. */
		estimate->astray = 0;
		estimate->averaged = 1;
		estimate->mean = x;
		estimate->spread = 0;
		return;
	}

	/* Twice the latency still counts in full: a mean is not a median. */
	distance = min(distance, max(limit, estimate->mean));
	if (estimate->averaged < 1 << MEAN_SHIFT)
		part = div_u64(distance, ++estimate->averaged);
	else
		part = distance >> MEAN_SHIFT;
	estimate->mean = above ? estimate->mean + part : estimate->mean - part;

	/* The spread grows too, but not before astray ones are counted. */
	distance = min(distance, limit / 2);
	if (distance > estimate->spread)
		estimate->spread += (distance - estimate->spread) >> SPREAD_SHIFT;
	else
		estimate->spread -= (estimate->spread - distance) >> SPREAD_SHIFT;
}

/**
 * apic_timer_estimate_add_high() - take a sample into account, but for the mean
 * @estimate:	the estimate
 * @sample:	TSC cycles
 * @quantile:	as for apic_timer_estimate_init()
 */
void apic_timer_estimate_add_high(struct apic_timer_estimate *estimate,
				  u64 sample, unsigned int quantile)
{
	u64 x = min(sample, SAMPLE_MAX) << SHIFT;
	u64 least = step(estimate), up;

	estimate->peak = max(estimate->peak, x);
	estimate->window++;

	if (x > estimate->high) {
		/* To the sample, but not far for an outlier. */
		up = clamp(x - estimate->high, least,
			   max(estimate->high / 4, least));
		estimate->sink = sink(up, quantile);
		estimate->high = min(estimate->high + (up << estimate->boost),
				     x + least);
		estimate->boost = min(estimate->boost + 1, BOOST_MAX);
		return;
	}
	if (estimate->boost)
		estimate->boost--;
	estimate->high -= min(estimate->sink, estimate->high);

	if (!is_window(estimate->window, quantile))
		return;
	/* None came near in so long: the latency has become shorter. */
	if (estimate->peak + least < estimate->high)
		estimate->high -= (estimate->high - least - estimate->peak) / 2;
	estimate->window = 0;
	estimate->last_peak = estimate->peak;
	estimate->peak = 0;
}

/**
 * apic_timer_estimate_add() - take a sample into account
 * @estimate:	the estimate
 * @sample:	TSC cycles
 * @quantile:	as for apic_timer_estimate_init()
 */
void apic_timer_estimate_add(struct apic_timer_estimate *estimate, u64 sample,
			     unsigned int quantile)
{
	sample = min(sample, SAMPLE_MAX);
	if (estimate->seen < APIC_TIMER_ESTIMATE_FIRST)
		add_first(estimate, sample);
	else
		add_to_mean(estimate, sample << SHIFT);
	apic_timer_estimate_add_high(estimate, sample, quantile);
}

/**
 * apic_timer_estimate_pass() - there was a sample, but of something else
 * @estimate:	the estimate
 * @quantile:	as for apic_timer_estimate_init()
 *
 * What is but a guess fades, down to what has been seen.
 */
void apic_timer_estimate_pass(struct apic_timer_estimate *estimate,
			      unsigned int quantile)
{
	u64 seen = max(estimate->peak, estimate->last_peak), over;

	over = estimate->high - min(estimate->high, seen);
	estimate->high -= min(estimate->sink, over);
	if (!is_window(++estimate->passed, quantile))
		return;
	over = estimate->high - min(estimate->high, seen);
	estimate->high -= over / 2;
	estimate->passed = 0;
}

/**
 * apic_timer_estimate_mean() - the mean
 * @estimate:	the estimate
 *
 * Return: TSC cycles, 0 when there was no sample.
 */
u64 apic_timer_estimate_mean(const struct apic_timer_estimate *estimate)
{
	return (estimate->mean + (1ULL << (SHIFT - 1))) >> SHIFT;
}

/**
 * apic_timer_estimate_high() - the high quantile, with what it may err by
 * @estimate:	the estimate
 *
 * Return: TSC cycles.
 */
u64 apic_timer_estimate_high(const struct apic_timer_estimate *estimate)
{
	return (estimate->high + step(estimate)) >> SHIFT;
}
