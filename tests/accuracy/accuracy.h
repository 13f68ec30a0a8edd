/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_ACCURACY_H
#define _APIC_TIMER_ACCURACY_H

#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/prandom.h>
#include <linux/types.h>

/* Expiries after which the estimate has settled. */
#define ACCURACY_WARM_UP	100
/* With this number p99.9 differs from the maximum. */
#define ACCURACY_SHOTS		3000
/*
 * Mode exact allows for 9999 latencies of 10,000: in any row of expiries one may be late by the
 * length of the kernel's clock work, TSC cycles.
 */
#define ACCURACY_RARE		600
/*
 * Mean error of mode mean, 1/100 cycle. Leads are whole cycles, which is about one cycle here, and
 * of a latency of more than twice the mean the estimate counts only that much: each of the few of
 * a row that are 2300 cycles late adds more than half a cycle.
 */
#define ACCURACY_MEAN		500

/**
 * struct accuracy_plan - a row of expiries, each armed by the previous one's handler
 * @name:	for the reader
 * @flags:	APIC_TIMER_* bits of the timer
 * @spin_budget: of the timer
 * @near_ns:	shortest distance of an expiry from the start of the previous one
 * @far_ns:	longest; distances are random, uniformly distributed
 * @pause_ns:	not 0: before each expiry that counts there is one that does not,
 *		this long after the previous one
 * @warm_up:	number of expiries before those that count
 * @shots:	number that count
 */
struct accuracy_plan {
	const char *name;
	unsigned int flags;
	unsigned int spin_budget;
	u64 near_ns, far_ns, pause_ns;
	unsigned int warm_up, shots;
};

/**
 * struct accuracy_figures - summary of many errors, in TSC cycles
 * @n:		their number
 * @min:	of the signed errors
 * @p50:	median
 * @p99:	99 % do not exceed it
 * @p999:	99.9 % do not exceed it
 * @max:	of the signed errors
 * @mean:	in 1/100 cycle
 * @sd:		standard deviation, in 1/100 cycle
 */
struct accuracy_figures {
	unsigned int n;
	s64 min, p50, p99, p999, max;
	s64 mean, sd;
};

/**
 * struct accuracy_result - result of a row of expiries
 * @error:	TSC at the handler's first instruction - expires
 * @argument: the handler's argument - TSC at its first instruction
 */
struct accuracy_result {
	struct accuracy_figures error, argument;
};

int accuracy_init(struct kunit *test);
void accuracy_exit(struct kunit *test);
bool accuracy_virtual_time(void);
const char *accuracy_source(void);
void accuracy_seed(struct rnd_state *random);
unsigned int accuracy_cpu(void);
struct accuracy_plan accuracy_plan(const char *name, unsigned int flags);
void accuracy_need_mode(struct kunit *test, unsigned int flags);
struct accuracy_result accuracy_run(struct kunit *test,
				    const struct accuracy_plan *plan);
void accuracy_figures(s64 *errors, unsigned int n,
		      struct accuracy_figures *figures);
void accuracy_report(struct kunit *test, const char *name,
		     const struct accuracy_figures *figures);

/* A bound that must hold in virtual time; hardware has its own. */
#define ACCURACY_LE(test, left, right)					\
do {									\
	s64 _left = (left), _right = (right);				\
									\
	if (accuracy_virtual_time())					\
		KUNIT_EXPECT_LE_MSG(test, _left, _right,		\
				    #left " <= " #right);		\
} while (0)

#endif /* _APIC_TIMER_ACCURACY_H */
