/* SPDX-License-Identifier: GPL-2.0 */
/* The time-stamp counter of this CPU. */
#ifndef TSC_H
#define TSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t tsc_read(void)
{
	uint32_t low, high;

	asm volatile("rdtsc" : "=a" (low), "=d" (high) :: "memory");
	return (uint64_t)high << 32 | low;
}

/* Read the TSC after all earlier instructions have completed. */
static inline uint64_t tsc_read_ordered(void)
{
	uint32_t low, high;

	asm volatile("lfence\n\trdtsc" : "=a" (low), "=d" (high) :: "memory");
	return (uint64_t)high << 32 | low;
}

/* The same, and before any later instruction begins. */
static inline uint64_t tsc_read_fenced(void)
{
	uint32_t low, high;

	asm volatile("lfence\n\trdtsc\n\tlfence" : "=a" (low), "=d" (high) :: "memory");
	return (uint64_t)high << 32 | low;
}

/* The step in which a TSC counts */
struct tsc_step {
	unsigned int step;	/* cycles; 1: no steps */
	unsigned int residue;	/* value modulo the step, of most reads */
};

/* Find the step from values in order of time. */
struct tsc_step tsc_step_of(const uint64_t *values, size_t count);
/* Find the step of this CPU's TSC. */
struct tsc_step tsc_step_measure(void);
/* Measure the rate against CLOCK_MONOTONIC_RAW, in kHz: takes 50 ms. */
double tsc_khz_measure(void);

/* The longest time between two reads, and how many were longer than @bound, in @cycles. */
struct tsc_gaps {
	uint64_t longest, count, sum;
};

struct tsc_gaps tsc_gaps_measure(uint64_t cycles, uint64_t bound);

/* Measure the TSC cycles that a core cycle takes, with a chain of dependent instructions. */
double tsc_per_core_cycle(void);
/* Run the chain: @turns times 16 core cycles. Return: TSC cycles. */
uint64_t tsc_chain(uint64_t turns);

/* A set of CPUs, with room for all that the kernel may have */
struct tsc_cpus {
	size_t size;
	void *set;
};

/* Get the CPUs that this thread may run on. */
struct tsc_cpus tsc_cpus_get(void);
/* Let a thread, 0: this one, run on them. */
void tsc_cpus_set(int thread, const struct tsc_cpus *cpus);
void tsc_cpus_free(struct tsc_cpus *cpus);

/* Run on this CPU only. Return: true if that is allowed. */
bool tsc_pin(int cpu);
/*
 * Check whether that is allowed, and a process would get to run there; print a message if not.
 * Call this before tsc_pin(): a process bound to a CPU where it does not get to run is stuck.
 */
bool tsc_may_run(int cpu);
/* Get the CPUs that this process may run on, as a map of @size. Return: the highest number + 1. */
int tsc_allowed(bool *map, int size);

/* Get the quantile @percent of the values; sorts them. */
uint64_t tsc_quantile(uint64_t *values, size_t count, double percent);

#endif
