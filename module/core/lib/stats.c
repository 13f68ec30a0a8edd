// SPDX-License-Identifier: GPL-2.0
/*
 * Per-CPU counters and the histogram of errors.
 */
#include <linux/cpumask.h>
#include <linux/string.h>

#include "lib/stats.h"

DEFINE_PER_CPU(struct apic_timer_stats, apic_timer_stats);

/**
 * apic_timer_stats_read() - read a counter
 * @cpu:	a possible CPU
 * @id:		the counter
 *
 * Return: its value on @cpu since the module was loaded.
 */
u64 apic_timer_stats_read(unsigned int cpu, enum apic_timer_stat id)
{
	const u64 *count = per_cpu(apic_timer_stats, cpu).count;
	u64 value = READ_ONCE(count[id]);

	/* The fast path has one counter for both. */
	if (id == APIC_TIMER_STAT_INTERRUPTS ||
	    id == APIC_TIMER_STAT_KERNEL_EVENTS)
		value += READ_ONCE(count[APIC_TIMER_STAT_KERNEL_ONLY]);
	return value;
}

/**
 * apic_timer_stats_name() - get the name of a counter
 * @id:		the counter
 *
 * Return: one word.
 */
const char *apic_timer_stats_name(enum apic_timer_stat id)
{
	static const char * const names[] = {
#define X(id, name, what) #name,
		APIC_TIMER_STATS(X)
#undef X
	};

	return names[id];
}

/**
 * apic_timer_stats_reset_errors() - empty the error histogram of every CPU
 *
 * An error that another CPU is counting meanwhile may survive.
 */
void apic_timer_stats_reset_errors(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu(apic_timer_stats, cpu).error, 0,
		       sizeof(apic_timer_stats.error));
}
