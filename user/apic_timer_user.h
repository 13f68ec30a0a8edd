/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Let user programs act at a TSC value, with /dev/apic_timer.
 *
 *	struct at at;
 *
 *	if (at_open(&at) < 0) ...
 *	when = at_readtsc() + at_ns_to_tsc(&at, 250000);
 *	if (at_mdelay(&at, when) < 0) ...
 *	now();			starts at the TSC value "when", or some cycles later
 *
 * Header only, for x86; needs neither a library nor libc. Functions that return an int
 * return 0 or more, or a negative errno value; errno itself does not change. A struct at
 * belongs to one thread. A child of fork() may sleep, arm and close by it; it does not
 * inherit the time page, and opens its own for at_new_epoch() and conversions. The names
 * readtsc and mdelay come from the 1997 paper.
 *
 * Compile with -I for this file and for linux/apic_timer.h, which is in include/uapi
 * of apic-timer's sources.
 */
#ifndef APIC_TIMER_USER_H
#define APIC_TIMER_USER_H

#include <stddef.h>
#include <stdint.h>

#include <linux/apic_timer.h>

#define AT_DEVICE	"/dev/apic_timer"

/* A RDTSC this many TSC cycles after another one: something came between them. */
#define AT_INTERRUPTED	1000

/*
 * A TSC that is behind a former value by more than this has restarted. By less, the thread may
 * have moved to a CPU whose TSC is behind. A wait then ends this much later at most.
 */
#define AT_RESTARTED	0x1000000

/**
 * struct at - a thread's device
 * @fd:		open file of the device; poll() and read() it after at_arm()
 * @flags:	for each sleep, APIC_TIMER_SLEEP_*; 0 at first
 * @budget:	for each sleep, see struct apic_timer_sleep; 0 at first
 * @epoch:	epoch of the TSC that the thread's TSC values belong to
 * @cost:	number of TSC cycles that the way from the wait's last RDTSC to the next
 *		instruction certainly takes; 0 on a real CPU
 * @tpause:	the CPU has TPAUSE
 * @mapped:	memory that reads 1 where the page is mapped, 0 in a child of fork()
 * @page:	the time page
 * @began:	TSC right after the last call
 * @sleep:	the last call, as returned by the kernel
 */
struct at {
	int fd;
	uint32_t flags;
	uint32_t budget;
	uint32_t epoch;
	uint32_t cost;
	int tpause;
	uint32_t *mapped;
	const volatile struct apic_timer_page *page;
	uint64_t began;
	struct apic_timer_sleep sleep;
};

/*
 * State of a periodic thread: at_period_next() sleeps until @next and advances it by
 * @period.
 */
struct at_period {
	uint64_t next;
	uint64_t period;
};

#define at_inline	static inline __attribute__((always_inline, unused))

/* Read the TSC. The read is not ordered with the instructions around it. */
at_inline uint64_t at_readtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a" (low), "=d" (high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/*
 * System calls that are directly followed by RDTSC. Code that a C library runs
 * after a call would add to the error of a sleep.
 */
#ifdef __x86_64__
#define AT_NR_OPEN	2
#define AT_NR_CLOSE	3
#define AT_NR_MMAP	9
#define AT_NR_MUNMAP	11
#define AT_NR_IOCTL	16
#define AT_NR_MADVISE	28

at_inline long at_call(long nr, long a, long b, long c, long d, long e, long f,
		       uint64_t *tsc)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	uint64_t low, high;
	long ret;

	__asm__ volatile("syscall\n\tmov %%rax, %%rcx\n\trdtsc"
			 : "=a" (low), "=d" (high), "=c" (ret)
			 : "0" (nr), "D" (a), "S" (b), "1" (c), "r" (r10), "r" (r8), "r" (r9)
			 : "r11", "memory");
	*tsc = high << 32 | low;
	return ret;
}
#else
#define AT_NR_OPEN	5
#define AT_NR_CLOSE	6
#define AT_NR_MMAP	192	/* mmap2: the offset is in pages */
#define AT_NR_MUNMAP	91
#define AT_NR_IOCTL	54
#define AT_NR_MADVISE	219

