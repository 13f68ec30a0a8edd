/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Measurements of a CPU that a process can make without the module, and CPUID.
 * Under --root they come from the file "native" of the tree, with a line "NAME
 * VALUE" each, so that tests can describe a machine.
 */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct native {
	char vendor[16], hypervisor[16], name[64];
	int64_t invariant, deadline;		/* CPUID: 1 or 0 */
	int64_t khz;				/* rate of the TSC */
	char *looked;				/* list of the CPUs that were measured */
	int64_t step;
	char residues[64];			/* TSC of each CPU, modulo the step */
	int64_t gap;			/* longest gap in which no other task ran, TSC cycles */
	int64_t gap_switched;		/* longest gap in which another task ran */
	int64_t gaps;			/* number of gaps of more than 10 us */
	int64_t gap_cpu;
	int64_t smis;			/* SMIs during the search for gaps, -1: not counted */
	/*
	 * TSC cycles by which a sleep ends too late: as configured, and with idle CPUs
	 * polling or in C1
	 */
	int64_t wake, wake_awake;
	/* TSC cycles that 1000 core cycles take: after a sleep, and after 20 ms of work */
	int64_t core_slept, core_busy;
	int64_t clock;			/* minimum TSC cycles of a read of the kernel's clock */
	int64_t tai;			/* CLOCK_TAI less CLOCK_REALTIME, s */
};

extern struct native native;

/*
 * Measure the @first CPUs, and as many of the @others as is possible in a short
 * time.
 * Return: false under a root without a file "native".
 */
bool native_measure(const bool *first, const bool *others);
/* Return: the name of the hypervisor, or what CPUID says if the name is not known. */
const char *native_hypervisor(void);

#endif
