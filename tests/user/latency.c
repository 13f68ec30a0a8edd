// SPDX-License-Identifier: GPL-2.0
/*
 * latency HOW COUNT MIN MAX SEED [WARM-UP] - measure how late a thread runs.
 *
 * Sleeps COUNT times until a moment MIN to MAX ns ahead, and records the TSC at its first
 * instruction after the moment, minus the desired one. If MIN and MAX are the same, all moments are
 * multiples of that, and several such threads want to run at a time. Standard output gets the
 * differences as s64, in TSC cycles; file descriptor 3, if open, the cycles waited on the TSC each
 * time.
 *
 * HOW: device (the library finishes), nofence, kernel (the kernel finishes), monotonic
 * (the device, a moment of that clock); nanosleep, timerfd (both absolute), sleepspin
 * (clock_nanosleep until LEAD before, then a loop), spin (the loop alone).
 */
#include "start.h"

#define MAX_COUNT	200000
#define LEAD		12000ULL	/* ns; longer than any wake-up under hackbench */

static int64_t errors[MAX_COUNT];
static uint64_t waits[MAX_COUNT];
static uint64_t state;

static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

struct spec {
	long s, ns;
};

static struct spec spec_of(uint64_t ns)
{
	return (struct spec) { (long)(ns / 1000000000), (long)(ns % 1000000000) };
}

/* Sleep until a time of the kernel's clock. */
static long sleep_by_clock(uint64_t ns, uint64_t *tsc)
{
	struct spec spec = spec_of(ns);

	return at_call(NR_CLOCK_NANOSLEEP, 1 /* CLOCK_MONOTONIC */, 1 /* TIMER_ABSTIME */,
		       (long)&spec, 0, 0, 0, tsc);
}

static long sleep_by_timerfd(int fd, uint64_t ns, uint64_t *tsc)
{
	struct spec setting[2] = { { 0, 0 }, spec_of(ns) };
	uint64_t count;
	long ret = sys(NR_TIMERFD_SETTIME, fd, 1 /* TFD_TIMER_ABSTIME */, setting, 0);

	if (ret < 0)
		return ret;
	ret = at_call(NR_READ, fd, (long)&count, sizeof(count), 0, 0, 0, tsc);
	return ret < 0 ? ret : 0;
}

static int fail(const char *what, long error)
{
	sys(NR_WRITE, 2, what, equal(what, "open") ? 4 : 5, 0);
	return error < 0 ? (int)-error : 1;
}

static void put(int fd, const void *data, size_t size)
{
	const char *from = data;
	long done;

	while (size && (done = sys(NR_WRITE, fd, from, size, 0)) > 0) {
		from += done;
		size -= (size_t)done;
	}
}

int run(int argc, char **argv)
{
	int device, clock, timer, hand, spin, fd = -1, priority = 95;
	uint64_t count, low, high, warm, i, tsc, when, from, ns;
	struct at at;
	long ret;

	if (argc < 6)
		return 2;
	count = number(argv[2]);
	low = number(argv[3]);
	high = number(argv[4]);
	state = 88172645463325252ULL ^ number(argv[5]) * 0x9E3779B97F4A7C15ULL;
	warm = argc > 6 ? number(argv[6]) : 0;
	if (count > MAX_COUNT || high < low || !high)
		return 2;

	device = equal(argv[1], "device") || equal(argv[1], "nofence") ||
		 equal(argv[1], "kernel") || equal(argv[1], "monotonic");
	clock = equal(argv[1], "nanosleep");
	timer = equal(argv[1], "timerfd");
	hand = equal(argv[1], "sleepspin");
	spin = equal(argv[1], "spin");
	if (!(device || clock || timer || hand || spin))
		return 2;

	sys(NR_MLOCKALL, 3 /* MCL_CURRENT | MCL_FUTURE */, 0, 0, 0);
	sys(NR_PRCTL, 29 /* PR_SET_TIMERSLACK */, 1, 0, 0);
	ret = sys(NR_SCHED_SETSCHEDULER, 0, 1 /* SCHED_FIFO */, &priority, 0);
	if (ret)
		return fail("sched", ret);
	ret = at_open(&at);
	if (ret)
		return fail("open", ret);
	if (equal(argv[1], "nofence"))
		at.flags = APIC_TIMER_SLEEP_NO_FENCE;
	if (equal(argv[1], "kernel"))
		at.flags = APIC_TIMER_SLEEP_KERNEL_FINISH;
	if (timer)
		fd = (int)sys(NR_TIMERFD_CREATE, 1 /* CLOCK_MONOTONIC */, 0, 0, 0);

	for (i = 0; i < warm + count; i++) {
		ns = low + (high > low ? random_number() % (high - low) : 0);
		from = at_readtsc();
		when = from + at_ns_to_tsc(&at, ns);
		if (high == low)
			when -= when % at_ns_to_tsc(&at, ns);
		ret = 0;
		if (equal(argv[1], "monotonic")) {
			ns = at_tsc_to_mono(&at, when);
			ret = at_sleep(&at, APIC_TIMER_CLOCK_MONOTONIC, ns);
			from = at.began;
			at_until(&at, at.sleep.tsc);
			tsc = at_readtsc();
			/* The clock is coarser than the TSC. */
			when = at.sleep.tsc;
		} else if (at.flags & APIC_TIMER_SLEEP_KERNEL_FINISH) {
			ret = at_sleep(&at, APIC_TIMER_CLOCK_TSC, when);
			tsc = at.began;
			from = at.sleep.resumed;
		} else if (device) {
			ret = at_sleep(&at, APIC_TIMER_CLOCK_TSC, when);
			from = at.began;
			at_until(&at, when);
			tsc = at_readtsc();
		} else if (clock) {
			ret = sleep_by_clock(at_tsc_to_mono(&at, when), &tsc);
			from = tsc;
		} else if (timer) {
			ret = sleep_by_timerfd(fd, at_tsc_to_mono(&at, when), &tsc);
			from = tsc;
		} else {
			if (hand)
				ret = sleep_by_clock(at_tsc_to_mono(&at, when) - LEAD, &from);
			at_until(&at, when);
			tsc = at_readtsc();
		}
		if (ret)
			return fail("sleep", ret);
		if (i >= warm) {
			errors[i - warm] = (int64_t)(tsc - when);
			waits[i - warm] = from < when ? when - from : 0;
		}
	}
	put(1, errors, count * sizeof(errors[0]));
	put(3, waits, count * sizeof(waits[0]));
	return 0;
}
