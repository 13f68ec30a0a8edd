/* SPDX-License-Identifier: GPL-2.0 */
/* A figure that was measured several times: median, and spread of the runs. */
#ifndef RUNS_H
#define RUNS_H

#define RUNS_MAX 100

struct runs {
	double value[RUNS_MAX];
	unsigned int count;
};

void runs_add(struct runs *runs, double value);
/* Get the median; sorts the runs. */
double runs_median(struct runs *runs);
/* (highest - lowest) / median, in %; after runs_median() */
double runs_spread(const struct runs *runs);

#endif
