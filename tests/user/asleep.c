// SPDX-License-Identifier: GPL-2.0
/*
 * asleep HOW MS - wait for a moment MS ahead, and say how that ended.
 *
 * HOW: tsc, any (a sleep until a TSC value of this epoch, or of whichever), mono (until a
 * moment of CLOCK_MONOTONIC), read, readany (the file's timer, of this epoch or of
 * whichever). Says "HOW RESULT EPOCH EARLY": 0 or an error, the epoch's number now, and
 * whether the moment had not come yet.
 */
#include "start.h"

#define NR_CLOCK_GETTIME	228
/* ns that a clock which does not run on the TSC may be off. */
#define SLACK			1000000

int run(int argc, char **argv)
{
	struct apic_timer_sleep sleep = { .size = sizeof(sleep) };
	struct apic_timer_arm arm = { .size = sizeof(arm) };
	int reads, of_epoch, mono;
	uint64_t when, ns, expired;
	struct { long s, ns; } time;
	struct at at;
	long ret;

	if (argc != 3)
		return 2;
	reads = equal(argv[1], "read") || equal(argv[1], "readany");
	of_epoch = equal(argv[1], "tsc") || equal(argv[1], "read");
	mono = equal(argv[1], "mono");
	ret = at_open(&at);
	if (ret)
		return 1;
	when = at_readtsc() + at_ns_to_tsc(&at, number(argv[2]) * 1000000);
	/* The TSC may not be what the kernel's clock runs on. */
	sys(NR_CLOCK_GETTIME, 1 /* CLOCK_MONOTONIC */, &time, 0, 0);
	ns = (uint64_t)time.s * 1000000000 + (uint64_t)time.ns + number(argv[2]) * 1000000;
	sleep.expires = mono ? ns : when;
	sleep.clock = mono ? APIC_TIMER_CLOCK_MONOTONIC : APIC_TIMER_CLOCK_TSC;
	arm.expires = when;
	sleep.epoch = of_epoch ? at.epoch : 0;
	arm.epoch = sleep.epoch;
	if (reads) {
		ret = sys(AT_NR_IOCTL, at.fd, APIC_TIMER_ARM, &arm, 0);
		if (!ret)
			ret = sys(NR_READ, at.fd, &expired, sizeof(expired), 0);
		ret = ret == (long)sizeof(expired) ? 0 : ret;
	} else {
		ret = sys(AT_NR_IOCTL, at.fd, APIC_TIMER_SLEEP, &sleep, 0);
		if (!ret)
			at_until(&at, sleep.tsc);
	}
	say(argv[1]);
	say(" ");
	say_number(ret);
	say(" ");
	say_number((long)at.page->epoch);
	say(" ");
	/* A timer that a new epoch has moved has another TSC value than it was armed for. */
	sys(NR_CLOCK_GETTIME, 1, &time, 0, 0);
	say_number(mono ? (uint64_t)time.s * 1000000000 + (uint64_t)time.ns < ns - SLACK :
		   at.page->epoch == at.epoch && at_readtsc() < when);
	say("\n");
	return 0;
}
