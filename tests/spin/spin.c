// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the dispatch of an expiry on the current CPU: module/core/timers/dispatch.c itself,
 * which spins and calls, and calibrate.c, which measures the call. The handler's code and data are
 * in the caches or flushed from them, and are touched before the wait or not.
 *
 * Usage: spin [SHOTS]. Prints a table; all figures are TSC cycles. Fails when
 * a handler of mode exact has started early, any was passed a moment that was
 * yet to come, or a PAUSE may end after an expiry.
 */
#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hw/spin.h"
#include "kernel.h"
#include "lib/stats.h"
#include "table.h"
#include "timers/calibrate.h"
#include "timers/dispatch.h"
#include "user/tool/tsc.h"

bool has_waitpkg, has_hypervisor;

DEFINE_PER_CPU(struct apic_timer_stats, apic_timer_stats);

/* Nothing is programmed, so there is nothing to learn. */
void apic_timer_lead_learn(enum apic_timer_cpu_state state, u64 latency) {}
void apic_timer_lead_reset(void) {}
void apic_timer_lead_set_cost(u64 exact, u64 plain) {}

/* Distance of an expiry when its interrupt has arrived. */
#define AHEAD	3000
/* Number of expiries between runs of the watchdog. */
#define WATCH	1000

struct sample {
	s64 start;	/* first instruction of the handler - expiry */
	s64 data;	/* its data read - expiry */
	s64 now;	/* the handler's argument - its first instruction */
};

/* A separate page for each, so that no other access loads them. */
static u64 *cold;

u64 began, value, got;
void handler(unsigned long long now, unsigned long data);

enum touch { NOTHING, CODE, CODE_AND_DATA };

struct way {
	const char *name;
	bool exact;
	bool cool;
	enum touch touch;
};

/*
 * The module always touches both. This does not, for comparison; nothing is subtracted, because
 * the call differs from the measured one.
 */
static noinline struct sample shoot_by_hand(const struct way *way)
{
	void (*f)(unsigned long long now, unsigned long data) = handler;
	u64 expires, start;

	OPTIMIZER_HIDE_VAR(f);
	expires = apic_timer_tsc_now() + AHEAD;
	if (way->touch >= CODE)
		__builtin_prefetch((void *)f);
	start = apic_timer_spin(expires);
	f(start, (unsigned long)cold);
	return (struct sample) { began - expires, got - expires, start - began };
}

static struct sample shoot_by_module(const struct way *way, unsigned int i)
{
	struct apic_timer_dispatch expiry = {
		.function = handler,
		.data = (unsigned long)cold,
		.exact = way->exact,
	}, *hidden = &expiry;

	expiry.expires = apic_timer_tsc_now() + (way->exact ? AHEAD + i % 64 : 0);
	OPTIMIZER_HIDE_VAR(hidden);
	barrier();
	apic_timer_dispatch(hidden);
	barrier();
	return (struct sample) {
		began - expiry.expires, got - expiry.expires, expiry.start - began
	};
}

static struct sample measure_call(const struct way *way, unsigned int i)
{
	if (way->cool) {
		__builtin_ia32_clflush((void *)handler);
		__builtin_ia32_clflush((char *)handler + 64);
		__builtin_ia32_clflush((void *)cold);
	}
	__builtin_ia32_mfence();
	return way->touch == CODE_AND_DATA ? shoot_by_module(way, i) :
					     shoot_by_hand(way);
}

/* The loop of PAUSE of apic_timer_spin() at 140 + 40 core cycles, 800 MHz, and a TSC of 5 GHz */
static_assert(APIC_TIMER_SPIN_REST >= (140 + 40) * 5000 / 800);
/* The last loop compares 16 bits. */
static_assert(APIC_TIMER_SPIN_REST < 1 << 15);

/*
 * Measure how long PAUSE with RDTSC takes: the 99th percentile of 100, in the best of 100
 * rounds, because interruptions are not meant. Return: TSC cycles.
 */
