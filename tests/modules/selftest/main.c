// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_selftest: every call of the interface, in a live kernel.
 *
 * Driven through /sys/kernel/debug/apic_timer_selftest/:
 *
 *	cases	the cases that this machine has enough CPUs for, one a line
 *	run	write a case's name: runs it, and returns when done
 *	result	"ok" or "FAIL file:line what, values", then lines of figures
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "selftest.h"

static const struct selftest_case * const parts[] = {
	selftest_unit_cases,
	selftest_refuse_cases,
	selftest_shot_cases,
	selftest_change_cases,
	selftest_handler_cases,
	selftest_period_cases,
	selftest_cross_cases,
	selftest_fence_cases,
	selftest_sync_cases,
	selftest_bulk_cases,
	selftest_cost_cases,
	selftest_bounded_cases,
	selftest_legacy_cases,
	selftest_hotplug_cases,
	selftest_lost_cases,
	selftest_clock_cases,
	selftest_skew_cases,
	selftest_shutdown_cases,
};

static struct dentry *directory;
static DEFINE_MUTEX(lock);		/* one case at a time */
static struct selftest test = { .failed = true, .failure = "no case was run" };

static const struct selftest_case *find(const char *name)
{
	const struct selftest_case *c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		for (c = parts[i]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	return NULL;
}

static int cases_show(struct seq_file *file, void *unused)
{
	const struct selftest_case *c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		for (c = parts[i]; c->name; c++)
			if (c->cpus <= num_online_cpus())
				seq_printf(file, "%s\n", c->name);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static int result_show(struct seq_file *file, void *unused)
{
	mutex_lock(&lock);
	if (test.failed)
		seq_printf(file, "FAIL %s\n", test.failure);
	else
		seq_puts(file, "ok\n");
	seq_puts(file, test.notes);
	mutex_unlock(&lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int run_case(void *data)
{
	const struct selftest_case *c = data;

	c->run(&test);
	return 0;
}

static ssize_t run_write(struct file *file, const char __user *user,
			 size_t size, loff_t *pos)
{
	const struct selftest_case *c;
	char name[64] = {};
	int ret;

	if (size >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, user, size))
		return -EFAULT;
	c = find(strim(name));
	if (!c || c->cpus > num_online_cpus())
		return -EINVAL;

	mutex_lock(&lock);
	memset(&test, 0, sizeof(test));
	ret = smp_call_on_cpu(cpumask_first(cpu_online_mask), run_case,
			      (void *)c, false);
	mutex_unlock(&lock);
	return ret ?: size;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
};

static int __init selftest_init(void)
{
	directory = debugfs_create_dir("apic_timer_selftest", NULL);
	debugfs_create_file("cases", 0400, directory, NULL, &cases_fops);
	debugfs_create_file("run", 0200, directory, NULL, &run_fops);
	debugfs_create_file("result", 0400, directory, NULL, &result_fops);
	return 0;
}

static void __exit selftest_exit(void)
{
	debugfs_remove(directory);
}

module_init(selftest_init);
module_exit(selftest_exit);

MODULE_DESCRIPTION("Functional test of apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
