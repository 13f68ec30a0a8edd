// SPDX-License-Identifier: GPL-2.0
/*
 * The last stretch of a shot of mode exact, on the CPU that this runs on: the
 * wait of module/spin.h and the call of a handler, whose code and data are in
 * the caches or have been thrown out of them, and are touched before the wait
 * or not.
 *
 * Usage: spin [SHOTS]. Prints a table; all figures are TSC cycles.
 */
#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernel.h"
#include "spin.h"

bool has_waitpkg;

/* How far ahead a shot is when its interrupt has come. */
#define AHEAD	3000

struct sample {
	s64 start;	/* first instruction of the handler - expiry */
	s64 data;	/* its data read - expiry */
};

/* A page of its own for each: nothing else brings them in. */
static struct {
	u64 expires;
	struct sample sample;
} *cold;

static u64 began, got;

static noinline __aligned(4096) __section(".text.handler") void
handler(u64 now, unsigned long data)
{
	u64 value;

	began = apic_timer_tsc_now();
	value = READ_ONCE(*(u64 *)data);
	asm volatile("" : : "r" (value) : "memory");
	got = apic_timer_tsc_now();
}

static void (*function)(u64 now, unsigned long data) = handler;

enum touch { NOTHING, CODE, CODE_AND_DATA };

static struct sample shoot(u64 call, bool cool, enum touch touch)
{
	void (*f)(u64 now, unsigned long data) = READ_ONCE(function);
	u64 expires, start;

	if (cool) {
		__builtin_ia32_clflush((void *)f);
		__builtin_ia32_clflush((char *)f + 64);
		__builtin_ia32_clflush((void *)cold);
	}
	__builtin_ia32_mfence();

	expires = apic_timer_tsc_now() + AHEAD;
	if (touch >= CODE)
		__builtin_prefetch((void *)f);
	if (touch >= CODE_AND_DATA)
		__builtin_prefetch((void *)cold);
	start = apic_timer_spin(expires - call) + call;
	f(start, (unsigned long)cold);
	return (struct sample) { began - expires, got - expires };
}

static int compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, s64 *errors, long shots)
{
	qsort(errors, shots, sizeof(*errors), compare);
	printf("%-46s %7ld %7ld %7ld %9ld\n", name, (long)errors[0],
	       (long)errors[shots / 2], (long)errors[shots - 1 - shots / 100],
	       (long)errors[shots - 1]);
}

static void row(const char *name, u64 call, long shots, bool cool,
		enum touch touch, s64 *start, s64 *data)
{
	char text[64];
	long i;

	for (i = 0; i < shots; i++) {
		struct sample sample = shoot(call, cool, touch);

		start[i] = sample.start;
		data[i] = sample.data;
	}
	snprintf(text, sizeof(text), "%s: handler starts", name);
	print(text, start, shots);
	snprintf(text, sizeof(text), "%s: has read its data", name);
	print(text, data, shots);
}

#define ROUNDS	32

/* As apic_timer_dispatch_measure() does. */
static u64 measure_call(void)
{
	s64 took[ROUNDS];
	s64 least, spread;
	int i;

	for (i = 0; i < ROUNDS; i++)
		took[i] = shoot(0, 0, NOTHING).start;
	qsort(took, ROUNDS, sizeof(*took), compare);
	least = took[0];
	spread = took[ROUNDS / 2] - least;
	return least - (spread < least / 2 ? spread : least / 2);
}

int main(int argc, char **argv)
{
	long shots = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
	unsigned int eax, ebx, ecx, edx, cpu;
	cpu_set_t set;
	s64 *start, *data;
	u64 call;

	if (shots < 100) {
		fprintf(stderr, "usage: %s [SHOTS], 100 at least\n", argv[0]);
		return 2;
	}
	start = calloc(shots, sizeof(*start));
	data = calloc(shots, sizeof(*data));
	cold = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!start || !data || cold == MAP_FAILED) {
		fprintf(stderr, "%s: no memory for %ld shots\n", argv[0], shots);
		return 1;
	}
	if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
		has_waitpkg = ecx >> 5 & 1;
	/* One TSC, one cache. */
	getcpu(&cpu, NULL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);

	call = measure_call();
	printf("TPAUSE: %s; from the last look at the TSC to the handler: %lu\n\n",
	       has_waitpkg ? "yes" : "no", (unsigned long)call);
	printf("%-46s %7s %7s %7s %9s\n", "TSC cycles after the expiry", "min",
	       "p50", "p99", "max");
	row("warm", call, shots, 0, NOTHING, start, data);
	row("cold", call, shots, 1, NOTHING, start, data);
	row("cold, code touched", call, shots, 1, CODE, start, data);
	row("cold, code and data touched", call, shots, 1, CODE_AND_DATA,
	    start, data);
	return 0;
}
