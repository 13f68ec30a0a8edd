// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/apic_timer/
 *
 *	info		source, hardware mode and TSC, by CPU; epoch of the TSC;
 *			default mode; which CPUs are kept out of deep idle
 *			states now
 *	lead		how early each mode arms, as estimated so far, by CPU;
 *			how shortly before an exact expiry the kernel's events
 *			are deferred; what a dispatch takes; in TSC cycles
 *	stats		counters by CPU: timers added, expired, late, times the
 *			hardware was programmed, ...
 *	pending		pending timers by CPU, in the order of expiry, with
 *			their handlers; at most 8 readers at a time
 *	errors		histogram of handler start - expiry, by CPU; writing
 *			"reset" empties it
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "attach.h"
#include "debugfs.h"
#include "lib/stats.h"
#include "mux/source.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "qos_requests.h"
#include "timers/base.h"
#include "timers/dispatch.h"
#include "tsc/tsc.h"

static struct dentry *directory;

static void qos_show(struct seq_file *file)
{
	const char *separator = "";
	unsigned int cpu;
	int us;

	seq_puts(file, "latency requests: ");
	for_each_possible_cpu(cpu) {
		us = apic_timer_qos_requested(cpu);
		if (us < 0)
			continue;
		seq_printf(file, "%scpu %u %d us", separator, cpu, us);
		separator = ", ";
	}
	seq_puts(file, *separator ? "\n" : "none\n");
}

