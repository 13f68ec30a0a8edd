// SPDX-License-Identifier: GPL-2.0
/*
 * A thread has its core to itself if loops that fill the core take their shortest times, in cycles
 * of the core's clock. That clock changes, so the shortest chain of dependent instructions of the
 * last ones is the measure: an interrupt makes one longer, and nothing makes it shorter.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <math.h>
#include <sched.h>
#include <time.h>

#include "core.h"
#include "files.h"
#include "say.h"
#include "tsc.h"

/* Core cycles of the chain, and of each loop at least */
#define PROBE_CYCLES	1600
/* Number of chains whose shortest is the measure */
#define RECENT		64
/*
 * Per cent that the clock and steps of the TSC may add to one; a second thread adds more to one of
 * the loops, up to as long again.
 */
#define TOLERANCE	10
/* Time to find the shortest, at first */
#define FIRST_S		0.3
/* Time on a crowded core before another is tried */
#define CROWDED_S	0.05

/* What a loop fills. CPUs differ in what threads share. */
struct part {
	uint64_t (*loop)(void);
	double shortest;	/* of the chain's time */
};

static uint64_t take_branches(void)
{
	uint64_t start = tsc_read_fenced(), turns = PROBE_CYCLES;

	asm volatile(".p2align 5\n1:\tdec %0\n\tjnz 1b" : "+r" (turns) :: "cc");
	return tsc_read_fenced() - start;
}

static uint64_t decode(void)
{
	uint64_t start = tsc_read_fenced(), turns = PROBE_CYCLES;

	asm volatile(".p2align 5\n1:\t.rept 16\n\tnop\n\t.endr\n\tdec %0\n\tjnz 1b"
		     : "+r" (turns) :: "cc");
	return tsc_read_fenced() - start;
}

static struct part parts[] = { { take_branches, HUGE_VAL }, { decode, HUGE_VAL } };

static bool before, misjudged;
static double patience, since, waited;	/* s */
static long crowded;

/* The CPU, the last chains on it, and CPUs to move to */
static int own;
static uint64_t chains[RECENT];
static unsigned int number;
static bool allowed[CPUS];
static int end;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static bool about(double took, double least)
{
	return took <= least * (100 + TOLERANCE) / 100;
}

static void add_chain(void)
{
	chains[number++ % RECENT] = tsc_chain(PROBE_CYCLES / 16);
}

/* Return: whether the thread is alone now. */
static bool probe(void)
{
	uint64_t chain = UINT64_MAX;
	double took[COUNT(parts)];
	bool alone = true;
	unsigned int i;

	add_chain();
	for (i = 0; i < COUNT(parts); i++)
		took[i] = parts[i].loop();
	add_chain();
	for (i = 0; i < RECENT; i++)
		if (chains[i] < chain)
			chain = chains[i];
	for (i = 0; i < COUNT(parts); i++) {
		took[i] /= chain;
		if (took[i] < parts[i].shortest) {
			misjudged |= !about(parts[i].shortest, took[i]);
			parts[i].shortest = took[i];
		}
		alone &= about(took[i], parts[i].shortest);
	}
	return alone;
}

static void begin_on(int cpu)
{
	own = cpu;
	waited = 0;
	for (number = 0; number < RECENT; )
		add_chain();
}

/* CPUID says so in every container, with or without /sys. */
static bool different_kinds(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 15 & 1;
}

/* Where cores are of different kinds, figures are those of the first. */
static void find_cpus(void)
{
	begin_on(sched_getcpu());
	if (own >= 0 && tsc_pin(own) && !different_kinds())
		end = tsc_allowed(allowed, CPUS);
}

/* Go to the next CPU: its core may be less crowded. */
static void move(void)
{
	int i, cpu;

	for (i = 1; i < end; i++) {
		cpu = (own + i) % end;
		if (!allowed[cpu])
			continue;
		if (tsc_may_run(cpu) && tsc_pin(cpu)) {
			begin_on(cpu);
			break;
		}
		allowed[cpu] = false;
	}
}

void core_patience(double s)
{
	patience = s;
}

void core_begin(void)
{
	double until = now_s() + FIRST_S;

	if (parts[0].shortest == HUGE_VAL) {
		find_cpus();
		while (now_s() < until)
			probe();
		misjudged = false;
	}
	before = probe();
	since = now_s();
}

bool core_was_alone(void)
{
	bool after = probe(), both = before && after;
	double start = since;

	before = after;
	since = now_s();
	if (both) {
		waited = 0;
		return true;
	}
	if (patience <= 0) {
		crowded++;
		return true;
	}
	patience -= since - start;
	waited += since - start;
	if (waited > CROWDED_S) {
		move();
		before = probe();
		since = now_s();
	}
	return false;
}

bool core_misjudged(void)
{
	bool was = misjudged;

	misjudged = false;
	if (was)
		crowded = 0;
	return was;
}

long core_crowded(void)
{
	return crowded;
}
