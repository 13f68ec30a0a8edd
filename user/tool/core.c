// SPDX-License-Identifier: GPL-2.0
/* A thread has its core to itself if a loop that fills the core takes its shortest time. */
#include <time.h>

#include "core.h"
#include "tsc.h"

#define PROBE_TURNS	2000
/* What the core's clock varies by; a second thread adds more, up to as long again. Per cent */
#define TOLERANCE	10
/* Time to find the shortest, at first */
#define FIRST_S		0.3

static uint64_t shortest = UINT64_MAX;
static bool before, misjudged;
static double patience, since;	/* s */
static long crowded;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static bool is_alone(uint64_t took, uint64_t alone)
{
	return took <= alone + alone / 100 * TOLERANCE;
}

/* Return: whether the thread is alone now. */
static bool probe(void)
{
	uint64_t start = tsc_read_fenced(), turns = PROBE_TURNS, took;

	asm volatile(".p2align 5\n1:\t.rept 16\n\tnop\n\t.endr\n\tdec %0\n\tjnz 1b"
		     : "+r" (turns) :: "cc");
	took = tsc_read_fenced() - start;
	if (took < shortest) {
		misjudged |= !is_alone(shortest, took);
		shortest = took;
	}
	return is_alone(took, shortest);
}

void core_patience(double s)
{
	patience = s;
}

void core_begin(void)
{
	double end = now_s() + FIRST_S;

	if (shortest == UINT64_MAX) {
		while (now_s() < end)
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
	if (both)
		return true;
	if (patience > 0) {
		patience -= since - start;
		return false;
	}
	crowded++;
	return true;
}

bool core_misjudged(void)
{
	bool was = misjudged;

	misjudged = false;
	return was;
}

long core_crowded(void)
{
	return crowded;
}
