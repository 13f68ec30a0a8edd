// SPDX-License-Identifier: GPL-2.0
/*
 * asleep HOW MS - wait for a moment MS ahead, and print the outcome.
 *
 * HOW: tsc, any (a sleep until a TSC value of this epoch, or of any), mono (until a moment of
 * CLOCK_MONOTONIC), spin (until a TSC value, by the library's wait alone), read, readany (the
 * file's timer, of this epoch or of any), poll (the same by epoll), uring (a command of an
 * io_uring, of this epoch), disarmed, over (like mono; then poll()'s result for a timer of this
 * epoch that was disarmed before, or whose expiry was read).
 * Prints "HOW RESULT EPOCH EARLY SOON": 0 or an error, the current epoch's number, whether the
 * moment was still ahead, and whether it was more than a second away by CLOCK_MONOTONIC, which
 * stands still while the machine sleeps and has no epochs.
 */
#include "errors.h"
#include "start.h"

#define NR_CLOCK_GETTIME	228
#define NR_EPOLL_WAIT		232
#define NR_EPOLL_CTL		233
#define NR_EPOLL_CREATE1	291
#define NR_URING_SETUP		425
#define NR_URING_ENTER		426
/* ns by which a clock that does not run on the TSC may be off. */
#define SLACK			1000000

static long map(long fd, long at)
{
	return at_syscall(AT_NR_MMAP, 0, 8192, 3 /* PROT_READ | PROT_WRITE */,
			  1 /* MAP_SHARED */, fd, at);
}

/* Return the result of a single command of an io_uring, or another error. */
static long by_uring(int fd, uint64_t when, uint32_t epoch)
{
	/* struct io_uring_params: 10 words, then the offsets of both rings, 10 words each */
	uint32_t parameters[30] = { 0 };
	struct apic_timer_uring *moment;
	volatile uint8_t *sq, *cq;
	uint8_t *entry;
	long ring, ret;

	ring = sys(NR_URING_SETUP, 1, parameters, 0, 0);
	if (ring < 0)
		return ring;
	sq = (volatile uint8_t *)map(ring, 0);
	cq = (volatile uint8_t *)map(ring, 0x8000000);
	entry = (uint8_t *)map(ring, 0x10000000);
	entry[0] = 46;			/* IORING_OP_URING_CMD */
	*(int32_t *)(entry + 4) = fd;
	*(uint32_t *)(entry + 8) = APIC_TIMER_URING_WAIT;
	moment = (struct apic_timer_uring *)(entry + 48);
	moment->expires = when;
	moment->clock = APIC_TIMER_CLOCK_TSC;
	moment->epoch = epoch;
	*(volatile uint32_t *)(sq + parameters[16]) = 0;	/* the only entry */
	*(volatile uint32_t *)(sq + parameters[11]) = 1;	/* tail */
	ret = sys(NR_URING_ENTER, ring, 1, 0, 0);
	if (ret < 0)
		return ret;
	while (*(volatile uint32_t *)(cq + parameters[21]) == 0) {	/* tail */
		ret = sys(NR_URING_ENTER, ring, 0, 1, 1 /* IORING_ENTER_GETEVENTS */);
		if (ret < 0 && ret != -EINTR)
			return ret;
	}
	return *(volatile int32_t *)(cq + parameters[25] + 8);
}

/* Wait until read() would return a result or fail. */
static long by_epoll(int fd)
{
	uint8_t event[12] = { 1 /* EPOLLIN */ };
	long poll, ret;

	poll = sys(NR_EPOLL_CREATE1, 0, 0, 0, 0);
	if (poll < 0)
		return poll;
	ret = sys(NR_EPOLL_CTL, poll, 1 /* EPOLL_CTL_ADD */, fd, event);
	while (!ret) {
		ret = sys(NR_EPOLL_WAIT, poll, event, 1, -1);
		if (ret == -EINTR)
			ret = 0;
	}
	return ret < 0 ? ret : 0;
}

