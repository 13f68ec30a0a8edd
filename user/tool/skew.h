/* SPDX-License-Identifier: GPL-2.0 */
/* Skew of one CPU's TSC against another's: bounds by causality. */
#ifndef SKEW_H
#define SKEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Message and answer: sent at @sent and received at @back of A's TSC, answered at @stamp of B's */
struct skew_round {
	uint64_t sent, stamp, back;
};

/*
 * B's TSC minus A's is in [low, high], because no message arrives before it is
 * sent. low > high: the difference has changed meanwhile.
 */
struct skew {
	int64_t low, high;
	int64_t middle;		/* of the bounds */
	uint64_t round_trip;	/* shortest round trip */
};

/* Bounds from the rounds of one role */
struct skew skew_of(const struct skew_round *rounds, size_t count);
/* Bounds of both roles: @back was measured with A and B swapped. */
struct skew skew_both(struct skew there, struct skew back);

/* Measure with two pinned threads. Return: false if they could not run. */
bool skew_measure(int a, int b, size_t rounds, struct skew *skew);

#endif