static long long longest_pause(void)
{
	long long took[100], least = S64_MAX;
	unsigned int run, i;
	u64 start;

	for (run = 0; run < 100; run++) {
		for (i = 0; i < 100; i++) {
			start = rdtsc();
			cpu_relax();
			took[i] = rdtsc() - start;
		}
		qsort(took, 100, sizeof(took[0]), table_compare);
		least = min(least, took[98]);
	}
	return least;
}

/* Return: the number that were early, or got a moment in the future. */
static long row(const struct way *way, long shots, s64 *start, s64 *data)
{
	long i, wrong = 0;
	char text[64];

	for (i = 0; i < shots; i++) {
		struct sample sample = measure_call(way, i);

		start[i] = sample.start;
		data[i] = sample.data;
		wrong += (way->exact && sample.start < 0) || sample.now > 0;
		if (i % WATCH == WATCH - 1)
			apic_timer_calibrate_watch();
	}
	snprintf(text, sizeof(text), "%s: handler starts", way->name);
	table_row(text, start, shots);
	snprintf(text, sizeof(text), "%s: has read its data", way->name);
	table_row(text, data, shots);
	return wrong;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{ "warm", true, false, CODE_AND_DATA },
		{ "cold", true, true, NOTHING },
		{ "cold, code touched", true, true, CODE },
		{ "cold, code and data touched", true, true, CODE_AND_DATA },
		{ "warm, no wait", false, false, CODE_AND_DATA },
	};
	const struct apic_timer_dispatch_cost *cost = &apic_timer_dispatch_cost;
	long shots = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
	unsigned int eax, ebx, ecx, edx, cpu, i;
	long wrong = 0, seen;
	long long pause;
	cpu_set_t set;
	s64 *start, *data;

	if (shots < 100) {
		fprintf(stderr, "usage: %s [SHOTS], 100 at least\n", argv[0]);
		return 2;
	}
	start = calloc(shots, sizeof(*start));
	data = calloc(shots, sizeof(*data));
	cold = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!start || !data || cold == MAP_FAILED) {
		fprintf(stderr, "%s: no memory for %ld expiries\n", argv[0], shots);
		return 1;
	}
	if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
		has_waitpkg = ecx >> 5 & 1;
	if (__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		has_hypervisor = ecx >> 31;
	/* One TSC, one cache. */
	getcpu(&cpu, NULL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "%s: cannot stay on CPU %u: %s\n", argv[0], cpu,
			strerror(errno));
		return 1;
	}

	apic_timer_dispatch_init();
	apic_timer_calibrate();
	pause = longest_pause();
	printf("longest PAUSE: %lld; it ends at least %d before the expiry\n", pause,
	       APIC_TIMER_SPIN_REST);
	printf("TPAUSE: %s; step of the TSC: %u; what two reads of it take varies by %llu\n"
	       "from the last look at the TSC to the handler at least: %llu after a wait, %llu without\n"
	       "taken off for that: %llu after a wait, %llu without\n\n",
	       has_waitpkg ? "yes" : "no", tsc_step_measure().step, cost->steps,
	       cost->calls[APIC_TIMER_DISPATCH_WAIT].least,
	       cost->calls[APIC_TIMER_DISPATCH_AT_ONCE].least,
	       cost->call[APIC_TIMER_DISPATCH_WAIT],
	       cost->call[APIC_TIMER_DISPATCH_AT_ONCE]);
	table_head("TSC cycles after the expiry");
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		wrong += row(&ways[i], shots, start, data);

	seen = apic_timer_stats.count[APIC_TIMER_STAT_EARLY_SEEN];
	printf("\nearly, or passed a moment yet to come: %ld; seen by the watchdog: %ld\n",
	       wrong, seen);
	return wrong || seen || pause > APIC_TIMER_SPIN_REST;
}
