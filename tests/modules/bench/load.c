// SPDX-License-Identifier: GPL-2.0
/*
 * Loads that only the kernel can make.
 *
 * Write WHAT SEED to "load", on the CPU to load. WHAT is
 *
 *	timers	1,000 hrtimers, each again at a random distance of 1 to 100 ms
 *	irqoff	a thread that turns interrupts off for random 1 to 20 us, at
 *		random gaps of 20 to 100 us. It doesn't sleep between: what
 *		wakes a sleeper is a timer too, which can be deferred
 *	none	neither
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "bench.h"
#include "compat/hrtimer.h"

#define TIMERS		1000
#define TIMER_MIN_NS	NSEC_PER_MSEC
#define TIMER_MAX_NS	(100 * NSEC_PER_MSEC)
#define OFF_MIN_NS	NSEC_PER_USEC
#define OFF_MAX_NS	(20 * NSEC_PER_USEC)
#define GAP_MIN_NS	(20 * NSEC_PER_USEC)
#define GAP_MAX_NS	(100 * NSEC_PER_USEC)
/* An interrupt is taken at most this long before the handler should start. */
#define LATENCY_NS	NSEC_PER_USEC

static struct rnd_state random;
static struct hrtimer *timers;
static struct task_struct *blocker;
static u64 off_start, off_end;	/* TSC: interrupts were last off */

static u64 random_from(u64 least, u64 most)
{
	return least + mul_u64_u32_shr(most - least,
				       prandom_u32_state(&random), 32);
}

static enum hrtimer_restart again(struct hrtimer *timer)
{
	hrtimer_forward_now(timer, random_from(TIMER_MIN_NS, TIMER_MAX_NS));
	return HRTIMER_RESTART;
}

static int start_timers(void)
{
	unsigned int i;

	timers = vzalloc(TIMERS * sizeof(*timers));
	if (!timers)
		return -ENOMEM;
	for (i = 0; i < TIMERS; i++) {
		apic_timer_hrtimer_setup(&timers[i], again, CLOCK_MONOTONIC,
					 HRTIMER_MODE_REL_PINNED);
		hrtimer_start(&timers[i],
			      random_from(TIMER_MIN_NS, TIMER_MAX_NS),
			      HRTIMER_MODE_REL_PINNED);
	}
	return 0;
}

static void turn_off(u64 cycles)
{
	u64 start, now;

	local_irq_disable();
	start = rdtsc_ordered();
	do {
		now = rdtsc_ordered();
	} while (now - start < cycles);
	off_start = start;
	off_end = now;
	local_irq_enable();
}

static int block_thread(void *unused)
{
	u64 start, gap;

	while (!kthread_should_stop()) {
		gap = bench_cycles(random_from(GAP_MIN_NS, GAP_MAX_NS));
		start = rdtsc_ordered();
		while (rdtsc_ordered() - start < gap)
			cond_resched();
		turn_off(bench_cycles(random_from(OFF_MIN_NS, OFF_MAX_NS)));
	}
	return 0;
}

static int start_blocker(void)
{
	struct task_struct *task;

	task = kthread_create(block_thread, NULL, "bench_irqoff");
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, raw_smp_processor_id());
	blocker = task;
	wake_up_process(task);
	return 0;
}

static void stop(void)
{
	unsigned int i;

	if (blocker)
		kthread_stop(blocker);
	blocker = NULL;
	off_end = 0;
	for (i = 0; timers && i < TIMERS; i++)
		hrtimer_cancel(&timers[i]);
	vfree(timers);
	timers = NULL;
}

/**
 * bench_load_off() - maximum time that the load delayed a shot
 * @expires:	planned start of the shot, absolute TSC
 * @tsc:	its actual start
 *
 * Context: On the loaded CPU, interrupts off.
 * Return: cycles for which interrupts were off, if they were off when the shot's interrupt may
 * have arrived; otherwise 0.
 */
u64 bench_load_off(u64 expires, u64 tsc)
{
	if ((s64)(off_end - (expires - bench_cycles(LATENCY_NS))) > 0 &&
	    (s64)(tsc - off_end) > 0)
		return off_end - off_start;
	return 0;
}

static int load_command(const char *text)
{
	char what[12];
	u64 seed;

	if (sscanf(text, "%11s %llu", what, &seed) != 2)
		return -EINVAL;
	stop();
	prandom_seed_state(&random, seed);
	if (!strcmp(what, "timers"))
		return start_timers();
	if (!strcmp(what, "irqoff"))
		return start_blocker();
	return strcmp(what, "none") ? -EINVAL : 0;
}

DEFINE_BENCH_FILE(load);

/**
 * bench_load_exit() - end the load
 */
void bench_load_exit(void)
{
	stop();
}
