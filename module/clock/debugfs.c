// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/apic_clock/
 *
 *	clocks		the clocks that timers can expire by: their time at one TSC value,
 *			the possible error of a conversion, and their rate against the
 *			TSC's nominal one; and the attached PTP clocks
 *	stats		counters of the timers
 *	resync		the TSC's rate by another counter, and how far each CPU's TSC is
 *			behind because it has stopped; writing "compare" compares now
 *	skew		how far each CPU's TSC is ahead of the reference CPU's, with
 *			bounds; writing "measure" measures again, writing "write" corrects
 *			the TSCs by TSC_ADJUST
 *	verdict		what TSC values of different CPUs are worth to each other,
 *			preceded by the facts that it follows from
 */
#include <linux/apic_clock.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/uaccess.h>

#include "adjust.h"
#include "approach.h"
#include "debugfs.h"
#include "phc.h"
#include "resync.h"
#include "skew.h"
#include "verdict.h"
#include "worth.h"

static struct dentry *directory;

static const struct {
	clockid_t id;
	const char *name;
} clocks[] = {
	{ CLOCK_MONOTONIC, "monotonic" },
	{ CLOCK_MONOTONIC_RAW, "raw" },
	{ CLOCK_BOOTTIME, "boottime" },
	{ CLOCK_REALTIME, "realtime" },
	{ CLOCK_TAI, "tai" },
};

static int clocks_show(struct seq_file *file, void *unused)
{
	u64 now = apic_timer_now(), error;
	unsigned int i;
	ktime_t time;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		time = apic_timer_tsc_to_clock(clocks[i].id, now);
		apic_timer_clock_to_tsc(clocks[i].id, time, &error);
		seq_printf(file, "%s: %lld ns at TSC %llu, error %llu cycles, rate %+lld ppb\n",
			   clocks[i].name, time, now, error, apic_clock_rate_ppb(clocks[i].id));
	}
	apic_clock_phc_show(file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clocks);

static int stats_show(struct seq_file *file, void *unused)
{
	const struct apic_clock_stats *stats = &apic_clock_stats;

	seq_printf(file, "approached %lld\n", (s64)atomic64_read(&stats->approached));
	seq_printf(file, "checked %lld\n", (s64)atomic64_read(&stats->checked));
	seq_printf(file, "moved %lld\n", (s64)atomic64_read(&stats->moved));
	seq_printf(file, "stepped %lld\n", (s64)atomic64_read(&stats->stepped));
	seq_printf(file, "lost %lld\n", (s64)atomic64_read(&stats->lost));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int skew_show(struct seq_file *file, void *unused)
{
	struct apic_clock_skew skew;
	int cpu, ret;

	for_each_possible_cpu(cpu) {
		ret = apic_clock_get_skew(cpu, &skew);
		if (ret) {
			seq_printf(file, "cpu %d: not known (%d)\n", cpu, ret);
			continue;
		}
		if (cpu == skew.reference) {
			seq_printf(file, "cpu %d: reference\n", cpu);
			continue;
		}
		seq_printf(file, "cpu %d: %+lld cycles, within %lld to %lld, in steps of %llu, by %u round trips, %llu ms ago\n",
			   cpu, skew.offset, skew.low, skew.high, skew.quantum, skew.rounds,
			   div_u64(apic_timer_tsc_to_ns(apic_timer_now() - skew.measured),
				   NSEC_PER_MSEC));
	}
	return 0;
}

static int skew_open(struct inode *inode, struct file *file)
{
	return single_open(file, skew_show, NULL);
}

/* Check the word written to a file. */
static int check_word(const char __user *user, size_t size, const char *wanted)
{
	char word[16] = {};

	if (size >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, user, size))
		return -EFAULT;
	return sysfs_streq(word, wanted) ? 0 : -EINVAL;
}

static ssize_t skew_write(struct file *file, const char __user *user, size_t size, loff_t *pos)
{
	int ret = check_word(user, size, "measure");

	if (!ret)
		return apic_clock_skew_measure_all() ?: size;
	ret = check_word(user, size, "write");
	return ret ?: apic_clock_adjust() ?: size;
}