at_inline long at_call(long nr, long a, long b, long c, long d, long e, long f,
		       uint64_t *tsc)
{
	long arguments[6] = { a, b, c, d, e, f };
	uint32_t low, high;
	long ret;

	__asm__ volatile("push %%ebx\n\tpush %%esi\n\tpush %%edi\n\tpush %%ebp\n\t"
			 "mov 0(%%ecx), %%ebx\n\tmov 8(%%ecx), %%edx\n\t"
			 "mov 12(%%ecx), %%esi\n\tmov 16(%%ecx), %%edi\n\t"
			 "mov 20(%%ecx), %%ebp\n\tmov 4(%%ecx), %%ecx\n\t"
			 "int $0x80\n\tmov %%eax, %%ecx\n\trdtsc\n\t"
			 "pop %%ebp\n\tpop %%edi\n\tpop %%esi\n\tpop %%ebx"
			 : "=a" (low), "=d" (high), "=c" (ret)
			 : "0" (nr), "2" (arguments)
			 : "memory");
	*tsc = (uint64_t)high << 32 | low;
	return ret;
}
#endif

at_inline long at_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	uint64_t tsc;

	return at_call(nr, a, b, c, d, e, f, &tsc);
}

/*
 * Wait until the TSC is @when or later, in the tightest loop. Returns the TSC as last read.
 *
 * The loop ends when the upper half of the distance from 2^32 cycles before @when is not 0,
 * so also when more than 2^32 cycles are left. That is all that it does about a TSC that
 * restarts: a further instruction would make each wait end later.
 */
at_inline uint64_t at_spin(uint64_t when)
{
	uint64_t from = when - (UINT64_C(1) << 32);
	uint32_t low, high;

	__asm__ volatile(".balign 32\n"
			 "1:\trdtsc\n\t"
			 "subl %k[low], %%eax\n\t"
			 "sbbl %k[high], %%edx\n\t"
			 "jz 1b"
			 : "=&a" (low), "=&d" (high)
			 : [low] "r" ((uint32_t)from), [high] "r" ((uint32_t)(from >> 32))
			 : "cc", "memory");
	return from + ((uint64_t)high << 32 | low);
}

/* Same as at_spin(). Returns how many cycles later the next RDTSC was. */
at_inline uint32_t at_spin_cost(uint64_t when)
{
	uint64_t from = when - (UINT64_C(1) << 32);
	uint32_t low, high, next;

	__asm__ volatile(".balign 32\n"
			 "1:\trdtsc\n\t"
			 "subl %k[low], %%eax\n\t"
			 "sbbl %k[high], %%edx\n\t"
			 "jz 1b\n\t"
			 "movl %%eax, %k[next]\n\t"
			 "rdtsc\n\t"
			 "subl %k[low], %%eax\n\t"
			 "subl %k[next], %%eax"
			 : "=&a" (low), "=&d" (high), [next] "=&r" (next)
			 : [low] "r" ((uint32_t)from), [high] "r" ((uint32_t)(from >> 32))
			 : "cc", "memory");
	return low;
}

