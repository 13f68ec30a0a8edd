// SPDX-License-Identifier: GPL-2.0
/*
 * hostile HOW MS - measure a thread's and a softirq's share of a CPU while others use
 * /dev/apic_timer as hard as permitted.
 *
 * Works for MS, then sends itself packets for MS, which a softirq delivers. Prints "HOW SHARE
 * PACKETS": thousandths of the first period that the thread had, and packets that arrived in the
 * second. The same CPU, meanwhile:
 *
 *	alone	nothing
 *	timers	nearly all timers that a user may have, each with the shortest interval
 *	moment	as many at a time, all for one moment, again and again
 *	readers	one with the shortest interval, and many processes that read it
 *	sleeps	four threads sleep for as short as they can, with the longest budget, which
 *		the kernel waits for
 *	fences	one of SCHED_FIFO does so, whose sleeps keep the kernel's events away
 *	reopens	one sleeps as often as it can, and opens the device again once that is refused
 *	windows	a calendar of functions, as many windows as a table may have, and as short
 */
#include "apic_calendar_user.h"
#include "errors.h"
#include "start.h"

#define NR_FORK			57
#define NR_WAIT4		61
#define NR_KILL			62
#define NR_NANOSLEEP		35
#define NR_SOCKET		41
#define NR_SENDTO		44
#define NR_BIND			49
#define NR_PRCTL		157
#define TIMERS			250
#define READERS			100
#define MS			1000000ULL	/* TSC cycles in virtual time */
/* A longer distance between two reads of the TSC was used by others. */
#define OWN			200

struct shared {
	volatile uint32_t ready;
};

static struct shared *shared;

static void pause_us(long us)
{
	long spec[2] = { 0, us * 1000 };

	sys(NR_NANOSLEEP, spec, 0, 0, 0);
}

static int open_device(void)
{
	return (int)sys(AT_NR_OPEN, AT_DEVICE, 2 /* O_RDWR */, 0, 0);
}

static void arm(int fd, uint64_t when, uint64_t interval)
{
	struct apic_timer_arm a = {
		.size = sizeof(a), .expires = when, .interval = interval,
	};

	while (sys(AT_NR_IOCTL, fd, APIC_TIMER_ARM, &a, 0) == -EAGAIN)
		pause_us(100);
}

static void timers(int again)
{
	static int files[TIMERS];
	uint64_t when;
	int i;

	for (i = 0; i < TIMERS; i++)
		files[i] = open_device();
	for (;;) {
		/* Arming all of them takes that long: each takes a token. */
		when = at_readtsc() + 20 * MS;
		for (i = 0; i < TIMERS; i++)
			arm(files[i], when, again ? 0 : 1);
		shared->ready = 1;
		while (!again || at_readtsc() < when)
			pause_us(1000);
	}
}

static void readers(void)
{
	int fd = open_device(), i;
	uint64_t count;

	for (i = 0; i < READERS; i++) {
		if (sys(NR_FORK, 0, 0, 0, 0))
			continue;
		sys(NR_PRCTL, 1 /* PR_SET_PDEATHSIG */, 9, 0, 0);
		for (;;)
			sys(NR_READ, fd, &count, sizeof(count), 0);
	}
	arm(fd, at_readtsc() + 20 * MS, 1);
	shared->ready = 1;
	while (shared->ready)
		pause_us(1000);
	/* Readers woken by a signal stay queued until they have run. */
	arm(fd, 0, 0);
	for (;;)
		pause_us(100000);
}

static void sleeps(int priority)
{
	struct apic_timer_device query = {
		.size = sizeof(query), .cpu = APIC_TIMER_CPU_THIS,
	};
	struct apic_timer_sleep a;
	int fd = open_device();

	if (priority)
		sys(NR_SCHED_SETSCHEDULER, 0, 1 /* SCHED_FIFO */, &priority, 0);
	sys(AT_NR_IOCTL, fd, APIC_TIMER_QUERY, &query, 0);
	__atomic_fetch_add(&shared->ready, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		a = (struct apic_timer_sleep) {
			.size = sizeof(a),
			.flags = APIC_TIMER_SLEEP_KERNEL_FINISH,
			.expires = at_readtsc() + query.budget_max + 10000,
			.budget = query.budget_max,
		};
		sys(AT_NR_IOCTL, fd, APIC_TIMER_SLEEP, &a, 0);
	}
}

