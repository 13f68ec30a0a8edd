/* SPDX-License-Identifier: GPL-2.0 */
/* Values in order of time, and their statistics. */
#ifndef SERIES_H
#define SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "apic_measure.h"

struct series {
	int64_t *value;
	size_t count;
	int64_t *sorted;	/* after the first request for a quantile */
};

void series_add(struct series *series, int64_t value);
void series_free(struct series *series);
/* Return: the quantile @percent; 0 if there are no values. */
int64_t series_quantile(struct series *series, double percent);
/*
 * Get a quantile of values that were only counted, by powers of 2: the upper end of its bucket; -1
 * for all values below 0.
 */
int64_t series_counted_quantile(const struct apic_measure_counts *counts, double percent);
double series_mean(const struct series *series);
/* Get the standard deviation of the values up to @most. */
double series_deviation(const struct series *series, int64_t most);

/*
 * Find the distance, up to @lags, after which the values repeat best, and how
 * well: 1 is to the digit. Values above @most count as @most. Return: 0 if they
 * are all alike, or repeat no better than with 0.2.
 */
unsigned int series_period(const struct series *series, unsigned int lags, int64_t most,
			   double *how);

/* Get the number of a bucket, from 0, with 4 buckets per power of 2; or its lowest value. */
unsigned int series_bucket(int64_t value);
int64_t series_bucket_low(unsigned int bucket);
#define SERIES_BUCKETS	256

/* "NAME": { p50, p99, p999, max } */
void series_json(const char *name, struct series *series);
/* "NAME": [[low, count], ...] of the buckets that are not empty; values below 0 as [-1, count] */
void series_json_buckets(const char *name, const struct series *series);
/* "NAME": [[value, count], ...] of all values */
void series_json_counts(const char *name, struct series *series);

#endif