static const struct file_operations skew_fops = {
	.owner = THIS_MODULE,
	.open = skew_open,
	.read = seq_read,
	.write = skew_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int resync_show(struct seq_file *file, void *unused)
{
	apic_clock_resync_show(file);
	return 0;
}

static int resync_open(struct inode *inode, struct file *file)
{
	return single_open(file, resync_show, NULL);
}

static ssize_t resync_write(struct file *file, const char __user *user, size_t size, loff_t *pos)
{
	int ret = check_word(user, size, "compare");

	return ret ?: apic_clock_resync_now() ?: size;
}

static const struct file_operations resync_fops = {
	.owner = THIS_MODULE,
	.open = resync_open,
	.read = seq_read,
	.write = resync_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* Show further facts about each CPU. */
static void show_cpus(struct seq_file *file)
{
	struct apic_clock_resync resync;
	struct apic_clock_skew skew;
	s64 adjust;
	int cpu;

	for_each_online_cpu(cpu) {
		seq_printf(file, "cpu %d:", cpu);
		if (apic_clock_tsc_adjust(cpu, &adjust))
			seq_printf(file, " TSC_ADJUST %lld", adjust);
		else
			seq_puts(file, " no TSC_ADJUST");
		if (!apic_clock_get_skew(cpu, &skew))
			seq_printf(file, ", residue %llu of %llu", skew.residue, skew.quantum);
		if (!apic_clock_get_resync(cpu, &resync))
			seq_printf(file, ", stops %llu, lost %llu cycles, ahead %llu",
				   resync.stops, resync.lost, resync.ahead);
		seq_putc(file, '\n');
	}
}

static int verdict_show(struct seq_file *file, void *unused)
{
	static const char * const watches[] = {
		[APIC_CLOCK_WATCH_UNKNOWN] = "is not known to watch the TSC",
		[APIC_CLOCK_WATCH_OFF] = "does not watch the TSC",
		[APIC_CLOCK_WATCH_WAITS] = "has not compared the TSC yet",
		[APIC_CLOCK_WATCH_ON] = "watches the TSC",
	};
	static const char * const kinds[] = {
		[APIC_TIMER_TSC_PLAIN] = "its rate may change",
		[APIC_TIMER_TSC_CONSTANT] = "constant, may stop in idle",
		[APIC_TIMER_TSC_NONSTOP] = "constant, never stops",
	};
	struct apic_clock_verdict v;

	apic_clock_judge(&v);
	seq_printf(file, "TSC %s%s; counts in steps of %llu cycles; its frequency %s\n",
		   kinds[v.kind], v.sleepless ? ", not even in sleep" : "", v.quantum,
		   v.rate_given ? "was reported by the CPU" : "was measured by the kernel");
	seq_printf(file, "kernel %s; its clocks %s; its watchdog %s\n",
		   v.stable ? "trusts the TSC" : "has marked the TSC unstable",
		   v.clocksource ? "use the TSC" : "use another clocksource",
		   watches[v.watch]);
	seq_printf(file, "host %s%s%s\n", v.virtual ? v.hypervisor : "none",
		   v.virtual ? ": a hypervisor, which may move CPUs" : "",
		   v.vouched ? "; the TSC is reported to be the same on all CPUs" : "");
	seq_printf(file, "TSC_ADJUST %s; %s\n",
		   v.adjusted ? "differs between CPUs" : "equal or absent",
		   v.packages ? "several packages" : "one package");
	seq_printf(file, "skew known for %u CPUs, unknown for %u (%u contradictory); 0 is %s\n",
		   v.measured, v.unknown, v.contradicted, v.apart ? "excluded" : "possible");
	if (v.rate_known)
		seq_printf(file, "rate %+lld ppb of the kernel's frequency, within %llu; moved %u times\n",
			   v.rate_ppb, v.rate_error_ppb, v.rate_moved);
	else
		seq_puts(file, "rate not compared with another counter\n");
	if (v.raw_known)
		seq_printf(file, "raw %+lld ppb of CLOCK_MONOTONIC_RAW, within %llu\n",
			   v.raw_ppb, v.raw_error_ppb);
	else
		seq_puts(file, "raw not compared with CLOCK_MONOTONIC_RAW for long enough\n");
	seq_printf(file, "stops %llu found, ahead %llu times; %llu of these are certain; %u sleeps of the machine that it has not counted through\n",
		   v.stops, v.ahead, v.proven, v.slept);
	show_cpus(file);
	seq_printf(file, "reason %s\n", apic_clock_worth_reason(&v));
	seq_printf(file, "verdict %s", apic_clock_worth_name(v.worth));
	if (v.within == U64_MAX)
		seq_puts(file, "\n");
	else
		seq_printf(file, ": moments on two CPUs are the same within %llu cycles\n",
			   v.within);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(verdict);

/**
 * apic_clock_debugfs_init() - create the files; everything else works without them
 */
void apic_clock_debugfs_init(void)
{
	directory = debugfs_create_dir("apic_clock", NULL);
	debugfs_create_file("clocks", 0400, directory, NULL, &clocks_fops);
	debugfs_create_file("stats", 0400, directory, NULL, &stats_fops);
	debugfs_create_file("resync", 0600, directory, NULL, &resync_fops);
	debugfs_create_file("skew", 0600, directory, NULL, &skew_fops);
	debugfs_create_file("verdict", 0400, directory, NULL, &verdict_fops);
}

/**
 * apic_clock_debugfs_exit() - remove the files, waiting for their readers
 */
void apic_clock_debugfs_exit(void)
{
	debugfs_remove(directory);
}
