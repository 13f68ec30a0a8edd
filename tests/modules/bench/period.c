// SPDX-License-Identifier: GPL-2.0
/*
 * Measure periodic timers: lost moments, and the kernel's tick meanwhile.
 *
 * Write MODE PERIOD_NS RUN_MS to "period"; MODE is a number of APIC_TIMER_*. "period_result" then
 * has, one per line: handlers run, moments lost (skipped because the handler was not finished by
 * then), overruns (times that any were lost), jiffies passed, jiffies due, and the maximum
 * lateness in jiffies of a timer_list every 100 ms: jiffies pass in any interrupt, but only a CPU
 * that makes progress runs such timers. "period_errors" counts the errors: u32 for each error from
 * -BINS / 2 to BINS / 2 - 1 cycles; "samples" has those outside.
 */
#include <linux/apic_timer.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#include "bench.h"
#include "period.h"

#define BINS	131072U

static u32 *bins;
static struct debugfs_blob_wrapper bins_blob;
static struct dentry *files[3];

static struct {
	struct apic_timer_period period;
	u64 end;		/* TSC: no moment counts from here on */
	u64 ran, lost, overruns;
	unsigned long jiffies, jiffies_wanted;
	unsigned long timer_late;	/* jiffies */
	struct completion done;
} run;

static struct apic_timer_list timer;

static noinline void period_shot(u64 now, u64 tsc)
{
	s64 error = tsc - timer.expires;
	u64 moved;

	if (tsc >= run.end) {
		complete(&run.done);
		return;
	}
	run.ran++;
	if (error >= -(s64)(BINS / 2) && error < BINS / 2)
		bins[error + BINS / 2]++;
	else
		bench_sample(error);

	moved = apic_timer_forward_period(&timer, &run.period, now);
	if (moved > 1) {
		run.lost += moved - 1;
		run.overruns++;
	}
	if (add_apic_timer(&timer) < 0)
		complete(&run.done);
}

static void period_handler(unsigned long long now, unsigned long data)
{
	u64 tsc = rdtsc_ordered();

	period_shot(now, tsc);
}

static void look_at_timer(const struct timer_list *kernels)
{
	long late = jiffies - kernels->expires;

	run.timer_late = max_t(long, run.timer_late, late);
}

static void kernels_timer_handler(struct timer_list *kernels)
{
	look_at_timer(kernels);
	mod_timer(kernels, jiffies + HZ / 10);
}

static DEFINE_TIMER(kernels_timer, kernels_timer_handler);

static int measure(unsigned int mode, u64 period_ns, u64 run_ms)
{
	unsigned long started;
	int ret;

	memset(bins, 0, BINS * sizeof(*bins));
	memset(&run, 0, sizeof(run));
	init_completion(&run.done);
	bench_samples_reset();

	timer.function = period_handler;
	timer.data = 0;
	init_apic_timer(&timer);
	timer.flags = mode;

	preempt_disable();
	run.period.period_ns = period_ns;
	run.period.start = apic_timer_add_tsc(rdtsc_ordered(),
					      apic_timer_us_to_tsc(1000));
	run.end = apic_timer_add_tsc(run.period.start,
				     apic_timer_us_to_tsc(run_ms * 1000));
	timer.expires = run.period.start;
	started = jiffies;
	ret = add_apic_timer(&timer);
	if (!ret) {
		kernels_timer.expires = jiffies + HZ / 10;
		add_timer_on(&kernels_timer, smp_processor_id());
	}
	preempt_enable();
	if (ret)
		return ret;

	ret = wait_for_completion_killable(&run.done);
	run.jiffies = jiffies - started;
	run.jiffies_wanted = msecs_to_jiffies(run_ms);
	if (timer_delete_sync(&kernels_timer))
		look_at_timer(&kernels_timer);
	del_apic_timer_sync(&timer);
	return ret;
}

static ssize_t period_write(struct file *file, const char __user *user,
			    size_t size, loff_t *pos)
{
	char text[60];
	unsigned int mode;
	u64 period_ns, run_ms;
	int ret = bench_command(user, size, text, sizeof(text));

	if (ret)
		return ret;
	if (sscanf(text, "%u %llu %llu", &mode, &period_ns, &run_ms) != 3 ||
	    !period_ns || !run_ms)
		return -EINVAL;
	bench_lock();
	ret = measure(mode, period_ns, run_ms);
	bench_unlock();
	return ret ?: size;
}

static const struct file_operations period_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = period_write,
};

static int period_result_show(struct seq_file *file, void *unused)
{
	bench_lock();
	seq_printf(file, "%llu\n%llu\n%llu\n%lu\n%lu\n%lu\n", run.ran,
		   run.lost, run.overruns, run.jiffies, run.jiffies_wanted,
		   run.timer_late);
	bench_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(period_result);

/**
 * bench_period_init() - make the files
 *
 * Return: 0, or -ENOMEM.
 */
int bench_period_init(void)
{
	bins = vzalloc(BINS * sizeof(*bins));
	if (!bins)
		return -ENOMEM;
	bins_blob.data = bins;
	bins_blob.size = BINS * sizeof(*bins);
	files[0] = debugfs_create_file("period", 0200, bench_directory, NULL,
				       &period_fops);
	files[1] = debugfs_create_file("period_result", 0400, bench_directory,
				       NULL, &period_result_fops);
	files[2] = debugfs_create_blob("period_errors", 0400, bench_directory,
				       &bins_blob);
	return 0;
}

/**
 * bench_period_exit() - remove the files
 */
void bench_period_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		debugfs_remove(files[i]);
	vfree(bins);
}