/* Return the events of a timer of this epoch, after it was disarmed and the moment has passed. */
static long by_nothing(int fd, struct apic_timer_arm *arm, struct apic_timer_sleep *sleep)
{
	struct { int fd; short events, revents; } polled = { .fd = fd, .events = 1 /* POLLIN */ };
	uint64_t expired;
	long ret;

	ret = sys(AT_NR_IOCTL, fd, APIC_TIMER_ARM, arm, 0);
	if (ret)
		return ret;
	if (arm->expires == 1) {
		ret = sys(NR_READ, fd, &expired, sizeof(expired), 0);
		if (ret < 0)
			return ret;
	} else {
		arm->expires = 0;
		ret = sys(AT_NR_IOCTL, fd, APIC_TIMER_ARM, arm, 0);
		if (ret)
			return ret;
	}
	ret = sys(AT_NR_IOCTL, fd, APIC_TIMER_SLEEP, sleep, 0);
	if (ret)
		return ret;
	at_until(&(struct at) { .cost = 0 }, sleep->tsc);
	ret = sys(NR_POLL, &polled, 1, 0, 0);
	return ret < 0 ? ret : polled.revents;
}

/* Return: whether two waits without an interrupt took different times to their next instruction. */
static int differing_waits(void)
{
	uint32_t took, first = AT_INTERRUPTED;
	int i;

	for (i = 0; i < 1000; i++) {
		took = at_spin_cost(at_readtsc() + 100);
		if (took >= AT_INTERRUPTED)
			continue;
		if (first != AT_INTERRUPTED && took != first)
			return 1;
		first = took;
	}
	return 0;
}

int run(int argc, char **argv)
{
	struct apic_timer_sleep sleep = { .size = sizeof(sleep) };
	struct apic_timer_arm arm = { .size = sizeof(arm) };
	int reads, polls, of_epoch, mono, over, nothing;
	uint64_t when, ns, now, expired;
	struct { long s, ns; } time;
	struct at at;
	long ret;

	if (argc != 3)
		return 2;
	polls = equal(argv[1], "poll");
	reads = polls || equal(argv[1], "read") || equal(argv[1], "readany");
	of_epoch = !equal(argv[1], "any") && !equal(argv[1], "readany");
	over = equal(argv[1], "over");
	nothing = over || equal(argv[1], "disarmed");
	mono = nothing || equal(argv[1], "mono");
	ret = at_open(&at);
	if (ret)
		return 1;
	if (at.cost && differing_waits()) {
		say("a wait's way to its next instruction varies, and is taken off\n");
		return 1;
	}
	when = at_readtsc() + at_ns_to_tsc(&at, number(argv[2]) * 1000000);
	/* The kernel's clock may not run on the TSC. */
	sys(NR_CLOCK_GETTIME, 1 /* CLOCK_MONOTONIC */, &time, 0, 0);
	ns = (uint64_t)time.s * 1000000000 + (uint64_t)time.ns + number(argv[2]) * 1000000;
	sleep.expires = mono ? ns : when;
	sleep.clock = mono ? APIC_TIMER_CLOCK_MONOTONIC : APIC_TIMER_CLOCK_TSC;
	arm.expires = over ? 1 : when;
	sleep.epoch = of_epoch && !mono ? at.epoch : 0;
	arm.epoch = of_epoch ? at.epoch : 0;
	if (equal(argv[1], "uring")) {
		ret = by_uring(at.fd, when, at.epoch);
	} else if (equal(argv[1], "spin")) {
		at_until(&at, when);
	} else if (nothing) {
		ret = by_nothing(at.fd, &arm, &sleep);
	} else if (reads) {
		ret = sys(AT_NR_IOCTL, at.fd, APIC_TIMER_ARM, &arm, 0);
		if (!ret && polls)
			ret = by_epoll(at.fd);
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
	/* A timer shifted by a new epoch has another TSC value than it was armed for. */
	sys(NR_CLOCK_GETTIME, 1, &time, 0, 0);
	now = (uint64_t)time.s * 1000000000 + (uint64_t)time.ns;
	say_number(mono ? now < ns - SLACK : at.page->epoch == at.epoch && at_readtsc() < when);
	say(" ");
	say_number(now < ns - 1000000000);
	say("\n");
	return 0;
}
