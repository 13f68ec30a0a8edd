// SPDX-License-Identifier: GPL-2.0
/* Values in order of time: their quantiles and period. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "say.h"
#include "series.h"

#define LAGS	256

void series_add(struct series *series, int64_t value)
{
	series->value = grow(series->value, series->count, sizeof(*series->value));
	series->value[series->count++] = value;
	free(series->sorted);
	series->sorted = NULL;
}

void series_free(struct series *series)
{
	free(series->value);
	free(series->sorted);
	memset(series, 0, sizeof(*series));
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t series_quantile(struct series *series, double percent)
{
	size_t size = series->count * sizeof(*series->value), place;

	if (!series->count)
		return 0;
	if (!series->sorted) {
		series->sorted = malloc(size);
		if (!series->sorted)
			fail("out of memory");
		memcpy(series->sorted, series->value, size);
		qsort(series->sorted, series->count, sizeof(*series->sorted), compare);
	}
	place = series->count * percent / 100;
	return series->sorted[place < series->count ? place : series->count - 1];
}

int64_t series_counted_quantile(const struct apic_measure_counts *counts, double percent)
{
	uint64_t total = counts->early, seen = counts->early;
	unsigned int i;

	for (i = 0; i < APIC_MEASURE_BUCKETS; i++)
		total += counts->bucket[i];
	if (seen && seen * 100 >= total * percent)
		return -1;
	for (i = 0; i < APIC_MEASURE_BUCKETS; i++) {
		seen += counts->bucket[i];
		if (seen * 100 >= total * percent && seen)
			break;
	}
	if (i >= APIC_MEASURE_BUCKETS - 1 || (INT64_C(1) << i) - 1 > counts->largest)
		return counts->largest;
	return (INT64_C(1) << i) - 1;
}

double series_mean(const struct series *series)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < series->count; i++)
		sum += series->value[i];
	return series->count ? sum / series->count : 0;
}

/*
 * Compute a square root without libm, by Newton's method; a double's digits need only a
 * few steps.
 */
static double root(double number)
{
	double guess = number > 1 ? number : 1;
	unsigned int i;

	if (number <= 0)
		return 0;
	for (i = 0; i < 100; i++)
		guess = (guess + number / guess) / 2;
	return guess;
}

double series_deviation(const struct series *series, int64_t most)
{
	double sum = 0, squares = 0, mean;
	size_t i, count = 0;

	for (i = 0; i < series->count; i++) {
		if (series->value[i] > most)
			continue;
		sum += series->value[i];
		count++;
	}
	if (!count)
		return 0;
	mean = sum / count;
	for (i = 0; i < series->count; i++)
		if (series->value[i] <= most)
			squares += (series->value[i] - mean) * (series->value[i] - mean);
	return root(squares / count);
}

static double limited(const struct series *series, size_t at, int64_t most)
{
	return series->value[at] > most ? most : series->value[at];
}

unsigned int series_period(const struct series *series, unsigned int lags, int64_t most,
			   double *how)
{
	double mean = 0, square = 0, found[LAGS + 1], best = 0.2;
	unsigned int lag, period = 0;
	size_t i;

	*how = 0;
	if (lags > LAGS)
		lags = LAGS;
	if (series->count < 4 * (size_t)lags)
		return 0;
	for (i = 0; i < series->count; i++)
		mean += limited(series, i, most) / series->count;
	for (i = 0; i < series->count; i++)
		square += (limited(series, i, most) - mean) * (limited(series, i, most) - mean);
	if (square <= 0)
		return 0;
	for (lag = 1; lag <= lags; lag++) {
		found[lag] = 0;
		for (i = lag; i < series->count; i++)
			found[lag] += (limited(series, i, most) - mean) *
				      (limited(series, i - lag, most) - mean);
		found[lag] /= square;
	}
	/* Find a peak, not the slope that begins at 0; of a period and its multiples, the first. */
	for (lag = 2; lag < lags; lag++) {
		if (found[lag] > best * 1.1 && found[lag] > found[lag - 1] &&
		    found[lag] >= found[lag + 1]) {
			best = found[lag];
			period = lag;
		}
	}
	*how = period ? best : 0;
	return period;
}

unsigned int series_bucket(int64_t value)
{
	unsigned int power;

	if (value < 4)
		return value < 0 ? 0 : value;
	power = 63 - __builtin_clzll(value);
	return 4 * (power - 1) + (value >> (power - 2) & 3);
}

int64_t series_bucket_low(unsigned int bucket)
{
	if (bucket < 4)
		return bucket;
	return (INT64_C(4) + bucket % 4) << (bucket / 4 - 1);
}

void series_json(const char *name, struct series *series)
{
	json_object(name);
	json_number("p50", series_quantile(series, 50));
	json_number("p99", series_quantile(series, 99));
	json_number("p999", series_quantile(series, 99.9));
	json_number("max", series_quantile(series, 100));
	json_end();
}

void series_json_buckets(const char *name, const struct series *series)
{
	unsigned int count[SERIES_BUCKETS] = {}, early = 0, bucket;
	size_t i;

	for (i = 0; i < series->count; i++) {
		if (series->value[i] < 0)
			early++;
		else
			count[series_bucket(series->value[i])]++;
	}
	json_array(name);
	for (bucket = 0; bucket <= SERIES_BUCKETS; bucket++) {
		unsigned int number = bucket ? count[bucket - 1] : early;

		if (!number)
			continue;
		json_array(NULL);
		json_number(NULL, bucket ? series_bucket_low(bucket - 1) : -1);
		json_number(NULL, number);
		json_end();
	}
	json_end();
}

void series_json_counts(const char *name, struct series *series)
{
	size_t i, next;

	/* Sort the values. */
	series_quantile(series, 50);
	json_array(name);
	for (i = 0; i < series->count; i = next) {
		for (next = i + 1; next < series->count; next++)
			if (series->sorted[next] != series->sorted[i])
				break;
		json_array(NULL);
		json_number(NULL, series->sorted[i]);
		json_number(NULL, next - i);
		json_end();
	}
	json_end();
}
