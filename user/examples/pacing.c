// SPDX-License-Identifier: GPL-2.0
/*
 * pacing [PERIOD_US [COUNT]] - a periodic thread, and how late it was.
 *
 * A sender of packets or a control loop works like this: real-time priority, memory
 * locked, and moments that are computed one after the other instead of added up from
 * sleeps.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "apic_timer_user.h"

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 80 };
	unsigned long period_us = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	uint64_t worst = 0, sum = 0, waited = 0, late;
	struct at_period period;
	unsigned long i, missed = 0;
	struct at at;
	int ret;

	if (!period_us || !count) {
		fprintf(stderr, "usage: pacing [PERIOD_US [COUNT]]\n");
		return 2;
	}
	ret = at_open(&at);
	if (ret) {
		fprintf(stderr, "%s: %s\n", AT_DEVICE, strerror(-ret));
		return 1;
	}
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		perror("mlockall");
	/* Without this, the wake-up waits for other threads, and there is no fence. */
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		perror("SCHED_FIFO");

	period.period = at_ns_to_tsc(&at, period_us * 1000ULL);
	period.next = at_readtsc() + period.period;
	for (i = 0; i < count; i++) {
		ret = at_period_next(&at, &period);
		late = at_readtsc() - at.sleep.tsc;
		if (ret == -EINTR)
			continue;
		if (ret == -ESTALE) {
			/* The machine slept: start again. */
			at_new_epoch(&at);
			period.next = at_readtsc() + period.period;
			continue;
		}
		if (ret < 0) {
			fprintf(stderr, "sleep: %s\n", strerror(-ret));
			return 1;
		}
		missed += ret;
		sum += late;
		if (late > worst)
			worst = late;
		if (at.sleep.tsc > at.sleep.resumed)
			waited += at.sleep.tsc - at.sleep.resumed;
		/* A packet would be sent here. */
	}
	printf("%lu periods of %lu us: late by %llu ns on average, %llu at most; %lu missed; "
	       "waited %llu ns each\n", count, period_us,
	       (unsigned long long)at_tsc_to_ns(&at, sum / count),
	       (unsigned long long)at_tsc_to_ns(&at, worst), missed,
	       (unsigned long long)at_tsc_to_ns(&at, waited / count));
	at_close(&at);
	return 0;
}
