// SPDX-License-Identifier: GPL-2.0
/*
 * The time-stamp counter of the CPU that this runs on, measured in a process.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <time.h>

#include "say.h"
#include "tsc.h"

#define STEP_MAX	1024
#define STEP_READS	2000
/* This part of the differences has to be multiples of a step: the rest were interrupted ... */
#define STEP_PART	0.7

/*
 * A TSC that is scaled, or multiplied by a firmware, counts in steps. Where it
 * is read twice in a step a CPU may add 1, to keep values apart; so it is not
 * the greatest common divisor of all differences that is looked for but the
 * largest that most of them are multiples of.
 */
struct tsc_step tsc_step_of(const uint64_t *values, size_t count)
{
	struct tsc_step found = { 1, 0 };
	size_t residues[STEP_MAX] = {}, i, fits, most = 0;
	unsigned int step;

	for (step = STEP_MAX; step > 1; step--) {
		for (i = 1, fits = 0; i < count; i++) {
			uint64_t difference = values[i] - values[i - 1];

			fits += difference && difference % step == 0;
		}
		if (count > 1 && fits >= STEP_PART * (count - 1))
			break;
	}
	found.step = step;
	if (step < 2)
		return found;
	for (i = 0; i < count; i++)
		residues[values[i] % step]++;
	for (i = 0; i < step; i++) {
		if (residues[i] > most) {
			most = residues[i];
			found.residue = i;
		}
	}
	return found;
}

/* Take more or less time: multiples of 2 and of 3 instructions, so that no step is ours. */
static inline void dawdle(unsigned int twos, unsigned int threes)
{
	asm volatile("1:\tdec %0\n\tjnz 1b\n2:\tnop\n\tdec %1\n\tjnz 2b"
		     : "+r" (twos), "+r" (threes));
}

struct tsc_step tsc_step_measure(void)
{
	static uint64_t values[STEP_READS];
	size_t i;

	for (i = 0; i < STEP_READS; i++) {
		values[i] = tsc_read();
		dawdle(1 + i * 7 % 11, 1 + i * 5 % 13);
	}
	return tsc_step_of(values, STEP_READS);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* Both clocks at a time: of 20 the pair that took the shortest time */
static uint64_t pair(uint64_t *ns)
{
	uint64_t before, after, between, best = UINT64_MAX, tsc = 0;
	int i;

	for (i = 0; i < 20; i++) {
		before = tsc_read_fenced();
		between = clock_ns(CLOCK_MONOTONIC_RAW);
		after = tsc_read_fenced();
		if (after - before < best) {
			best = after - before;
			tsc = before + best / 2;
			*ns = between;
		}
	}
	return tsc;
}

double tsc_khz_measure(void)
{
	struct timespec wait = { 0, 50 * 1000 * 1000 };
	uint64_t ns[2], tsc[2];

	tsc[0] = pair(&ns[0]);
	nanosleep(&wait, NULL);
	tsc[1] = pair(&ns[1]);
	return (tsc[1] - tsc[0]) * 1e6 / (ns[1] - ns[0]);
}

struct tsc_gaps tsc_gaps_measure(uint64_t cycles, uint64_t bound)
{
	uint64_t start = tsc_read(), last = start, now;
	struct tsc_gaps gaps = {};

	do {
		now = tsc_read();
		if (now - last > gaps.longest)
			gaps.longest = now - last;
		if (now - last > bound) {
			gaps.count++;
			gaps.sum += now - last;
		}
		last = now;
	} while (now - start < cycles);
	return gaps;
}

uint64_t tsc_chain(uint64_t turns)
{
	uint64_t start = tsc_read_fenced();

	asm volatile(".p2align 5\n1:\t.rept 16\n\tinc %%edx\n\t.endr\n\tdec %0\n\tjnz 1b"
		     : "+r" (turns) :: "edx", "cc");
	return tsc_read_fenced() - start;
}

double tsc_per_core_cycle(void)
{
	uint64_t once[60], twice[60];
	unsigned int i;

	for (i = 0; i < COUNT(once); i++) {
		once[i] = tsc_chain(2000);
		twice[i] = tsc_chain(4000);
	}
	return (tsc_quantile(twice, COUNT(twice), 5) - tsc_quantile(once, COUNT(once), 5)) /
	       (2000 * 16.0);
}

bool tsc_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

int tsc_allowed(bool *map, int size)
{
	int cpu, end = 0;
	cpu_set_t set;

	memset(map, 0, size * sizeof(*map));
	if (sched_getaffinity(0, sizeof(set), &set))
		fail("sched_getaffinity failed");
	for (cpu = 0; cpu < size && cpu < CPU_SETSIZE; cpu++) {
		map[cpu] = CPU_ISSET(cpu, &set);
		if (map[cpu])
			end = cpu + 1;
	}
	return end;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t tsc_quantile(uint64_t *values, size_t count, double percent)
{
	size_t place = count * percent / 100;

	qsort(values, count, sizeof(*values), compare);
	return values[place < count ? place : count - 1];
}
