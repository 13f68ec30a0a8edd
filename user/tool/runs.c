// SPDX-License-Identifier: GPL-2.0
/*
 * A figure that was measured several times.
 */
#include <stdlib.h>

#include "runs.h"

void runs_add(struct runs *runs, double value)
{
	if (runs->count < RUNS_MAX)
		runs->value[runs->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double runs_median(struct runs *runs)
{
	if (!runs->count)
		return 0;
	qsort(runs->value, runs->count, sizeof(runs->value[0]), compare);
	return (runs->value[(runs->count - 1) / 2] + runs->value[runs->count / 2]) / 2;
}

double runs_spread(const struct runs *runs)
{
	double middle;

	if (!runs->count)
		return 0;
	middle = (runs->value[(runs->count - 1) / 2] + runs->value[runs->count / 2]) / 2;
	return middle > 0 ? (runs->value[runs->count - 1] - runs->value[0]) * 100 / middle : 0;
}
