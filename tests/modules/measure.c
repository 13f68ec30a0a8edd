// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_measure: how late timers are, ours and the kernel's.
 *
 * One kind of timer at a time is armed again and again, each time at a random
 * distance, and the error of each shot is kept: TSC at the handler's first
 * instruction - the moment wanted, in TSC cycles. Driven through
 * /sys/kernel/debug/apic_timer_measure/:
 *
 *	run	write "TIMER SHOTS MIN_NS MAX_NS SEED": runs on the CPU of the
 *		writer and returns when done. TIMER is apic_timer, hrtimer_hard
 *		or timer_list. Distances are spread evenly over the logarithm.
 *	errors	the errors of the last run, one signed number a line
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/seq_file.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/apic_timer.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "compat/hrtimer.h"

#define SHOTS_MAX	1000000

/* One run: its parameters, and what came of it. */
static struct {
	const struct rival *rival;
	unsigned int shots, done;
	u64 min_ns, max_ns;
	struct rnd_state random;
	u64 wanted;		/* TSC at which the present shot should start */
	ktime_t wanted_time;	/* the same for timers that go by the clock */
	s64 *errors;
	struct completion end;
} run;

static DEFINE_MUTEX(run_lock);

/**
 * struct rival - a kind of timer
 * @name:	as written to "run"
 * @arm:	arm it @ns nanoseconds from now
 * @cancel:	delete it and wait for its handler
 */
struct rival {
	const char *name;
	int (*arm)(u64 ns);
	void (*cancel)(void);
};

/* A random distance in ns: an octave first, then a place in it. */
static u64 random_distance(void)
{
	u64 octave = run.min_ns;

	octave <<= prandom_u32_state(&run.random) %
		   (ilog2(run.max_ns / run.min_ns) + 1);
	return min(octave + mul_u64_u32_shr(octave,
					    prandom_u32_state(&run.random), 32),
		   run.max_ns);
}

/* A handler's end: keep the error, arm the next shot. */
static void next_shot(s64 error)
{
	run.errors[run.done++] = error;
	if (run.done == run.shots || run.rival->arm(random_distance()))
		complete(&run.end);
}

static void apic_timer_handler(unsigned long long now, unsigned long data)
{
	u64 tsc = rdtsc_ordered();

	next_shot(tsc - run.wanted);
}

static DEFINE_APIC_TIMER(apic_timer, apic_timer_handler, 0);

static int apic_timer_arm(u64 ns)
{
	run.wanted = apic_timer_add_tsc(rdtsc_ordered(),
					apic_timer_ns_to_tsc(ns));
	return mod_apic_timer(&apic_timer, run.wanted) < 0;
}

static void apic_timer_cancel(void)
{
	del_apic_timer_sync(&apic_timer);
}

/*
 * An hrtimer goes by the kernel's clock, so that clock judges it, not the TSC:
 * the time of the TSC read is worked out from a reading of both that follows.
 */
static enum hrtimer_restart hrtimer_handler(struct hrtimer *timer)
{
	u64 tsc = rdtsc_ordered();
	ktime_t time = apic_timer_tsc_to_ktime(tsc);
	s64 ns = ktime_sub(time, run.wanted_time);

	next_shot(ns < 0 ? -(s64)apic_timer_ns_to_tsc(-ns) :
			   (s64)apic_timer_ns_to_tsc(ns));
	return HRTIMER_NORESTART;
}

static struct hrtimer hrtimer;

static int hrtimer_arm(u64 ns)
{
	run.wanted_time = ktime_add_ns(ktime_get(), ns);
	hrtimer_start(&hrtimer, run.wanted_time, HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static void hrtimer_stop(void)
{
	hrtimer_cancel(&hrtimer);
}

static void timer_list_handler(struct timer_list *timer)
{
	u64 tsc = rdtsc_ordered();

	next_shot(tsc - run.wanted);
}

static DEFINE_TIMER(timer_list, timer_list_handler);

static int timer_list_arm(u64 ns)
{
	run.wanted = rdtsc_ordered() + apic_timer_ns_to_tsc(ns);
	mod_timer(&timer_list,
		  jiffies + usecs_to_jiffies(div_u64(ns, NSEC_PER_USEC)));
	return 0;
}

static void timer_list_cancel(void)
{
	timer_delete_sync(&timer_list);
}

static const struct rival rivals[] = {
	{ "apic_timer", apic_timer_arm, apic_timer_cancel },
	{ "hrtimer_hard", hrtimer_arm, hrtimer_stop },
	{ "timer_list", timer_list_arm, timer_list_cancel },
};

static int measure(void)
{
	int ret;

	init_completion(&run.end);
	run.done = 0;
	preempt_disable();
	ret = run.rival->arm(random_distance());
	preempt_enable();
	if (ret)
		return -EIO;

	ret = wait_for_completion_killable(&run.end);
	run.rival->cancel();
	return ret ?: run.done == run.shots ? 0 : -EIO;
}

static ssize_t run_write(struct file *file, const char __user *user,
			 size_t size, loff_t *pos)
{
	char text[80] = {}, name[16];
	unsigned int shots, i;
	u64 min_ns, max_ns, seed;
	int ret = -EINVAL;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, size))
		return -EFAULT;
	if (sscanf(text, "%15s %u %llu %llu %llu", name, &shots, &min_ns,
		   &max_ns, &seed) != 5 || !shots || shots > SHOTS_MAX ||
	    !min_ns || max_ns < min_ns)
		return -EINVAL;

	mutex_lock(&run_lock);
	for (i = 0; i < ARRAY_SIZE(rivals); i++) {
		if (strcmp(name, rivals[i].name))
			continue;
		run.rival = &rivals[i];
		run.shots = shots;
		run.min_ns = min_ns;
		run.max_ns = max_ns;
		prandom_seed_state(&run.random, seed);
		ret = measure();
		break;
	}
	mutex_unlock(&run_lock);
	return ret ?: size;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
};

static int errors_show(struct seq_file *file, void *unused)
{
	unsigned int i;

	mutex_lock(&run_lock);
	for (i = 0; i < run.done; i++)
		seq_printf(file, "%lld\n", run.errors[i]);
	mutex_unlock(&run_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(errors);

static struct dentry *directory;

static int __init measure_init(void)
{
	run.errors = vzalloc(SHOTS_MAX * sizeof(*run.errors));
	if (!run.errors)
		return -ENOMEM;

	apic_timer_hrtimer_setup(&hrtimer, hrtimer_handler, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	directory = debugfs_create_dir("apic_timer_measure", NULL);
	debugfs_create_file("run", 0200, directory, NULL, &run_fops);
	debugfs_create_file("errors", 0400, directory, NULL, &errors_fops);
	return 0;
}

static void __exit measure_exit(void)
{
	debugfs_remove(directory);
	vfree(run.errors);
}

module_init(measure_init);
module_exit(measure_exit);

MODULE_DESCRIPTION("How late timers are: apic_timer's and the kernel's");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
