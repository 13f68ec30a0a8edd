// SPDX-License-Identifier: GPL-2.0
/*
 * The TSC's rate by CLOCK_MONOTONIC_RAW, which is never steered: compare what both have
 * counted since they were first read. If the kernel's clocksource is the TSC, the difference
 * is the kernel's rounding; otherwise it is the error of the kernel's TSC frequency.
 *
 * The clock stops during a suspend, and the TSC may not, so the comparison begins anew after
 * a suspend.
 */
#include <linux/apic_clock.h>
#include <linux/cpumask.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <asm/msr.h>

#include "raw.h"

/* Number of pairs read, of which the shortest counts. */
#define PAIRS		8
/*
 * Possible error of two pairs together, in addition to their widths: a clock advances in steps
 * of its counter (the PM timer's are the longest, 279.4 ns), and the TSC in a few ns.
 */
#define STEPS_NS	300

/**
 * struct pair - the TSC and the clock at one moment
 * @cpu:	CPU of the TSC
 * @epoch:	epoch of the TSC
 * @asleep:	total time that the machine has been suspended
 * @tsc:	TSC before the clock was read
 * @width:	cycles until the TSC was read again after it
 * @earliest:	earliest time of the clock at the read
 * @latest:	latest time of the clock at the read
 */
struct pair {
	int cpu;
	unsigned int epoch;
	ktime_t asleep;
	u64 tsc;
	u64 width;
	ktime_t earliest;
	ktime_t latest;
};

static DEFINE_MUTEX(first_mutex);
static struct pair first = { .cpu = -1 };	/* first_mutex */

/* Keep interrupts on: an HPET is read by the dozen, at some microseconds each. */
static int read_on_cpu(void *arg)
{
	struct pair *pair = arg, next = *pair;
	struct apic_timer_info info = {};
	unsigned int i;

	apic_timer_query(pair->cpu, &info);
	next.epoch = info.tsc_epoch;
	next.asleep = ktime_mono_to_any(0, TK_OFFS_BOOT);
	pair->width = U64_MAX;
	for (i = 0; i < PAIRS; i++) {
		next.tsc = rdtsc_ordered();
		apic_timer_clock_now(CLOCK_MONOTONIC_RAW, &next.earliest, &next.latest);
		next.width = rdtsc_ordered() - next.tsc;
		if (next.width < pair->width)
			*pair = next;
	}
	return 0;
}

static struct pair read_pair(void)
{
	struct pair pair = { .cpu = cpumask_first(cpu_online_mask) };

	/* Use a thread on one CPU: TSCs are not mixed, and an interruption shows in the width. */
	smp_call_on_cpu(pair.cpu, read_on_cpu, &pair, false);
	return pair;
}

static bool same_count(const struct pair *a, const struct pair *b)
{
	return a->cpu == b->cpu && a->epoch == b->epoch && a->asleep == b->asleep &&
	       a->tsc <= b->tsc;
}

/* Compute the rate from two pairs. Half of each width lies on either side of its middle. */
static void compare(const struct pair *from, const struct pair *to,
		    struct apic_clock_verdict *verdict)
{
	u64 ns = apic_timer_tsc_to_ns(to->tsc + to->width / 2 - from->tsc - from->width / 2);
	s64 clock = (to->earliest + to->latest) / 2 - (from->earliest + from->latest) / 2;
	u64 error = apic_timer_tsc_to_ns(from->width + to->width) / 2 + STEPS_NS +
		    (from->latest - from->earliest + to->latest - to->earliest) / 2;
	s64 ahead = ns - clock;

	/* The difference may exceed the whole interval, and then is not a rate. */
	if (clock <= 0 || error > clock || abs(ahead) > clock)
		return;
	verdict->raw_known = true;
	verdict->raw_ppb = mul_u64_u64_div_u64(abs(ahead), NSEC_PER_SEC, clock);
	if (ahead < 0)
		verdict->raw_ppb = -verdict->raw_ppb;
	verdict->raw_error_ppb = mul_u64_u64_div_u64(error, NSEC_PER_SEC, clock) + 1;
}

/**
 * apic_clock_raw_judge() - add the TSC's rate by CLOCK_MONOTONIC_RAW to a verdict
 * @verdict:	its members raw_* are filled in
 *
 * Context: Task, CPUs do not go offline; may sleep.
 */
void apic_clock_raw_judge(struct apic_clock_verdict *verdict)
{
	struct pair now;

	mutex_lock(&first_mutex);
	now = read_pair();
	if (same_count(&first, &now))
		compare(&first, &now, verdict);
	else
		first = now;
	mutex_unlock(&first_mutex);
}
