// SPDX-License-Identifier: GPL-2.0
/*
 * The counters, and the first fault.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>

#include "torture.h"

static const char * const names[TORTURE_COUNT_COUNT] = {
	[TORTURE_OPERATIONS] = "operations",	/* calls of the interface */
	[TORTURE_ARMED] = "armed",		/* shots */
	[TORTURE_RAN] = "ran",
	[TORTURE_DELETED] = "deleted",
	[TORTURE_SUPERSEDED] = "superseded",	/* got another expiry */
	[TORTURE_WAITED] = "waited",		/* waiting deletions */
	[TORTURE_BUSY] = "busy",		/* deletions too late */
	[TORTURE_FREED] = "freed",		/* timers on the heap */
	[TORTURE_REFUSED] = "refused",		/* armed for a CPU that is off */
	[TORTURE_MOVED] = "moved",		/* ran elsewhere: CPU went off */
	[TORTURE_ANYWHERE] = "anywhere",	/* ran, no CPU being certain */
	[TORTURE_STEADY] = "steady",		/* fates of steady timers */
	[TORTURE_OFFS] = "offs",		/* CPUs that went off */
	[TORTURE_STAYED] = "stayed",		/* CPUs that would not go */
	[TORTURE_SHUT] = "shut",		/* pairs of timers shut down */
	[TORTURE_FATES] = "fates",		/* shots whose fate was checked */
};

DEFINE_PER_CPU(struct torture_counts, torture_counts);
static atomic64_t faults;
static char first_fault[160];
static bool first_fault_known;

/**
 * torture_count() - the number of times that something has happened
 * @id:	what
 *
 * Return: the number, so far.
 */
u64 torture_count(enum torture_count id)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(torture_counts, cpu).count[id]);
	return sum;
}

/**
 * torture_fault() - record a fault
 * @format:	as for printf()
 *
 * Context: Any. The first fault is kept.
 */
void torture_fault(const char *format, ...)
{
	va_list args;

	if (atomic64_inc_return(&faults) != 1)
		return;
	va_start(args, format);
	vscnprintf(first_fault, sizeof(first_fault), format, args);
	va_end(args);
	/* Pairs with torture_line(): the text is complete. */
	smp_store_release(&first_fault_known, true);
}

/**
 * torture_failed() - whether there were faults
 *
 * Return: true if so.
 */
bool torture_failed(void)
{
	return atomic64_read(&faults);
}

/**
 * torture_line() - sum up the counters in one line
 * @line:	filled in; "ok", "FAIL" or "running" is its first word
 * @size:	of @line
 * @over:	the run is over
 */
void torture_line(char *line, size_t size, bool over)
{
	const char *verdict = torture_failed() ? "FAIL" : "ok";
	unsigned int i;
	size_t length;

	length = scnprintf(line, size, "%s", over ? verdict : "running");
	for (i = 0; i < TORTURE_COUNT_COUNT; i++)
		length += scnprintf(line + length, size - length, " %s=%llu",
				    names[i], torture_count(i));
	length += scnprintf(line + length, size - length, " faults=%lld",
			    atomic64_read(&faults));
	/* Pairs with torture_fault(): the text is complete. */
	if (smp_load_acquire(&first_fault_known))
		scnprintf(line + length, size - length, " first: %s",
			  first_fault);
}
