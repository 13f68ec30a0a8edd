// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_bench: measures timers, by itself the kernel's, and those that apic_timer_bench_ours
 * adds. It does not need apic_timer, so that the kernel can also be measured without it.
 *
 * Files in /sys/kernel/debug/apic_timer_bench/; a write returns when the work is done, and works
 * on the writer's CPU:
 *
 *	run	shots one after the other, see shots.c
 *	cost	cycles that operations take, see cost.c
 *	clocks	cycles that reading a clock takes, see clocks.c
 *	load	a load to measure under, see load.c
 *	samples	what the last of run, cost and clocks has measured: s64 each
 *	excess	by how much each shot was later than interrupts were off: s64
 *	elapsed	TSC cycles that the last run took
 *	tsc_khz	TSC frequency
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "bench.h"

struct dentry *bench_directory;
EXPORT_SYMBOL_GPL(bench_directory);

static DEFINE_MUTEX(lock);	/* one measurement at a time; the lists */
static LIST_HEAD(ops_list);
static struct debugfs_blob_wrapper samples;

/**
 * bench_lock() - keep other measurements out
 */
void bench_lock(void)
{
	mutex_lock(&lock);
}
EXPORT_SYMBOL_GPL(bench_lock);

/**
 * bench_unlock() - let other measurements in
 */
void bench_unlock(void)
{
	mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(bench_unlock);

/**
 * bench_samples_reset() - forget the samples
 */
void bench_samples_reset(void)
{
	samples.size = 0;
}
EXPORT_SYMBOL_GPL(bench_samples_reset);

/**
 * bench_sample() - keep a sample
 * @sample:	TSC cycles; dropped when there is no room
 *
 * Context: Any, but one at a time.
 */
void bench_sample(s64 sample)
{
	if (samples.size == BENCH_SHOTS_MAX * sizeof(s64))
		return;
	*(s64 *)(samples.data + samples.size) = sample;
	samples.size += sizeof(s64);
}
EXPORT_SYMBOL_GPL(bench_sample);

/**
 * bench_command() - read what was written to a file
 * @user:	user memory
 * @size:	bytes there
 * @text:	destination, as a string
 * @room:	bytes there
 *
 * Return: 0, -EINVAL when it is too long, -EFAULT.
 */
ssize_t bench_command(const char __user *user, size_t size, char *text,
		      size_t room)
{
	if (size >= room)
		return -EINVAL;
	memset(text, 0, room);
	return copy_from_user(text, user, size) ? -EFAULT : 0;
}
EXPORT_SYMBOL_GPL(bench_command);

/**
 * bench_write() - execute a command that was written to a file
 * @user:	user memory
 * @size:	bytes there
 * @command:	executes it, under bench_lock(); returns 0 or an error
 *
 * Return: @size or an error.
 */
ssize_t bench_write(const char __user *user, size_t size,
		    int (*command)(const char *text))
{
	char text[120];
	int ret = bench_command(user, size, text, sizeof(text));

	if (ret)
		return ret;
	bench_lock();
	ret = command(text);
	bench_unlock();
	return ret ?: size;
}

/**
 * bench_register_shots() - add a kind of timer to "run"
 * @shots:	the kind
 */
void bench_register_shots(struct bench_shots *shots)
{
	bench_lock();
	list_add_tail(&shots->list, &bench_shots_list);
	bench_unlock();
}
EXPORT_SYMBOL_GPL(bench_register_shots);

/**
 * bench_unregister_shots() - remove a kind of timer from "run"
 * @shots:	the kind
 */
void bench_unregister_shots(struct bench_shots *shots)
{
	bench_lock();
	list_del(&shots->list);
	bench_unlock();
}
EXPORT_SYMBOL_GPL(bench_unregister_shots);

/**
 * bench_register_ops() - add a kind of timer to "cost"
 * @ops:	the kind
 */
void bench_register_ops(struct bench_ops *ops)
{
	bench_lock();
	list_add_tail(&ops->list, &ops_list);
	bench_unlock();
}
EXPORT_SYMBOL_GPL(bench_register_ops);

/**
 * bench_unregister_ops() - remove a kind of timer from "cost"
 * @ops:	the kind; its pending timers are deleted
 */
void bench_unregister_ops(struct bench_ops *ops)
{
	bench_lock();
	bench_cost_end(ops);
	list_del(&ops->list);
	bench_unlock();
}
EXPORT_SYMBOL_GPL(bench_unregister_ops);

/**
 * bench_find_ops() - find a kind of timer of "cost"
 * @name:	its name
 *
 * Context: under bench_lock().
 * Return: the kind, or NULL.
 */
struct bench_ops *bench_find_ops(const char *name)
{
	struct bench_ops *ops;

	list_for_each_entry(ops, &ops_list, list)
		if (!strcmp(ops->name, name))
			return ops;
	return NULL;
}

static int __init bench_init(void)
{
	samples.data = vzalloc(BENCH_SHOTS_MAX * sizeof(s64));
	bench_excess = vzalloc(BENCH_SHOTS_MAX * sizeof(s64));
	if (!samples.data || !bench_excess) {
		vfree(samples.data);
		vfree(bench_excess);
		return -ENOMEM;
	}
	bench_excess_blob.data = bench_excess;

	bench_kernel_init();
	bench_clocks_init();
	bench_directory = debugfs_create_dir("apic_timer_bench", NULL);
	debugfs_create_file("run", 0200, bench_directory, NULL,
			    &bench_run_fops);
	debugfs_create_file("cost", 0200, bench_directory, NULL,
			    &bench_cost_fops);
	debugfs_create_file("clocks", 0200, bench_directory, NULL,
			    &bench_clocks_fops);
	debugfs_create_file("load", 0200, bench_directory, NULL,
			    &bench_load_fops);
	debugfs_create_blob("samples", 0400, bench_directory, &samples);
	debugfs_create_blob("excess", 0400, bench_directory,
			    &bench_excess_blob);
	debugfs_create_u64("elapsed", 0400, bench_directory, &bench_elapsed);
	debugfs_create_u32("tsc_khz", 0400, bench_directory, &tsc_khz);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(bench_directory);
	bench_load_exit();
	bench_kernel_exit();
	bench_cost_exit();
	bench_clocks_exit();
	vfree(bench_excess);
	vfree(samples.data);
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of timers");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
