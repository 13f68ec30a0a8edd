// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_torture: random operations from all CPUs at once, with an account of
 * every shot.
 *
 * A run begins when the module is loaded, and ends after "duration" seconds or "operations" or
 * when the module is unloaded. The kernel log has progress lines, and a final one that begins with
 * "ok" or "FAIL". /sys/kernel/debug/apic_timer_torture/result has the same line, which begins with
 * "running" until then.
 *
 * <linux/torture.h> is of no use: stock kernels do not have torture.ko.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "torture.h"

#define TIMERS_MOST	1000000
#define WRITERS_MOST	100
#define LINE		704

static char *cpus = "";
module_param(cpus, charp, 0444);
MODULE_PARM_DESC(cpus, "list of the CPUs that take part, such as 0,2-3 (default: all online CPUs)");

static unsigned int writers = 1;
module_param(writers, uint, 0444);
MODULE_PARM_DESC(writers, "number of threads on each CPU");

static unsigned int timers = 200;
module_param(timers, uint, 0444);
MODULE_PARM_DESC(timers, "number of timers of each kind, shared by all threads");

unsigned int torture_reach = 20000;
module_param_named(reach_us, torture_reach, uint, 0444);
MODULE_PARM_DESC(reach_us, "maximum time ahead for which timers are armed, in us; most are armed for less than a tenth of it");

static unsigned int rate;
module_param(rate, uint, 0444);
MODULE_PARM_DESC(rate, "maximum operations per second of each thread; 0 for no limit");

static unsigned int duration = 60;
module_param(duration, uint, 0444);
MODULE_PARM_DESC(duration, "duration of the run, in s; 0: until the module is unloaded");

static unsigned long operations;
module_param(operations, ulong, 0444);
MODULE_PARM_DESC(operations, "number of calls of the interface, from threads and handlers, after which the run ends; 0 for no limit");

static unsigned int onoff;
module_param(onoff, uint, 0444);
MODULE_PARM_DESC(onoff, "interval at which a CPU goes offline, in ms; it comes back within the same time; 0 is never");

static unsigned long onoffs;
module_param(onoffs, ulong, 0444);
MODULE_PARM_DESC(onoffs, "number of times that a CPU goes offline before the run ends; 0 for no limit");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "seed of the random numbers");

static unsigned int report = 60;
module_param(report, uint, 0444);
MODULE_PARM_DESC(report, "interval between progress lines in the kernel log, in s; 0 is never");

bool torture_over;
int *torture_cpus;
unsigned int torture_cpu_count;

static struct dentry *directory;
static struct task_struct *task;
static atomic64_t left;			/* operations */
static bool done;			/* everything is counted */

/**
 * torture_operation() - request an operation
 *
 * Return: false if none is left.
 */
bool torture_operation(void)
{
	if (READ_ONCE(torture_over))
		return false;
	if (operations && atomic64_dec_return(&left) < 0) {
		WRITE_ONCE(torture_over, true);
		return false;
	}
	torture_inc(OPERATIONS);
	return true;
}

static void print_progress(void)
{
	char line[LINE];

	torture_line(line, sizeof(line), false);
	pr_info("%s\n", line);
}

static bool time_is_up(u64 seconds)
{
	return READ_ONCE(torture_over) || torture_onoff_done() ||
	       (duration && seconds >= duration);
}

/* Wait until the run must end. */
static void watch(void)
{
	u64 start = ktime_get_seconds(), looked = start, reported = start, now;

	for (;;) {
		now = ktime_get_seconds();
		if (time_is_up(now - start) || kthread_should_stop())
			return;
		if (now != looked)
			torture_steady_check();
		looked = now;
		if (report && now - reported >= report) {
			print_progress();
			reported = now;
		}
		schedule_timeout_interruptible(msecs_to_jiffies(20));
	}
}

/* Let near shots run; nothing is armed again. */
static void settle(void)
{
	unsigned int i;

	for (i = 0; torture_account_busy() || torture_free_busy(); i++) {
		if (i == 10000) {
			torture_fault("a shot is seconds overdue");
			break;
		}
		usleep_range(1000, 1200);
	}
}

