// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer clocks: the cost of each clock, the steps in which it counts, and
 * how far the TSCs of CPUs are apart.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "files.h"
#include "json.h"
#include "say.h"
#include "skew.h"
#include "tsc.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define READS	16	/* in a row, for the cost */
#define REPEATS	400

static const char *cpus;
static long rounds = 3000;

static const struct opt options[] = {
	OPT_TEXT('c', "cpus", "LIST",
		 "CPUs whose TSCs to compare with the first one's (all)", &cpus),
	OPT_NUMBER('n', "rounds", "N", 100, 1000000, "round trips per pair of CPUs and role (3000)",
		   &rounds),
	{}
};

static uint64_t by_rdtsc(int id)
{
	(void)id;
	return tsc_read();
}

static uint64_t by_fenced(int id)
{
	(void)id;
	return tsc_read_ordered();
}

static uint64_t by_rdtscp(int id)
{
	uint32_t low, high;

	(void)id;
	asm volatile("rdtscp" : "=a" (low), "=d" (high) :: "ecx", "memory");
	return (uint64_t)high << 32 | low;
}

static uint64_t by_vdso(int id)
{
	struct timespec now = {};

	clock_gettime(id, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static uint64_t by_call(int id)
{
	struct timespec now = {};

	syscall(SYS_clock_gettime, id, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static uint64_t no_clock(int id)
{
	(void)id;
	return syscall(SYS_getppid);
}

static const struct clock {
	const char *name, *unit;
	uint64_t (*read)(int id);
	int id;
	bool steps;	/* the step is that of tsc_step_measure() */
} clocks[] = {
	{ "rdtsc", "cycles", by_rdtsc, 0, true },
	{ "lfence; rdtsc", "cycles", by_fenced, 0, true },
	{ "rdtscp", "cycles", by_rdtscp, 0, true },
	{ "MONOTONIC", "ns", by_vdso, CLOCK_MONOTONIC, false },
	{ "MONOTONIC_RAW", "ns", by_vdso, CLOCK_MONOTONIC_RAW, false },
	{ "REALTIME", "ns", by_vdso, CLOCK_REALTIME, false },
	{ "BOOTTIME", "ns", by_vdso, CLOCK_BOOTTIME, false },
	{ "TAI", "ns", by_vdso, CLOCK_TAI, false },
	{ "MONOTONIC_COARSE", "ns", by_vdso, CLOCK_MONOTONIC_COARSE, false },
	{ "REALTIME_COARSE", "ns", by_vdso, CLOCK_REALTIME_COARSE, false },
	{ "MONOTONIC by call", "ns", by_call, CLOCK_MONOTONIC, false },
	{ "(getppid)", "", no_clock, 0, false },
};

/* Some CPUs from before 2008, and some emulated ones, have no RDTSCP. */
static bool has(const struct clock *clock)
{
	unsigned int a, b, c, d;

	return clock->read != by_rdtscp ||
	       (__get_cpuid(0x80000001, &a, &b, &c, &d) && d >> 27 & 1);
}

/* Measure the TSC cycles of a read */
static double cost_of(const struct clock *clock, double *p99)
{
	uint64_t values[REPEATS], start;
	unsigned int i, j;

	for (i = 0; i < REPEATS; i++) {
		start = tsc_read_fenced();
		for (j = 0; j < READS; j++)
			clock->read(clock->id);
		values[i] = tsc_read_fenced() - start;
	}
	*p99 = tsc_quantile(values, REPEATS, 99) / (double)READS;
	return tsc_quantile(values, REPEATS, 50) / (double)READS;
}

/* Get the step of a clock as the kernel reports it, or, for the TSC, as measured */
static uint64_t step_of(const struct clock *clock)
{
	struct timespec resolution;

	if (clock->steps)
		return tsc_step_measure().step;
	if (!*clock->unit || clock_getres(clock->id, &resolution))
		return 0;
	return resolution.tv_sec * UINT64_C(1000000000) + resolution.tv_nsec;
}

static bool chosen[CPUS];

static int choose(void)
{
	int cpu, end = tsc_allowed(chosen, CPUS);

	for (cpu = 0; !cpus && cpu < end; cpu++)
		chosen[cpu] = chosen[cpu] && tsc_may_run(cpu);
	if (!cpus)
		return end;
	if (!files_cpulist(cpus, chosen, CPUS))
		fail("clocks: --cpus takes a list of CPUs such as 0-3,8, not \"%s\"", cpus);
	/* Isolated CPUs are not in the allowed set, but may be used. */
	for (cpu = 0; cpu < CPUS; cpu++)
		if (chosen[cpu] && !tsc_may_run(cpu))
			fail("clocks: this process is not allowed to run on CPU %d", cpu);
	return CPUS;
}

static void print_clock(const struct clock *clock)
{
	double p99, cost = cost_of(clock, &p99);
	uint64_t step = step_of(clock);

	if (opt_json) {
		json_object(NULL);
		json_text("name", clock->name);
		json_real("cycles_p50", cost, 1);
		json_real("cycles_p99", p99, 1);
		json_number("step", step);
		json_text("step_unit", clock->unit);
		json_end();
		return;
	}
	printf("%-20s %10.1f %10.1f", clock->name, cost, p99);
	if (step)
		printf(" %12s %s", commas(step), clock->unit);
	putchar('\n');
}

static void print_skew(int a, int b)
{
	struct tsc_step step;
	struct skew skew;

	progress("comparing the TSC of CPU %d with CPU %d's", b, a);
	if (!tsc_pin(b))
		fail("can't run on CPU %d", b);
	step = tsc_step_measure();
	if (!skew_measure(a, b, rounds, &skew))
		fail("can't run on CPUs %d and %d", a, b);
	progress_end();
	if (opt_json) {
		json_object(NULL);
		json_number("cpu", b);
		json_number("against", a);
		json_number("low", skew.low);
		json_number("high", skew.high);
		json_number("middle", skew.middle);
		json_number("round_trip", skew.round_trip);
		json_number("residue", step.residue);
		json_bool("changed", skew.low > skew.high);
		json_end();
		return;
	}
	printf("%-5d %10s %10s %10s %12s %9u%s\n", b, commas(skew.low), commas(skew.middle),
	       commas(skew.high), commas(skew.round_trip), step.residue,
	       skew.low > skew.high ? "  changed meanwhile" : "");
}

static int run(int operands, char **operand)
{
	struct tsc_step step = tsc_step_measure();
	char *source = files_read(CLOCKSOURCE);
	int end = choose(), first, cpu;
	double khz = tsc_khz_measure();
	unsigned int i;

	(void)operands;
	(void)operand;
	for (first = 0; first < end && !chosen[first]; first++)
		;
	if (!tsc_pin(first))
		fail("can't run on CPU %d", first);
	if (opt_json) {
		json_object(NULL);
		json_real("tsc_khz", khz, 0);
		json_text("clocksource", source ? source : "");
		json_number("tsc_step", step.step);
		json_array("clocks");
	} else {
		printf("TSC %.3f MHz, in steps of %u; costs in TSC cycles on CPU %d\n\n%-20s %10s %10s %12s\n",
		       khz / 1000, step.step, first, "clock", "p50", "p99", "step");
	}
	for (i = 0; i < COUNT(clocks); i++)
		if (has(&clocks[i]))
			print_clock(&clocks[i]);
	if (opt_json) {
		json_end();
		json_array("skew");
	} else {
		printf("\nTSC minus that of CPU %d, in cycles: guaranteed to lie between low and high\n"
		       "%-5s %10s %10s %10s %12s %9s\n", first, "CPU", "low", "middle", "high",
		       "round trip", "residue");
	}
	for (cpu = first + 1; cpu < end; cpu++)
		if (chosen[cpu])
			print_skew(first, cpu);
	if (opt_json) {
		json_end();
		json_end();
	}
	free(source);
	return 0;
}

const struct command clocks_command = {
	.name = "clocks",
	.summary = "Measure the cost and the step of each clock, and the skew between CPUs' TSCs",
	.about = "Needs neither the module nor root. The bounds of the skew hold even if the measurement\n"
		 "is interrupted; low > high means that the skew changed.",
	.options = options,
	.run = run,
};
