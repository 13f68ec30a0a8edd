// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how far apart the handlers of a group start.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/sort.h>
#include <linux/time64.h>

#include "clock_test.h"

#define SHOTS	1000
/* Number of expiries before those that count: the CPUs learn their leads. */
#define WARM_UP	64
#define AHEAD_US	3000
#define CANCELS		40

/**
 * struct result - result of a run of expiries
 * @shots:	number of expiries armed
 * @complete:	expiries of which all handlers were called
 * @none:	expiries of which no handler was called
 * @split:	expiries of which some handlers were called: never, with APIC_CLOCK_GROUP_ALL
 * @early:	handlers that started before the moment
 * @outside:	receipts outside of an interrupt, including those of cancelled groups
 * @latest:	largest start minus moment, TSC cycles
 * @apart:	for @complete: last start minus first start, sorted
 * @error:	error bound in the last receipt
 */
static struct result {
	unsigned int shots, complete, none, split, early, outside;
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
	result.outside += !in_hardirq();
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

/* Arm the group; the CPU may be held up for longer than it is armed ahead. */
static int fire(struct apic_clock_group *group)
{
	int ret;

	do {
		ret = apic_clock_group_fire(group, apic_timer_now() +
					    apic_timer_us_to_tsc(AHEAD_US));
	} while (ret == -ETIME && !signal_pending(current));
	return ret;
}

/* A cancelled group gives one receipt, and may be armed anew, no matter when it is cancelled. */
static int cancelled(struct apic_clock_group *group, unsigned int n)
{
	const u64 moments[] = {
		apic_timer_now() + apic_timer_us_to_tsc(3600 * USEC_PER_SEC),
		U64_MAX,
		U64_MAX - 1,
		apic_timer_now() + apic_timer_us_to_tsc(50 + n % 100),
	};
	u64 when = moments[n % ARRAY_SIZE(moments)];
	int ret;

	atomic_set(&calls, 0);
	reinit_completion(&over);
	last = (struct apic_clock_receipt) { .ret = 1 };
	ret = apic_clock_group_fire(group, when);
	/* It took that long to come here. */
	if (ret == -ETIME && n % ARRAY_SIZE(moments) == 3)
		return 0;
	if (!ret && n % ARRAY_SIZE(moments) != 3)
		ret = apic_clock_group_fire(group, when) == -EBUSY ? 0 : -EPROTO;
	apic_clock_group_cancel(group);
	if (ret)
		return ret;
	if (completion_done(&over) && last.called == atomic_read(&calls) &&
	    (last.ret == -ECANCELED ||
	     (n % ARRAY_SIZE(moments) == 3 && last.ret != 1)))
		return 0;
	pr_err("expiry %u: ret %d, %u called, %d calls, %lld to %lld\n", n, last.ret,
	       last.called, atomic_read(&calls), last.first, last.last);
	return -EIO;
}

/* Let handlers on the first CPUs of the machine start together, again and again. */
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
		ret = fire(group);
		if (ret)
			break;
		wait_for_completion(&over);
		if (n >= WARM_UP)
			account(cpus);
	}
	for (n = 0; !ret && n < CANCELS; n++)
		ret = cancelled(group, n);
	apic_clock_group_free(group);
	sort(result.apart, result.complete, sizeof(s64), compare, NULL);
	return ret;
}

/**
 * struct later - a group that expires while its script does something else
 * @group:	the group
 * @receipt:	the group's receipt
 * @over:	@receipt is valid
 */
static struct later {
	struct apic_clock_group *group;
	struct apic_clock_receipt receipt;
	bool over;
} later[2];

static void nothing(unsigned long long now, unsigned long data)
{
}

static void later_done(const struct apic_clock_receipt *receipt, unsigned long data)
{
	struct later *of = (struct later *)data;

	of->receipt = *receipt;
	/* Pairs with clock_test_group_show(). */
	smp_store_release(&of->over, true);
}

int clock_test_group_later(unsigned int n, unsigned int flags, unsigned int ms)
{
	struct later *of;

	if (n >= ARRAY_SIZE(later) || later[n].group)
		return -EINVAL;
	of = &later[n];
	of->group = apic_clock_group_alloc(cpu_online_mask, nothing, later_done,
					   (unsigned long)of, flags);
	if (!of->group)
		return -EINVAL;
	return clock_test_group_again(n, ms);
}

int clock_test_group_again(unsigned int n, unsigned int ms)
{
	if (n >= ARRAY_SIZE(later) || !later[n].group)
		return -EINVAL;
	return apic_clock_group_fire(later[n].group, apic_timer_now() +
				     apic_timer_us_to_tsc(ms * USEC_PER_MSEC));
}

int clock_test_group_cancel(unsigned int n)
{
	if (n >= ARRAY_SIZE(later) || !later[n].group)
		return -EINVAL;
	apic_clock_group_cancel(later[n].group);
	return 0;
}

/* A group of which only the data belongs to this module; it must not expire. */
int clock_test_group_foreign(unsigned int ms)
{
	struct apic_clock_group *group;

	group = apic_clock_group_alloc(cpumask_of(0), (void *)apic_clock_get_resync, NULL,
				       (unsigned long)later, 0);
	if (!group)
		return -EINVAL;
	return apic_clock_group_fire(group, apic_timer_now() +
				     apic_timer_us_to_tsc(ms * USEC_PER_MSEC));
}

static cpumask_t growing;

static int grows(struct kprobe *unused, struct pt_regs *regs)
{
	cpumask_set_cpu(1, &growing);
	return 0;
}

/* As if CPU 1 came online, and entered cpu_online_mask, while a group of it is allocated. */
int clock_test_group_grow(void)
{
	struct kprobe probe = {
		.symbol_name = "init_apic_timer",
		.pre_handler = grows,
	};
	int ret;

	if (later[0].group)
		return -EINVAL;
	cpumask_clear(&growing);
	cpumask_set_cpu(0, &growing);
	ret = register_kprobe(&probe);
	if (ret)
		return ret;
	later[0].group = apic_clock_group_alloc(&growing, nothing, later_done,
						(unsigned long)&later[0], 0);
	unregister_kprobe(&probe);
	return later[0].group ? clock_test_group_again(0, 100) : -ENOMEM;
}

void clock_test_group_free(void)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(later); n++)
		apic_clock_group_free(later[n].group);
}

void clock_test_group_show(struct seq_file *file)
{
	unsigned int n = result.complete;

	seq_printf(file, "group shots %u complete %u none %u split %u early %u outside %u latest %lld error %llu",
		   result.shots, n, result.none, result.split, result.early, result.outside,
		   result.latest, result.error);
	if (n)
		seq_printf(file, " apart p50 %lld p99 %lld max %lld", result.apart[n / 2],
			   result.apart[n - 1 - n / 100], result.apart[n - 1]);
	seq_putc(file, '\n');
	for (n = 0; n < ARRAY_SIZE(later); n++)
		/* Pairs with later_done(): with @over, the receipt is seen. */
		if (smp_load_acquire(&later[n].over))
			seq_printf(file, "later %u ret %d called %u first %lld last %lld\n", n,
				   later[n].receipt.ret, later[n].receipt.called,
				   later[n].receipt.first, later[n].receipt.last);
}
