/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What can be found out of a CPU in a process, without the module: CPUID, and
 * measurements. Under --root they come from the file "native" of the tree, a
 * line "NAME VALUE" each, so that tests can say what a machine is like.
 */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct native {
	char vendor[16], hypervisor[16], name[64];
	int64_t invariant, deadline, arat;	/* CPUID: 1 or 0 */
	int64_t khz;				/* of the TSC */
	char *looked;				/* the CPUs that were looked at, a list */
	int64_t step;
	char residues[64];			/* of the CPUs, modulo the step */
	int64_t gap;			/* TSC cycles: the longest in which nobody else ran */
	int64_t gap_switched;		/* the same where another task did */
	int64_t gaps;			/* of more than 10 us */
	int64_t gap_cpu;
	int64_t smis;			/* while gaps were looked for, -1: not counted */
	/* TSC cycles that a sleep ends too late: as it is, and with idle CPUs polling or in C1 */
	int64_t wake, wake_awake;
	/* TSC cycles that 1000 core cycles take: after a sleep, and after 20 ms of work */
	int64_t core_slept, core_busy;
	int64_t clock;			/* least TSC cycles of a read of the kernel's clock */
	int64_t tai;			/* CLOCK_TAI less CLOCK_REALTIME, s */
};

extern struct native native;

/*
 * Measure the @first CPUs, and as many of the @others that it doesn't take long.
 * Return: false under a root that says nothing of it.
 */
bool native_measure(const bool *first, const bool *others);

#endif
