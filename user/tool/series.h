/* SPDX-License-Identifier: GPL-2.0 */
/* Values in the order of time, and what is said of them. */
#ifndef SERIES_H
#define SERIES_H

#include <stddef.h>
#include <stdint.h>

struct series {
	int64_t *value;
	size_t count;
	int64_t *sorted;	/* once a quantile was asked for */
};

void series_add(struct series *series, int64_t value);
void series_free(struct series *series);
/* Return: a value that @percent of them are not above; 0 where there is none. */
int64_t series_quantile(struct series *series, double percent);
double series_mean(const struct series *series);
/* Standard deviation of those of which the value is not above @most. */
double series_deviation(const struct series *series, int64_t most);

/*
 * The distance after which the values repeat best, up to @lags, and how well:
 * 1 is to the digit. Values above @most are taken for it. Return: 0 if they are
 * all alike, or repeat no better than with 0.2.
 */
unsigned int series_period(const struct series *series, unsigned int lags, int64_t most,
			   double *how);

/* Number of a bucket, 4 in each power of 2, from 0 on; and its lowest value. */
unsigned int series_bucket(int64_t value);
int64_t series_bucket_low(unsigned int bucket);
#define SERIES_BUCKETS	256

/* "NAME": { p50, p99, p999, max } */
void series_json(const char *name, struct series *series);
/* "NAME": [[low, count], ...] of the buckets that have any; those below 0 as [-1, count] */
void series_json_buckets(const char *name, const struct series *series);
/* "NAME": [[value, count], ...] of all values there are */
void series_json_counts(const char *name, struct series *series);

#endif