static void finish(void)
{
	WRITE_ONCE(torture_over, true);
	torture_onoff_stop();
	torture_writers_stop();
	torture_steady_stop();
	settle();
	torture_account_finish();
	torture_loose_finish();
	torture_free_finish();
	torture_pair_finish();
}

static int control(void *unused)
{
	char line[LINE];

	watch();
	finish();
	/* Pairs with result_show(): the counters are complete. */
	smp_store_release(&done, true);
	torture_line(line, sizeof(line), true);
	if (torture_failed())
		pr_err("%s\n", line);
	else
		pr_info("%s\n", line);

	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
	return 0;
}

static int result_show(struct seq_file *file, void *unused)
{
	char line[LINE];

	/* Pairs with control(): the counters are complete. */
	torture_line(line, sizeof(line), smp_load_acquire(&done));
	seq_printf(file, "%s\n", line);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int choose_cpus(void)
{
	cpumask_var_t mask;
	int cpu, ret = 0;

	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	if (!*cpus)
		cpumask_copy(mask, cpu_online_mask);
	else if (cpulist_parse(cpus, mask) || cpumask_empty(mask) ||
		 !cpumask_subset(mask, cpu_online_mask))
		ret = -EINVAL;
	if (ret) {
		pr_err("cpus=%s: not a list of online CPUs\n", cpus);
		goto out;
	}
	torture_cpus = kcalloc(cpumask_weight(mask), sizeof(*torture_cpus),
			       GFP_KERNEL);
	if (!torture_cpus)
		ret = -ENOMEM;
	else
		for_each_cpu(cpu, mask)
			torture_cpus[torture_cpu_count++] = cpu;
out:
	free_cpumask_var(mask);
	return ret;
}

#define refuse(name, value, why)					\
({									\
	pr_err(name "=%lu: " why "\n", (unsigned long)(value));		\
	-EINVAL;							\
})

static int check_parameters(void)
{
	if (!writers || writers > WRITERS_MOST)
		return refuse("writers", writers, "not 1 to 100");
	if (!timers || timers > TIMERS_MOST)
		return refuse("timers", timers, "not 1 to 1000000");
	if (!torture_reach)
		return refuse("reach_us", torture_reach, "must not be 0");
	if (rate > USEC_PER_SEC)
		return refuse("rate", rate, "more than 1000000");
	if (operations > S64_MAX)
		return refuse("operations", operations, "too many");
	if (onoffs && !onoff)
		return refuse("onoffs", onoffs, "requires onoff");
	if (onoff && !torture_onoff_possible())
		return refuse("onoff", onoff, "no CPU can go offline");
	return 0;
}

static int __init torture_init(void)
{
	int ret = choose_cpus();

	if (!ret)
		ret = check_parameters();
	if (ret)
		goto cpus;

	atomic64_set(&left, operations);
	ret = torture_account_setup(timers, seed);
	if (ret)
		goto cpus;
	ret = torture_loose_setup(timers, seed);
	if (ret)
		goto account;
	ret = torture_pair_setup(timers, seed);
	if (ret)
		goto loose;
	ret = torture_writers_start(writers, rate, seed);
	if (ret)
		goto run;
	torture_steady_start(seed);
	if (onoff)
		ret = torture_onoff_start(onoff, onoffs, seed);
	if (ret)
		goto run;
	task = kthread_run(control, NULL, "torture_control");
	if (IS_ERR(task)) {
		ret = PTR_ERR(task);
		goto run;
	}

	directory = debugfs_create_dir("apic_timer_torture", NULL);
	debugfs_create_file("result", 0400, directory, NULL, &result_fops);
	return 0;

run:
	finish();
	goto cpus;
loose:
	torture_loose_finish();
account:
	torture_account_finish();
cpus:
	kfree(torture_cpus);
	return ret;
}

static void __exit torture_exit(void)
{
	debugfs_remove(directory);
	/* A thread that is stopped before it first runs does not run at all. */
	if (kthread_stop(task) == -EINTR)
		finish();
	kfree(torture_cpus);
}

module_init(torture_init);
module_exit(torture_exit);

MODULE_DESCRIPTION("Torture test of apic_timer that accounts for every shot");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
