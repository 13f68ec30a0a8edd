// SPDX-License-Identifier: GPL-2.0
/*
 * Estimate mean and a high quantile of a latency from a sequence of samples, in a
 * few instructions per sample and with integers only.
 *
 * Neither follows an outlier: the mean moves by a clipped distance, and the
 * quantile by a step whose size does not depend on the sample. Both follow a
 * permanent change of the latency: the mean restarts after some samples that are
 * all far off on the same side, and the steps of the quantile grow while samples
 * continue to exceed it.
 *
 * The quantile starts at a generous guess, which fades as evidence accumulates.
 * At the end of each window of samples, it drops half of the way to the largest
 * of them, and windows grow: 10 samples only show that a latency which none of
 * them came near is not the usual one; 100 samples say nothing about events that
 * happen once in 10,000 times. Thus the more frequent a rare high latency is, the
 * less it exceeds the quantile. The quantile of all samples is the largest of the
 * recent ones. A user for whom the guess is cheap keeps it until the end of the
 * longest window.
 */
#include <linux/bits.h>
#include <linux/export.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include <linux/apic_timer_estimate.h>

/* Fixed point. */
#define SHIFT		APIC_TIMER_ESTIMATE_SHIFT
/* Maximum sample; larger ones are clipped. Nothing below overflows with it. */
#define SAMPLE_MAX	BIT_ULL(40)
/* log2 of the approximate number of samples that mean and spread average. */
#define MEAN_SHIFT	6
#define SPREAD_SHIFT	5
/* Samples within this number of spreads plus a constant are no outliers. */
#define SPREADS		4
#define SPREAD_FREE	(8ULL << SHIFT)
/* Number of successive outliers on one side that means a changed latency. */
#define ASTRAY_MAX	8
/* Minimum step of the quantile; log2 of the quantile's ratio to its step. */
#define STEP_MIN	(16ULL << SHIFT)
#define STEP_SHIFT	6
#define BOOST_MAX	16
/* Longest window, in multiples of the number of samples of which one exceeds the quantile. */
#define WINDOW		4
/* Length of the first window, samples, and factor to the next one. */
#define WINDOW_FIRST	10U
#define WINDOW_GROWTH	10U

static u64 step(const struct apic_timer_estimate *estimate)
{
	return max(estimate->high >> STEP_SHIFT, STEP_MIN);
}

/* Compute the number of samples that suffice to judge the quantile. */
static u32 longest_window(unsigned int quantile)
{
	unsigned int rest = max(APIC_TIMER_QUANTILE_ONE - quantile, 1U);

	return DIV_ROUND_UP(WINDOW * APIC_TIMER_QUANTILE_ONE, rest);
}

static u32 next_window(const struct apic_timer_estimate *estimate, u32 length)
{
	return min(length * WINDOW_GROWTH, estimate->longest);
}

/* Balance: a fraction of 1 - quantile of the samples raises by @up, the others lower. */
static u64 sink(u64 up, u32 quantile)
{
	/* An estimate that was never initialised must not crash the kernel. */
	quantile = max_t(u32, quantile, APIC_TIMER_QUANTILE_MIN);
	return div_u64(up, quantile) * (APIC_TIMER_QUANTILE_ONE - quantile);
}

/**
 * apic_timer_estimate_init() - start an estimate
 * @estimate:	the estimate
 * @guess:	initial value of the quantile, TSC cycles
 * @quantile:	the quantile to estimate, %APIC_TIMER_QUANTILE_MIN to
 *		%APIC_TIMER_QUANTILE_ONE; other values count as the nearest of these
 *
 * Context: Any. The caller keeps other code away from @estimate.
 */
void apic_timer_estimate_init(struct apic_timer_estimate *estimate, u64 guess,
			      unsigned int quantile)
{
	u64 high = min(guess, SAMPLE_MAX) << SHIFT;
	u32 longest;

	quantile = clamp_t(u32, quantile, APIC_TIMER_QUANTILE_MIN, APIC_TIMER_QUANTILE_ONE);
	longest = longest_window(quantile);
	*estimate = (struct apic_timer_estimate) {
		.quantile = quantile,
		.length = min(WINDOW_FIRST, longest),
		.passing = min(WINDOW_FIRST, longest),
		.longest = longest,
		.high = high,
		.sink = sink(high, quantile),
	};
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_init);

static void set_window(struct apic_timer_estimate *estimate, u32 length)
{
	estimate->length = length;
	estimate->passing = length;
}

/**
 * apic_timer_estimate_wait() - do not judge the quantile before the end of the longest window
 * @estimate:	the estimate
 *
 * For a guess that costs less than a sample beyond the quantile.
 *
 * Context: Any. The caller keeps other code away from @estimate.
 */
void apic_timer_estimate_wait(struct apic_timer_estimate *estimate)
{
	set_window(estimate, estimate->longest);
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_wait);

/**
 * apic_timer_estimate_hurry() - judge the quantile soon
 * @estimate:	the estimate
 *
 * Restart with a short window if windows have grown to the longest. The
 * opposite of apic_timer_estimate_wait().
 *
 * Context: Any. The caller keeps other code away from @estimate.
 */