/* Get CPUID's ECX: subleaf 0 of @leaf, 0 if the CPU does not have it. */
at_inline uint32_t at_cpuid_c(uint32_t leaf)
{
	uint32_t a = 0, b, c = 0, d;

	__asm__ volatile("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	if (a < leaf)
		return 0;
	a = leaf;
	c = 0;
	__asm__ volatile("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	return c;
}

at_inline int at_has_tpause(void)
{
	return at_cpuid_c(7) >> 5 & 1;
}

/*
 * Find out how this CPU waits: @tpause and @cost. No part of a measured time is
 * certain on a real CPU: it may be faster later, and then a wait would end early. Only an
 * emulator takes the same time whenever it is not interrupted. A fifth is left, because
 * here the last value read is copied before the next RDTSC.
 */
static inline void at_measure(struct at *at)
{
	uint32_t cost = 0, step = 0, measured, between;
	int certain = at_cpuid_c(1) >> 31 /* a hypervisor */, i;
	uint64_t first;

	for (i = 0; i < 200; i++) {
		measured = at_spin_cost(at_readtsc() + 100);
		first = at_readtsc();
		between = (uint32_t)(at_readtsc() - first);
		if (measured >= AT_INTERRUPTED || between >= AT_INTERRUPTED)
			continue;
		/* A TSC that counts in steps shows them in either. */
		if (cost && (measured != cost || between != step))
			certain = 0;
		cost = measured;
		step = between;
	}
	at->tpause = at_has_tpause();
	at->cost = certain ? cost - (cost + 4) / 5 : 0;
}

/*
 * Wait until the TSC is near @when. Returns 0 if the TSC restarts meanwhile, or has since it was
 * @then: the kernel may freeze the thread here, and put the machine to sleep.
 */
at_inline int at_approach(const struct at *at, uint64_t when, uint64_t then)
{
	uint64_t wake = when - 2000, now;

	then -= AT_RESTARTED;
	if (at->tpause) {
		/* The CPU's or the kernel's limit may end TPAUSE early. */
		while (now = at_readtsc(), (int64_t)(wake - now) > 0) {
			if (__builtin_expect((int64_t)(now - then) < 0, 0))
				return 0;
			__asm__ volatile(".byte 0x66, 0x0f, 0xae, 0xf1"
					 : : "c" (1), "a" ((uint32_t)wake),
					     "d" ((uint32_t)(wake >> 32)) : "cc", "memory");
		}
	}
	/* A PAUSE with its RDTSC takes up to 1,125 cycles: 180 of a slow core's clock. */
	while (now = at_readtsc(), (int64_t)(when - at->cost - now) > 2048) {
		if (__builtin_expect((int64_t)(now - then) < 0, 0))
			return 0;
		__asm__ volatile("pause" : : : "memory");
	}
	return 1;
}

/*
 * Wait for a TSC value without sleeping: the next instruction runs at that moment or later.
 * Returns the TSC as last read. If that is less than @when by more than @at->cost, the TSC has
 * restarted, and the wait has ended.
 */
at_inline uint64_t at_until(const struct at *at, uint64_t when)
{
	when = at_approach(at, when, at_readtsc()) ? when - at->cost : 0 /* has passed */;
	return at_spin(when);
}

/* Copy the time page, with consistent fields. */
static inline void at_page(const struct at *at, struct apic_timer_page *copy)
{
	const volatile struct apic_timer_page *page = at->page;
	uint32_t seq;

	do {
		while ((seq = page->seq) & 1)
			__asm__ volatile("pause" : : : "memory");
		copy->tsc_khz = page->tsc_khz;
		copy->epoch = page->epoch;
		copy->flags = page->flags;
		copy->mult = page->mult;
		copy->shift = page->shift;
		copy->tsc = page->tsc;
		copy->mono = page->mono;
		copy->mono_shifted = page->mono_shifted;
		copy->tai = page->tai;
		__asm__ volatile("" : : : "memory");	/* loads stay in order on x86 */
	} while (page->seq != seq);
}

/* Take over the present epoch after -ESTALE: TSC values of the previous epoch are invalid. */
static inline int at_new_epoch(struct at *at)
{
	uint32_t epoch = at->page->epoch;

	if (epoch == at->epoch)
		return 0;
	at->epoch = epoch;
	return 1;
}

/* Convert a distance in ns to TSC cycles, or back. Rounded down. */
static inline uint64_t at_ns_to_tsc(const struct at *at, uint64_t ns)
{
	uint64_t khz = at->page->tsc_khz;

	return ns / 1000000 * khz + ns % 1000000 * khz / 1000000;
}

static inline uint64_t at_tsc_to_ns(const struct at *at, uint64_t cycles)
{
	uint64_t khz = at->page->tsc_khz;

	return cycles / khz * 1000000 + cycles % khz * 1000000 / khz;
}

/*
 * Convert a TSC value to CLOCK_MONOTONIC of the initial time namespace, in ns. Returns 0
 * if the kernel's clocks do not run on the TSC: use clock_gettime() then. Returns 1 for a
 * value before that clock began.
 */
static inline uint64_t at_tsc_to_mono(const struct at *at, uint64_t tsc)
{
	struct apic_timer_page page;
	uint64_t cycles, low, high, mask;

	at_page(at, &page);
	if (!(page.flags & APIC_TIMER_TSC_IS_CLOCK))
		return 0;
	mask = (UINT64_C(1) << page.shift) - 1;
	if (tsc < page.tsc) {
		/*
		 * This result is also rounded down, because the part that is subtracted
		 * is rounded up.
		 */
		cycles = page.tsc - tsc;
		low = (cycles & 0xffffffff) * page.mult + mask - page.mono_shifted;
		high = (cycles >> 32) * page.mult;
		cycles = (low >> page.shift) + (high << (32 - page.shift));
		return cycles < page.mono ? page.mono - cycles : 1;
	}
	cycles = tsc - page.tsc;
	low = (cycles & 0xffffffff) * page.mult + page.mono_shifted;
	high = (cycles >> 32) * page.mult;
	return page.mono + (low >> page.shift) + (high << (32 - page.shift));
}

/*
 * Get the first TSC value at which CLOCK_MONOTONIC reads @ns, at the present rate; 0 as
 * above. Returns the largest value for a moment that the TSC does not reach, and 1 for a
 * moment before the TSC was 0.
 */
static inline uint64_t at_mono_to_tsc(const struct at *at, uint64_t ns)
{
	struct apic_timer_page page;
	uint64_t whole, rest;

	at_page(at, &page);
	if (!(page.flags & APIC_TIMER_TSC_IS_CLOCK))
		return 0;
	/* Divide in two steps: nanoseconds of some minutes, shifted, have more than 64 bits. */
	if (ns <= page.mono) {
		whole = (page.mono - ns) / page.mult;
		if (whole > page.tsc >> page.shift)
			return 1;
		whole = page.tsc - (whole << page.shift);
		rest = ((page.mono - ns) % page.mult << page.shift) + page.mono_shifted;
		rest /= page.mult;
		return whole > rest ? whole - rest : 1;
	}
	whole = (ns - page.mono) / page.mult;
	if (whole >= (UINT64_MAX - page.tsc) >> page.shift)
		return UINT64_MAX;
	whole = page.tsc + (whole << page.shift);
	rest = (ns - page.mono) % page.mult << page.shift;
	if (rest < page.mono_shifted)
		return whole - (page.mono_shifted - rest) / page.mult;
	return whole + (rest - page.mono_shifted + page.mult - 1) / page.mult;
}

static inline int at_query(const struct at *at, struct apic_timer_device *query)
{
	query->size = sizeof(*query);
	return at_syscall(AT_NR_IOCTL, at->fd, APIC_TIMER_QUERY, (long)query, 0, 0, 0);
}

/* Map 4,096 bytes of the device, or of memory: @fd -1. Returns its address, or an error. */
static inline long at_map(int fd, long protection, long flags)
{
	return at_syscall(AT_NR_MMAP, 0, 4096, protection, flags, fd, 0);
}

static inline int at_is_error(long ret)
{
	return ret < 0 && ret > -4096;
}

/* Do without the page: there is no at_new_epoch() and no conversion then. */
static inline void at_unmap(struct at *at)
{
	/* In a child of fork(), something else may have come to the page's address. */
	if (at->mapped && *at->mapped)
		at_syscall(AT_NR_MUNMAP, (long)at->page, 4096, 0, 0, 0, 0);
	if (at->mapped)
		at_syscall(AT_NR_MUNMAP, (long)at->mapped, 4096, 0, 0, 0, 0);
	at->page = NULL;
	at->mapped = NULL;
}

static inline void at_close(struct at *at)
{
	at_unmap(at);
	if (at->fd >= 0)
		at_syscall(AT_NR_CLOSE, at->fd, 0, 0, 0, 0, 0);
	at->fd = -1;
}

/*
 * Map the page, and the memory that tells a child of fork() from the process that has the page.
 * Process IDs may be the same: in PID namespaces, or after they have all been used.
 */
static inline int at_map_all(struct at *at)
{
	long ret = at_map(-1, 3 /* PROT_READ | PROT_WRITE */, 0x22 /* MAP_PRIVATE | _ANONYMOUS */);

	if (at_is_error(ret))
		return ret;
	at->mapped = (uint32_t *)ret;
	ret = at_syscall(AT_NR_MADVISE, ret, 4096, 18 /* MADV_WIPEONFORK */, 0, 0, 0);
	if (ret)
		return ret;
	ret = at_map(at->fd, 1 /* PROT_READ */, 1 /* MAP_SHARED */);
	if (at_is_error(ret))
		return ret;
	*at->mapped = 1;
	at->page = (const volatile struct apic_timer_page *)ret;
	return 0;
}

/* Open the device for this thread. -ENOENT: apic_timer_dev is not loaded; -EACCES, -EPERM. */
static inline int at_open(struct at *at)
{
	long ret;

	*at = (struct at) { .fd = -1 };
	ret = at_syscall(AT_NR_OPEN, (long)AT_DEVICE, 02000002 /* O_CLOEXEC | O_RDWR */,
			 0, 0, 0, 0);
	if (ret < 0)
		return ret;
	at->fd = ret;
	ret = at_map_all(at);
	if (ret) {
		at_close(at);
		return ret;
	}
	at->epoch = at->page->epoch;
	at_measure(at);
	return 0;
}

/* Make the call only: it returns some microseconds early. at->sleep.tsc is then the moment. */
at_inline int at_sleep(struct at *at, uint32_t clock, uint64_t expires)
{
	uint64_t tsc;
	int ret;

	at->sleep = (struct apic_timer_sleep) {
		.size = sizeof(at->sleep),
		.flags = at->flags,
		.expires = expires,
		.clock = clock,
		.epoch = clock == APIC_TIMER_CLOCK_TSC ? at->epoch : 0,
		.began = at->began,
		.budget = at->budget,
	};
	ret = at_call(AT_NR_IOCTL, at->fd, APIC_TIMER_SLEEP, (long)&at->sleep, 0, 0, 0, &tsc);
	at->began = ret ? 0 : tsc;
	return ret;
}

/*
 * Wait for the moment of the last sleep: the next instruction runs then, never earlier. Returns 0
 * if the TSC has restarted since the kernel returned @tsc, which is void then; only in the last
 * 2,048 cycles that goes unnoticed.
 */
at_inline int at_finish(const struct at *at)
{
	if (!at_approach(at, at->sleep.tsc, at->sleep.resumed))
		return 0;
	at_spin(at->sleep.tsc - at->cost);
	return 1;
}

/*
 * Repeat the last sleep: the kernel knows the moment's TSC value after a restart, or that there is
 * none. Not inlined, because registers for it would have to be restored after each wait.
 */
static __attribute__((noinline, cold, unused)) int at_sleep_again(struct at *at)
{
	int ret;

	do
		ret = at_sleep(at, at->sleep.clock, at->sleep.expires);
	while (!ret && !at_finish(at));
	return ret;
}

/*
 * Sleep until a moment of a clock in ns: APIC_TIMER_CLOCK_MONOTONIC, _TAI. The next instruction
 * runs then, never earlier. If the moment has passed, return at once. Errors: as for
 * APIC_TIMER_SLEEP, above all -EINTR, -EAGAIN and -EBUSY (the user's limits).
 */
at_inline int at_sleep_until(struct at *at, uint32_t clock, uint64_t ns)
{
	int ret = at_sleep(at, clock, ns);

	if (!ret && !at_finish(at))
		return at_sleep_again(at);
	return ret;
}

/*
 * Same as at_sleep_until(), for a TSC value. A further error: -ESTALE (call at_new_epoch() and
 * choose a new @when).
 */
at_inline int at_mdelay(struct at *at, uint64_t when)
{
	return at_sleep_until(at, APIC_TIMER_CLOCK_TSC, when);
}

/*
 * Sleep until the next moment of a periodic thread. Returns the number of moments that
 * had already passed and were skipped, 0 if the thread is in time, or an error as
 * at_mdelay(), which leaves @period as it was; -EINVAL if its period is 0.
 */
at_inline int at_period_next(struct at *at, struct at_period *period)
{
	uint64_t now = at_readtsc(), next = period->next, missed = 0;
	int ret;

	if (!period->period)
		return -22 /* EINVAL */;
	if (now > next && now - next >= period->period) {
		missed = (now - next) / period->period;
		next += missed * period->period;
	}
	ret = at_mdelay(at, next);
	if (ret)
		return ret;
	period->next = next + period->period;
	return missed < INT32_MAX ? (int)missed : INT32_MAX;
}

/* Arm the file's timer: at->fd then supports read() and poll() like a timerfd. 0 disarms. */
static inline int at_arm(struct at *at, uint32_t clock, uint64_t expires, uint64_t interval)
{
	struct apic_timer_arm arm = {
		.size = sizeof(arm),
		.expires = expires,
		.interval = interval,
		.clock = clock,
		.epoch = clock == APIC_TIMER_CLOCK_TSC ? at->epoch : 0,
	};

	return at_syscall(AT_NR_IOCTL, at->fd, APIC_TIMER_ARM, (long)&arm, 0, 0, 0);
}

#endif /* APIC_TIMER_USER_H */
