// SPDX-License-Identifier: GPL-2.0
/*
 * How far apart the handlers of a group start.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/sort.h>
#include <linux/time64.h>

#include "clock_test.h"

#define SHOTS	1000
/* Expiries before those that count: the CPUs learn how early to arm. */
#define WARM_UP	64
#define AHEAD_US	3000

/**
 * struct result - a run of expiries
 * @shots:	how many were armed
 * @complete:	those of which all handlers were called
 * @none:	those of which none was
 * @split:	those of which some were: never, with APIC_CLOCK_GROUP_ALL
 * @early:	handlers that started before the moment
 * @latest:	largest start less the moment, TSC cycles
 * @apart:	of @complete: last start less first, in order
 * @error:	bound that the last receipt gave
 */
static struct result {
	unsigned int shots, complete, none, split, early;
	s64 latest;
	s64 apart[SHOTS];
	u64 error;
} result;

static struct apic_clock_receipt last;
static atomic_t calls;
static DECLARE_COMPLETION(over);

static void handler(unsigned long long now, unsigned long data)
{
	atomic_inc(&calls);
}

static void done(const struct apic_clock_receipt *receipt, unsigned long data)
{
	last = *receipt;
	complete(&over);
}

static int compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

static void account(unsigned int cpus)
{
	result.shots++;
	result.error = last.error;
	if (last.called != atomic_read(&calls))
		result.split++;
	if (last.called && last.first < 0)
		result.early++;
	result.latest = max(result.latest, last.last);
	if (last.called == cpus)
		result.apart[result.complete++] = last.last - last.first;
	else if (!last.called && last.ret == -EAGAIN)
		result.none++;
	else
		result.split++;
}

/* Let the first CPUs of the machine start together, again and again. */
int clock_test_group(unsigned int cpus, unsigned int flags, unsigned int shots)
{
	struct apic_clock_group *group;
	unsigned int cpu, n = 0;
	cpumask_var_t mask;
	int ret = 0;

	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	for_each_online_cpu(cpu)
		if (n < cpus) {
			cpumask_set_cpu(cpu, mask);
			n++;
		}
	cpus = n;
	group = apic_clock_group_alloc(mask, handler, done, 0, flags);
	free_cpumask_var(mask);
	if (!group)
		return -EINVAL;

	result = (struct result) {};
	for (n = 0; !ret && n < WARM_UP + min_t(unsigned int, shots, SHOTS); n++) {
		atomic_set(&calls, 0);
		reinit_completion(&over);
		ret = apic_clock_group_fire(group, apic_timer_now() +
					    apic_timer_us_to_tsc(AHEAD_US));
		if (ret)
			break;
		if (apic_clock_group_fire(group, U64_MAX) != -EBUSY)
			ret = -EBUSY;
		wait_for_completion(&over);
		if (n >= WARM_UP)
			account(cpus);
	}
	/* One that is cancelled gives its receipt too. */
	if (!ret)
		ret = apic_clock_group_fire(group, apic_timer_now() +
					    apic_timer_us_to_tsc(3600 * USEC_PER_SEC));
	if (!ret) {
		apic_clock_group_cancel(group);
		if (last.ret != -ECANCELED || last.called) {
			pr_err("cancelled: ret %d, %u called, %lld to %lld\n", last.ret,
			       last.called, last.first, last.last);
			ret = -EIO;
		}
	}
	apic_clock_group_free(group);
	sort(result.apart, result.complete, sizeof(s64), compare, NULL);
	return ret;
}

void clock_test_group_show(struct seq_file *file)
{
	unsigned int n = result.complete;

	seq_printf(file, "group shots %u complete %u none %u split %u early %u latest %lld error %llu",
		   result.shots, n, result.none, result.split, result.early, result.latest,
		   result.error);
	if (n)
		seq_printf(file, " apart p50 %lld p99 %lld max %lld", result.apart[n / 2],
			   result.apart[n - 1 - n / 100], result.apart[n - 1]);
	seq_putc(file, '\n');
}