static void reopens(void)
{
	struct apic_timer_sleep a;
	int fd;

	shared->ready = 1;
	for (;;) {
		fd = open_device();
		do {
			a = (struct apic_timer_sleep) {
				.size = sizeof(a), .expires = at_readtsc() + 3000, .budget = 1,
			};
		} while (sys(AT_NR_IOCTL, fd, APIC_TIMER_SLEEP, &a, 0) != -EAGAIN);
		sys(AT_NR_CLOSE, fd, 0, 0, 0);
		pause_us(100);
	}
}

static void windows(void)
{
	static struct apic_calendar_entry entries[12];
	struct apic_calendar_unit unit = {
		.name = "a", .function = "step", .kind = APIC_CALENDAR_FUNCTION,
	};
	struct apic_calendar_load load = {
		.size = sizeof(load), .major = 100000, .units = (uintptr_t)&unit,
		.entries = (uintptr_t)entries, .n_units = 1, .n_entries = 12,
	};
	struct apic_calendar_start start = { .size = sizeof(start) };
	static struct at_calendar calendar;
	uint64_t i;

	/* 90 % of a CPU, including the gaps. */
	for (i = 0; i < 12; i++)
		entries[i] = (struct apic_calendar_entry) { .offset = 7000 * i, .budget = 5000 };
	if (at_calendar_open(&calendar) ||
	    at_calendar_call(&calendar, APIC_CALENDAR_LOAD, &load) ||
	    at_calendar_call(&calendar, APIC_CALENDAR_START, &start))
		sys(NR_EXIT, 1, 0, 0, 0);
	shared->ready++;
	for (;;)
		pause_us(100000);
}

static uint64_t own_time(uint64_t until)
{
	uint64_t last = at_readtsc(), now, own = 0;

	for (; last < until; last = now) {
		now = at_readtsc();
		if (now - last < OWN)
			own += now - last;
	}
	return own;
}

static long packets(uint64_t until)
{
	uint8_t address[16] = { 2 /* AF_INET */, 0, 0x40, 0, 127, 0, 0, 1 }, data[16] = { 0 };
	int fd = (int)sys(NR_SOCKET, 2, 2 /* SOCK_DGRAM */, 0, 0);
	long count = 0;

	if (fd < 0 || sys(NR_BIND, fd, address, sizeof(address), 0))
		return -1;
	while (at_readtsc() < until) {
		if (at_syscall(NR_SENDTO, fd, (long)data, sizeof(data), 0, (long)address,
			       sizeof(address)) < 0)
			return -1;
		if (sys(NR_READ, fd, data, sizeof(data), 0) != (long)sizeof(data))
			return -1;
		count++;
	}
	return count;
}

int run(int argc, char **argv)
{
	uint32_t children = 0, i;
	uint64_t ms, own, now;
	long pids[4], ret;

	if (argc != 3)
		return 2;
	ms = number(argv[2]);
	ret = at_syscall(AT_NR_MMAP, 0, 4096, 3 /* PROT_READ | PROT_WRITE */,
			 0x21 /* MAP_SHARED | MAP_ANONYMOUS */, -1, 0);
	if (ret < 0 && ret > -4096)
		return 1;
	shared = (struct shared *)ret;
	if (equal(argv[1], "sleeps"))
		children = 4;
	else if (!equal(argv[1], "alone"))
		children = 1;
	for (i = 0; i < children; i++) {
		pids[i] = sys(NR_FORK, 0, 0, 0, 0);
		if (pids[i])
			continue;
		if (equal(argv[1], "sleeps") || equal(argv[1], "fences"))
			sleeps(equal(argv[1], "fences") ? 50 : 0);
		if (equal(argv[1], "windows"))
			windows();
		if (equal(argv[1], "reopens"))
			reopens();
		if (equal(argv[1], "readers"))
			readers();
		timers(equal(argv[1], "moment"));
	}
	while (shared->ready < children)
		pause_us(1000);
	pause_us(30000);

	now = at_readtsc();
	own = own_time(now + ms * MS);
	ret = packets(at_readtsc() + ms * MS);
	shared->ready = 0;
	pause_us(10000);
	for (i = 0; i < children; i++) {
		sys(NR_KILL, pids[i], 9, 0, 0);
		sys(NR_WAIT4, pids[i], 0, 0, 0);
	}
	say(argv[1]);
	say(" ");
	say_number((long)(own / (ms * MS / 1000)));
	say(" ");
	say_number(ret);
	say("\n");
	return ret < 0;
}
