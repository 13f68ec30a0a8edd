// SPDX-License-Identifier: GPL-2.0
/*
 * event_loop [PERIOD_US [COUNT]] - a timer among other file descriptors.
 *
 * The device is polled like a timerfd; standard input ends the loop. The loop wakes
 * some microseconds late, because nothing waits for the exact moment on the TSC: work
 * that must happen at a moment belongs in a thread of its own, see pacing.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apic_timer_user.h"

int main(int argc, char **argv)
{
	unsigned long period_us = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
	unsigned long ticks = 0, overruns = 0;
	uint64_t period, expired;
	struct at at;
	int ret;

	ret = at_open(&at);
	if (ret) {
		fprintf(stderr, "%s: %s\n", AT_DEVICE, strerror(-ret));
		return 1;
	}
	period = at_ns_to_tsc(&at, period_us * 1000ULL);
	ret = at_arm(&at, APIC_TIMER_CLOCK_TSC, at_readtsc() + period, period);
	if (ret) {
		fprintf(stderr, "arm: %s\n", strerror(-ret));
		return 1;
	}
	while (ticks < count) {
		struct pollfd polled[] = {
			{ .fd = at.fd, .events = POLLIN },
			{ .fd = STDIN_FILENO, .events = POLLIN },
		};

		if (poll(polled, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			perror("poll");
			return 1;
		}
		if (polled[0].revents) {
			/* -ESTALE: the TSC has begun a new epoch, and the timer is void. */
			if (read(at.fd, &expired, sizeof(expired)) < 0) {
				perror("read");
				return 1;
			}
			ticks += expired;
			overruns += expired - 1;
		}
		if (polled[1].revents && getchar() == EOF)
			break;
	}
	printf("%lu periods of %lu us, %lu of them overrun\n", ticks, period_us, overruns);
	at_close(&at);
	return 0;
}