static int info_show(struct seq_file *file, void *unused)
{
	struct apic_timer_info info;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (apic_timer_query(cpu, &info)) {
			seq_printf(file, "cpu %u: does not accept timers\n", cpu);
			continue;
		}
		seq_printf(file, "cpu %u: source %s, %s, TSC %u kHz, %s, %s\n",
			   cpu, info.source,
			   apic_timer_attach_hardware_name(&info), info.tsc_khz,
			   apic_timer_tsc_kind_name(info.tsc_kind),
			   info.tsc_stable ? "stable" : "unstable");
	}
	seq_printf(file, "TSC epoch: %u\n", apic_timer_epoch());
	seq_printf(file, "default mode: %s\n",
		   apic_timer_mode_name(apic_timer_mode_default));
	qos_show(file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(info);

static u64 peek(const u64 *value)
{
	/* Racy read: the CPU may write meanwhile, so values may be of different expiries. */
	return data_race(*value);
}

static int lead_show(struct seq_file *file, void *unused)
{
	const struct apic_timer_dispatch_cost *cost;
	const struct apic_timer_lead *lead;
	unsigned int cpu, state;

	for_each_possible_cpu(cpu) {
		lead = per_cpu_ptr(&apic_timer_lead, cpu);
		cost = per_cpu_ptr(&apic_timer_dispatch_cost, cpu);
		seq_printf(file, "cpu %u: exact %llu, %llu when the tick is stopped; mean", cpu,
			   peek(&lead->exact[0]), peek(&lead->exact[1]));
		for (state = 0; state < APIC_TIMER_CPU_STATES; state++)
			seq_printf(file, " %llu %s", peek(&lead->mean[state]),
				   apic_timer_cpu_state_name(state));
		seq_printf(file, "; defer %llu; dispatch %llu exact, %llu plain, call %llu, learn %llu, at once %llu, steps %llu\n",
			   peek(&lead->defer), peek(&cost->exact), peek(&cost->plain),
			   peek(&cost->call[APIC_TIMER_DISPATCH_WAIT]),
			   peek(&cost->learn),
			   peek(&cost->call[APIC_TIMER_DISPATCH_AT_ONCE]),
			   peek(&cost->steps));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(lead);

static int stats_show(struct seq_file *file, void *unused)
{
	unsigned int cpu, id;

	seq_printf(file, "%-16s", "cpu");
	for_each_possible_cpu(cpu)
		seq_printf(file, " %12u", cpu);
	for (id = 0; id < APIC_TIMER_STAT_COUNT; id++) {
		seq_printf(file, "\n%-16s", apic_timer_stats_name(id));
		for_each_possible_cpu(cpu)
			seq_printf(file, " %12llu",
				   apic_timer_stats_read(cpu, id));
	}
	seq_putc(file, '\n');
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/*
 * The pending timers, copied a few at a time: others may be added and deleted
 * meanwhile.
 */
struct pending {
	unsigned int cpu;
	struct apic_timer_queue_cursor cursor;
	unsigned int next, size;
	struct apic_timer_base_view views[APIC_TIMER_QUEUE_GROUP];
};

/*
 * Maximum number of readers: deleting a timer has to keep the position of each one up
 * to date.
 */
#define PENDING_READERS	8
static atomic_t pending_readers;

/* Go to the first timer of a CPU, or to the end. */
static void pending_go(struct pending *pending, unsigned int cpu)
{
	if (pending->cpu < nr_cpu_ids)
		apic_timer_base_snapshot_end(apic_timer_base_of(pending->cpu),
					     &pending->cursor);
	apic_timer_queue_cursor_init(&pending->cursor);
	pending->cpu = cpu;
	pending->next = 0;
	pending->size = 0;
}

/* Return the present view, or NULL after the last one of the last CPU. */
static void *pending_view(struct pending *pending)
{
	while (pending->next == pending->size) {
		if (pending->cpu >= nr_cpu_ids)
			return NULL;
		pending->next = 0;
		pending->size =
			apic_timer_base_snapshot(apic_timer_base_of(pending->cpu),
						 &pending->cursor, pending->views);
		if (!pending->size)
			pending_go(pending, cpumask_next(pending->cpu,
							 cpu_possible_mask));
	}
	return &pending->views[pending->next];
}

static void *pending_start(struct seq_file *file, loff_t *pos)
{
	struct pending *pending = file->private;

	/* At other positions, reading continues where it stopped. */
	if (!*pos)
		pending_go(pending, cpumask_first(cpu_possible_mask));
	return pending_view(pending);
}

static void *pending_next(struct seq_file *file, void *element, loff_t *pos)
{
	struct pending *pending = file->private;

	pending->next++;
	(*pos)++;
	cond_resched();
	return pending_view(pending);
}

static void pending_stop(struct seq_file *file, void *element)
{
}

static int pending_show(struct seq_file *file, void *element)
{
	const struct apic_timer_base_view *view = element;
	const struct pending *pending = file->private;
	u64 now = apic_timer_tsc_now();
	s64 ahead = view->expires - now;

	/* Without this, a timer that never expires would seem to be the most overdue one. */
	if (view->expires > now && ahead < 0)
		ahead = S64_MAX;
	seq_printf(file, "cpu %u: expires %llu, in %lld cycles, flags %#x, %ps\n",
		   pending->cpu, view->expires, ahead, view->flags, view->function);
	return 0;
}

static const struct seq_operations pending_sops = {
	.start = pending_start,
	.next = pending_next,
	.stop = pending_stop,
	.show = pending_show,
};

static int pending_open(struct inode *inode, struct file *file)
{
	struct pending *pending;

	if (!atomic_add_unless(&pending_readers, 1, PENDING_READERS))
		return -EBUSY;
	pending = __seq_open_private(file, &pending_sops, sizeof(*pending));
	if (!pending) {
		atomic_dec(&pending_readers);
		return -ENOMEM;
	}
	pending->cpu = nr_cpu_ids;
	return 0;
}

static int pending_release(struct inode *inode, struct file *file)
{
	struct seq_file *seq = file->private_data;

	pending_go(seq->private, nr_cpu_ids);
	atomic_dec(&pending_readers);
	return seq_release_private(inode, file);
}

static const struct file_operations pending_fops = {
	.owner = THIS_MODULE,
	.open = pending_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = pending_release,
};

/* A row for each bucket: its range of errors in cycles, then counts by CPU. */
static void errors_row(struct seq_file *file, unsigned int early,
		       unsigned int bucket)
{
	u64 low = bucket ? 1ULL << (bucket - 1) : 0;
	u64 high = bucket ? low - 1 + low : 0;
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(apic_timer_stats, cpu)
				 .error[early][bucket]);
	if (!sum)
		return;

	seq_printf(file, "%s%llu..%llu", early ? "-" : "", low, high);
	for_each_possible_cpu(cpu)
		seq_printf(file, " %llu",
			   READ_ONCE(per_cpu(apic_timer_stats, cpu)
				     .error[early][bucket]));
	seq_putc(file, '\n');
}

static int errors_show(struct seq_file *file, void *unused)
{
	unsigned int cpu, bucket;

	seq_puts(file, "cycles");
	for_each_possible_cpu(cpu)
		seq_printf(file, " cpu%u", cpu);
	seq_putc(file, '\n');

	for (bucket = APIC_TIMER_STATS_BUCKETS; bucket-- > 1;)
		errors_row(file, 1, bucket);
	for (bucket = 0; bucket < APIC_TIMER_STATS_BUCKETS; bucket++)
		errors_row(file, 0, bucket);
	return 0;
}

static int errors_open(struct inode *inode, struct file *file)
{
	return single_open(file, errors_show, NULL);
}

static ssize_t errors_write(struct file *file, const char __user *user,
			    size_t size, loff_t *pos)
{
	char word[8] = {};

	if (size >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, user, size))
		return -EFAULT;
	if (!sysfs_streq(word, "reset"))
		return -EINVAL;

	apic_timer_stats_reset_errors();
	return size;
}

static const struct file_operations errors_fops = {
	.owner = THIS_MODULE,
	.open = errors_open,
	.read = seq_read,
	.write = errors_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/**
 * apic_timer_debugfs_init() - create the files
 *
 * Errors are ignored: the module works without them.
 */
void apic_timer_debugfs_init(void)
{
	directory = debugfs_create_dir("apic_timer", NULL);
	debugfs_create_file("info", 0400, directory, NULL, &info_fops);
	debugfs_create_file("lead", 0400, directory, NULL, &lead_fops);
	debugfs_create_file("stats", 0400, directory, NULL, &stats_fops);
	debugfs_create_file("pending", 0400, directory, NULL, &pending_fops);
	debugfs_create_file("errors", 0600, directory, NULL, &errors_fops);
}

/**
 * apic_timer_debugfs_exit() - remove the files, waiting for their readers
 */
void apic_timer_debugfs_exit(void)
{
	debugfs_remove(directory);
}
