/* SPDX-License-Identifier: GPL-2.0 */
/* A figure that was measured several times: the middle, and how far the runs are apart. */
#ifndef RUNS_H
#define RUNS_H

#define RUNS_MAX 100

struct runs {
	double value[RUNS_MAX];
	unsigned int count;
};

void runs_add(struct runs *runs, double value);
/* Sorts them. */
double runs_median(struct runs *runs);
/* (highest - lowest) / median, in %; after runs_median() */
double runs_spread(const struct runs *runs);

#endif
