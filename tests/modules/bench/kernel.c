// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's own timers: hrtimers in hard and soft interrupt context,
 * timer_list, and a thread that sleeps.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/timer.h>

#include "bench.h"
#include "compat/hrtimer.h"

static struct hrtimer hard, soft;
static ktime_t wanted_time;	/* of an hrtimer's shot */
static u64 wanted;		/* of another kind's: TSC */

/*
 * An hrtimer is based on the kernel's clock, so that clock judges it, not the TSC: the time of the
 * TSC read is computed from a later reading of both.
 */
static noinline void hrtimer_shot(u64 tsc)
{
	u64 before, after;
	ktime_t time;
	s64 late;

	before = rdtsc_ordered();
	time = ktime_get();
	after = rdtsc_ordered();
	late = ktime_to_ns(ktime_sub(time, wanted_time));
	late = late < 0 ? -(s64)bench_cycles(-late) : (s64)bench_cycles(late);
	bench_shot(tsc, late - (s64)(before + (after - before) / 2 - tsc));
}

static enum hrtimer_restart hrtimer_handler(struct hrtimer *timer)
{
	u64 tsc = rdtsc_ordered();

	hrtimer_shot(tsc);
	return HRTIMER_NORESTART;
}

static int hard_arm(u64 ns)
{
	wanted_time = ktime_add_ns(ktime_get(), ns);
	hrtimer_start(&hard, wanted_time, HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static int hard_start(u64 ns, u64 spin_ns)
{
	return hard_arm(ns);
}

static void hard_stop(void)
{
	hrtimer_cancel(&hard);
}

static int soft_arm(u64 ns)
{
	wanted_time = ktime_add_ns(ktime_get(), ns);
	hrtimer_start(&soft, wanted_time, HRTIMER_MODE_ABS_PINNED_SOFT);
	return 0;
}

static int soft_start(u64 ns, u64 spin_ns)
{
	return soft_arm(ns);
}

static void soft_stop(void)
{
	hrtimer_cancel(&soft);
}

static void timer_list_handler(struct timer_list *timer)
{
	u64 tsc = rdtsc_ordered();

	bench_shot(tsc, tsc - wanted);
}

static DEFINE_TIMER(timer_list, timer_list_handler);

static int timer_list_arm(u64 ns)
{
	wanted = rdtsc_ordered() + bench_cycles(ns);
	mod_timer(&timer_list,
		  jiffies + usecs_to_jiffies(div_u64(ns, NSEC_PER_USEC)));
	return 0;
}

static int timer_list_start(u64 ns, u64 spin_ns)
{
	return timer_list_arm(ns);
}

static void timer_list_stop(void)
{
	timer_delete_sync(&timer_list);
}

/* A sleeping thread of the highest class; distances in whole microseconds. */
static struct task_struct *sleeper;
static unsigned long sleep_us;

static int sleeper_thread(void *unused)
{
	u64 tsc;

	while (sleep_us) {
		wanted = rdtsc_ordered() + bench_cycles(sleep_us * 1000ULL);
		usleep_range_state(sleep_us, sleep_us, TASK_UNINTERRUPTIBLE);
		tsc = rdtsc_ordered();
		/* It stays 0 after the last shot. */
		sleep_us = 0;
		bench_shot(tsc, tsc - wanted);
	}
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int usleep_arm(u64 ns)
{
	sleep_us = max_t(u64, div_u64(ns, NSEC_PER_USEC), 1);
	return 0;
}

static int usleep_start(u64 ns, u64 spin_ns)
{
	usleep_arm(ns);
	sleeper = kthread_create(sleeper_thread, NULL, "bench_usleep");
	if (IS_ERR(sleeper))
		return PTR_ERR(sleeper);
	kthread_bind(sleeper, raw_smp_processor_id());
	sched_set_fifo(sleeper);
	wake_up_process(sleeper);
	return 0;
}

static void usleep_stop(void)
{
	kthread_stop(sleeper);
}

static struct bench_shots kinds[] = {
	{ .name = "hrtimer_hard", .start = hard_start, .arm = hard_arm,
	  .stop = hard_stop },
	{ .name = "hrtimer_soft", .start = soft_start, .arm = soft_arm,
	  .stop = soft_stop },
	{ .name = "timer_list", .start = timer_list_start,
	  .arm = timer_list_arm, .stop = timer_list_stop },
	{ .name = "usleep_range", .start = usleep_start, .arm = usleep_arm,
	  .stop = usleep_stop },
};

static enum hrtimer_restart ops_handler(struct hrtimer *timer)
{
	bench_expired();
	return HRTIMER_NORESTART;
}

static void ops_init(void *timer)
{
	apic_timer_hrtimer_setup(timer, ops_handler, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
}

static u64 ops_moment(u64 ns)
{
	return ktime_add_ns(ktime_get(), ns);
}

static int ops_add(void *timer, u64 moment)
{
	hrtimer_start(timer, moment, HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static void ops_modify(void *timer, u64 moment)
{
	hrtimer_start(timer, moment, HRTIMER_MODE_ABS_PINNED_HARD);
}

static void ops_del(void *timer)
{
	hrtimer_cancel(timer);
}

static struct bench_ops hrtimer_ops = {
	.name = "hrtimer_hard", .size = sizeof(struct hrtimer),
	.init = ops_init, .moment = ops_moment, .add = ops_add,
	.modify = ops_modify, .del = ops_del,
};

/**
 * bench_kernel_init() - register the kernel's timers
 */
void bench_kernel_init(void)
{
	unsigned int i;

	apic_timer_hrtimer_setup(&hard, hrtimer_handler, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	apic_timer_hrtimer_setup(&soft, hrtimer_handler, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_SOFT);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		bench_register_shots(&kinds[i]);
	bench_register_ops(&hrtimer_ops);
}

/**
 * bench_kernel_exit() - undo bench_kernel_init()
 */
void bench_kernel_exit(void)
{
	unsigned int i;

	bench_unregister_ops(&hrtimer_ops);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		bench_unregister_shots(&kinds[i]);
}