void apic_timer_estimate_hurry(struct apic_timer_estimate *estimate)
{
	if (estimate->length == estimate->longest)
		set_window(estimate, min(WINDOW_FIRST, estimate->longest));
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_hurry);

/* Start with the median of the first few: any of them may be an outlier. */
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
		/* The latency has changed: restart from this sample. */
		estimate->astray = 0;
		estimate->averaged = 1;
		estimate->mean = x;
		estimate->spread = 0;
		return;
	}

	/* Up to twice the mean counts in full: a mean is not a median. */
	distance = min(distance, max(limit, estimate->mean));
	if (estimate->averaged < 1 << MEAN_SHIFT)
		part = div_u64(distance, ++estimate->averaged);
	else
		part = distance >> MEAN_SHIFT;
	estimate->mean = above ? estimate->mean + part : estimate->mean - part;

	/* The spread grows slowly, so that outliers are counted before it covers them. */
	distance = min(distance, limit / 2);
	if (distance > estimate->spread)
		estimate->spread += (distance - estimate->spread) >> SPREAD_SHIFT;
	else
		estimate->spread -= (estimate->spread - distance) >> SPREAD_SHIFT;
}

/**
 * apic_timer_estimate_add_high() - add a sample to the quantile only
 * @estimate:	the estimate
 * @sample:	TSC cycles
 *
 * Context: Any. The caller keeps other code away from @estimate.
 */
void apic_timer_estimate_add_high(struct apic_timer_estimate *estimate, u64 sample)
{
	u64 x = min(sample, SAMPLE_MAX) << SHIFT;
	u64 least = step(estimate), up, room;

	estimate->peak = max(estimate->peak, x);
	estimate->window++;

	if (x > estimate->high) {
		/* Towards the sample, by a limited step: it may be an outlier. */
		up = clamp(x - estimate->high, least,
			   max(estimate->high / 4, least));
		estimate->sink = sink(up, estimate->quantile);
		/* For samples near the maximum, the boosted step has more than 64 bits. */
		room = x + least - estimate->high;
		estimate->high += up > room >> estimate->boost ? room : up << estimate->boost;
		estimate->boost = min(estimate->boost + 1, BOOST_MAX);
		return;
	}
	if (estimate->boost)
		estimate->boost--;
	estimate->high -= min(estimate->sink, estimate->high);

	if (estimate->window < estimate->length)
		return;
	/* No sample came near it during the window: the latency has decreased. */
	if (estimate->peak + least < estimate->high)
		estimate->high -= (estimate->high - least - estimate->peak) / 2;
	estimate->window = 0;
	estimate->length = next_window(estimate, estimate->length);
	estimate->last_peak = estimate->peak;
	estimate->peak = 0;
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_add_high);

/**
 * apic_timer_estimate_add() - add a sample
 * @estimate:	the estimate
 * @sample:	TSC cycles
 *
 * Context: Any. The caller keeps other code away from @estimate.
 */
void apic_timer_estimate_add(struct apic_timer_estimate *estimate, u64 sample)
{
	sample = min(sample, SAMPLE_MAX);
	if (estimate->seen < APIC_TIMER_ESTIMATE_FIRST)
		add_first(estimate, sample);
	else
		add_to_mean(estimate, sample << SHIFT);
	apic_timer_estimate_add_high(estimate, sample);
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_add);

/**
 * apic_timer_estimate_pass() - note a sample of another class
 * @estimate:	the estimate
 *
 * Decay the initial guess towards the observed maximum.
 *
 * Context: Any. The caller keeps other code away from @estimate.
 */
void apic_timer_estimate_pass(struct apic_timer_estimate *estimate)
{
	u64 seen = max(estimate->peak, estimate->last_peak), over;

	over = estimate->high - min(estimate->high, seen);
	estimate->high -= min(estimate->sink, over);
	if (++estimate->passed < estimate->passing)
		return;
	over = estimate->high - min(estimate->high, seen);
	estimate->high -= over / 2;
	estimate->passed = 0;
	estimate->passing = next_window(estimate, estimate->passing);
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_pass);

/**
 * apic_timer_estimate_mean() - read the mean
 * @estimate:	the estimate
 *
 * Context: Any.
 * Return: TSC cycles, 0 if there was no sample.
 */
u64 apic_timer_estimate_mean(const struct apic_timer_estimate *estimate)
{
	return (estimate->mean + (1ULL << (SHIFT - 1))) >> SHIFT;
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_mean);

/**
 * apic_timer_estimate_high() - read the high quantile, plus its uncertainty
 * @estimate:	the estimate
 *
 * Context: Any.
 * Return: TSC cycles.
 */
u64 apic_timer_estimate_high(const struct apic_timer_estimate *estimate)
{
	return (estimate->high + step(estimate)) >> SHIFT;
}
EXPORT_SYMBOL_GPL(apic_timer_estimate_high);
