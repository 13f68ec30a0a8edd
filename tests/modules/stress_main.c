// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_stress: random operations from all CPUs at once, and an account of
 * every shot.
 *
 * Write anything to /sys/kernel/debug/apic_timer_stress/run; it returns when
 * done. Then "result" has one line of what was counted, "ok" or "FAIL" first.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "stress.h"

static unsigned int operations = 1000000;
module_param(operations, uint, 0644);
MODULE_PARM_DESC(operations, "calls of the interface, from threads and handlers");

static unsigned int seed = 1;
module_param(seed, uint, 0644);
MODULE_PARM_DESC(seed, "of the random numbers");

static unsigned int timers = 200;
module_param(timers, uint, 0644);
MODULE_PARM_DESC(timers, "shared by all threads, of each kind");

static unsigned int threads = 1;
module_param(threads, uint, 0644);
MODULE_PARM_DESC(threads, "per CPU");

DEFINE_PER_CPU(struct stress_counts, stress_counts);
bool stress_over;

static DEFINE_MUTEX(lock);		/* one run at a time */
static struct dentry *directory;
static atomic_t left;			/* operations */
static atomic_t running;		/* threads */
static atomic_t faults;
static char first_fault[160];
static bool ran;

/**
 * stress_operation() - ask for an operation
 *
 * Return: false when none is left.
 */
bool stress_operation(void)
{
	if (READ_ONCE(stress_over))
		return false;
	if (atomic_dec_return(&left) < 0) {
		WRITE_ONCE(stress_over, true);
		return false;
	}
	stress_inc(OPERATIONS);
	return true;
}

/**
 * stress_fault() - something happened that must not
 * @format:	as for printf()
 *
 * Context: Any. The first one is kept.
 */
void stress_fault(const char *format, ...)
{
	va_list args;

	if (atomic_inc_return(&faults) != 1)
		return;
	va_start(args, format);
	vscnprintf(first_fault, sizeof(first_fault), format, args);
	va_end(args);
}

/**
 * stress_random() - a random number
 * @state:	of the generator, not 0
 *
 * Return: 32 bits.
 */
u32 stress_random(u32 *state)
{
	u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

/**
 * stress_moment() - a random moment: mostly soon, some past, some never
 * @state:	of the generator
 *
 * Return: absolute TSC.
 */
u64 stress_moment(u32 *state)
{
	u32 kind = stress_random(state) >> 8, part = stress_random(state) >> 8;
	u64 now = apic_timer_now();

	switch (kind % 16) {
	case 0:
		return now - apic_timer_us_to_tsc(part % 100);
	case 1:
		return now + apic_timer_us_to_tsc(3600000000ULL + part);
	case 2 ... 3:
		return now + apic_timer_us_to_tsc(part % 20000);
	case 4 ... 8:
		return now + apic_timer_us_to_tsc(part % 2000);
	default:
		return now + apic_timer_ns_to_tsc(part % 200000);
	}
}

/**
 * stress_cpu() - a random CPU
 * @state:	of the generator
 *
 * Return: a CPU that is online.
 */
int stress_cpu(u32 *state)
{
	unsigned int n = (stress_random(state) >> 8) % num_online_cpus();
	int cpu;

	for_each_online_cpu(cpu)
		if (!n--)
			break;
	return cpu;
}

static int thread(void *data)
{
	u32 state = (unsigned long)data;

	while (!READ_ONCE(stress_over)) {
		switch ((stress_random(&state) >> 8) % 8) {
		case 0:
			stress_free_step(&state);
			break;
		case 1 ... 2:
			stress_loose_step(&state);
			break;
		default:
			stress_account_step(&state);
		}
		cond_resched();
		/* Now and then let the others alone. */
		if (!((stress_random(&state) >> 8) % 512))
			usleep_range(100, 200);
	}
	atomic_dec(&running);
	return 0;
}

static int start_threads(void)
{
	struct task_struct *task;
	unsigned int i;
	u32 state = seed * 2654435761U | 1;
	int cpu;

	for_each_online_cpu(cpu) {
		for (i = 0; i < threads; i++) {
			stress_random(&state);
			task = kthread_create(thread,
					      (void *)(unsigned long)state,
					      "stress/%d:%u", cpu, i);
			if (IS_ERR(task))
				return PTR_ERR(task);
			kthread_bind(task, cpu);
			atomic_inc(&running);
			wake_up_process(task);
		}
	}
	return 0;
}

/* What is armed for soon runs, then nothing is armed again. */
static void settle(void)
{
	unsigned int i;

	for (i = 0; stress_account_busy() || stress_free_busy(); i++) {
		if (i == 10000) {
			stress_fault("a shot is overdue by seconds");
			break;
		}
		usleep_range(1000, 1200);
	}
}

static int run(void)
{
	int cpu, ret;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&stress_counts, cpu), 0,
		       sizeof(stress_counts));
	atomic_set(&left, operations);
	atomic_set(&faults, 0);
	stress_over = false;

	ret = stress_account_setup(timers, seed);
	if (!ret)
		ret = stress_loose_setup(timers, seed);
	if (!ret) {
		stress_free_setup();
		ret = start_threads();
	}
	if (ret)
		WRITE_ONCE(stress_over, true);
	while (atomic_read(&running))
		usleep_range(10000, 11000);

	settle();
	stress_account_finish();
	stress_loose_finish();
	stress_free_finish();
	ran = true;
	return ret;
}

static ssize_t run_write(struct file *file, const char __user *user,
			 size_t size, loff_t *pos)
{
	int ret;

	mutex_lock(&lock);
	ret = run();
	mutex_unlock(&lock);
	return ret ?: size;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
};

static int result_show(struct seq_file *file, void *unused)
{
	static const char * const names[STRESS_COUNT_COUNT] = {
		[STRESS_OPERATIONS] = "operations",
		[STRESS_ARMED] = "armed",
		[STRESS_RAN] = "ran",
		[STRESS_DELETED] = "deleted",
		[STRESS_SUPERSEDED] = "superseded",
		[STRESS_WAITED] = "waited",
		[STRESS_BUSY] = "busy",
		[STRESS_FREED] = "freed",
	};
	unsigned int i;
	int cpu;

	mutex_lock(&lock);
	seq_puts(file, !ran || atomic_read(&faults) ? "FAIL" : "ok");
	for (i = 0; i < STRESS_COUNT_COUNT; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += per_cpu(stress_counts, cpu).count[i];
		seq_printf(file, " %s=%llu", names[i], sum);
	}
	seq_printf(file, " faults=%d", atomic_read(&faults));
	if (atomic_read(&faults))
		seq_printf(file, " first: %s", first_fault);
	else if (!ran)
		seq_puts(file, " not run");
	seq_putc(file, '\n');
	mutex_unlock(&lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int __init stress_init(void)
{
	directory = debugfs_create_dir("apic_timer_stress", NULL);
	debugfs_create_file("run", 0200, directory, NULL, &run_fops);
	debugfs_create_file("result", 0400, directory, NULL, &result_fops);
	return 0;
}

static void __exit stress_exit(void)
{
	debugfs_remove(directory);
}

module_init(stress_init);
module_exit(stress_exit);

MODULE_DESCRIPTION("Stress of apic_timer, with an account of every shot");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
