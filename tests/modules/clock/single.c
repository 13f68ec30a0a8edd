// SPDX-License-Identifier: GPL-2.0
/*
 * A timer on a CPU, for a converted moment of the reference CPU's TSC.
 *
 * The start of its handler is a value of its own CPU's TSC. The script has set that TSC ahead, so
 * it knows the difference and subtracts it.
 */
#include <linux/apic_clock.h>
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/sort.h>

#include "clock_test.h"

#define SHOTS		300
/* Number of expiries before those that count: the CPU learns its lead. */
#define WARM_UP		64
#define AHEAD_US	3000
#define CONVERSIONS	1000

static struct apic_timer_list timer;
static u64 started;
static DECLARE_COMPLETION(over);

/**
 * struct single_result - result of a run
 * @shots:	number of expiries
 * @error:	maximum error of a moment, as reported by the module
 * @apart:	start by the CPU's TSC minus the moment by the reference CPU's TSC, sorted
 * @cost:	minimum cycles of a conversion, and of reading the TSC twice
 */
static struct single_result {
	unsigned int shots;
	u64 error;
	s64 apart[SHOTS];
	u64 cost;
} result;

static void handler(unsigned long long now, unsigned long data)
{
	started = now;
	complete(&over);
}

static int compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

static u64 reference_now(void)
{
	u64 now;

	preempt_disable();
	now = apic_clock_from_cpu(smp_processor_id(), apic_timer_now(), NULL);
	preempt_enable();
	return now;
}

/* Measure the cost of a conversion, without that of reading the TSC. */
static u64 cost(int cpu)
{
	u64 least = U64_MAX, none = U64_MAX, before, error;
	unsigned int i;

	for (i = 0; i < CONVERSIONS; i++) {
		before = apic_timer_now();
		apic_clock_to_cpu(cpu, before, &error);
		least = min(least, apic_timer_now() - before);
		before = apic_timer_now();
		none = min(none, apic_timer_now() - before);
	}
	return least - none;
}

int clock_test_single(unsigned int cpu, unsigned int shots)
{
	unsigned int i;
	u64 when;
	int ret;

	if (cpu >= nr_cpu_ids || shots > SHOTS)
		return -EINVAL;
	result = (struct single_result) { .cost = cost(cpu) };
	timer.function = handler;
	init_apic_timer(&timer);
	timer.flags = APIC_TIMER_EXACT;
	for (i = 0; i < WARM_UP + shots; i++) {
		reinit_completion(&over);
		when = reference_now() + apic_timer_us_to_tsc(AHEAD_US);
		timer.expires = apic_clock_to_cpu(cpu, when, &result.error);
		ret = add_apic_timer_on(&timer, cpu);
		if (ret)
			return ret;
		wait_for_completion(&over);
		if (i >= WARM_UP)
			result.apart[result.shots++] = started - when;
	}
	sort(result.apart, result.shots, sizeof(s64), compare, NULL);
	return 0;
}

void clock_test_single_show(struct seq_file *file)
{
	unsigned int n = result.shots;

	seq_printf(file, "single shots %u error %llu cost %llu", n, result.error, result.cost);
	if (n)
		seq_printf(file, " apart %lld %lld %lld %lld", result.apart[0],
			   result.apart[n / 2], result.apart[n - 1 - n / 100],
			   result.apart[n - 1]);
	seq_putc(file, '\n');
}
