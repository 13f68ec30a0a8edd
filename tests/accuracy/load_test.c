// SPDX-License-Identifier: GPL-2.0
/*
 * Expiries stay accurate next to other load on a CPU.
 */
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "accuracy.h"
#include "compat/hrtimer.h"

/* A thread that works, or sleeps. */
static struct {
	struct task_struct *task;
	unsigned int sleep_us;	/* longest sleep, and longest work before it */
} worker;

/* The kernel's own timer, of the kind served first. */
#define HRTIMER_PERIOD_NS	(250 * NSEC_PER_USEC)

static struct {
	struct hrtimer timer;
	u64 runs, missed;
} kernel;

/* Work that no emulator mistakes for waiting. */
static void work(u64 cycles)
{
	u64 end = apic_timer_now() + cycles;

	while (apic_timer_now() < end)
		barrier();
}

static int worker_thread(void *unused)
{
	struct rnd_state random;
	unsigned int us;

	accuracy_seed(&random);
	while (!kthread_should_stop()) {
		us = worker.sleep_us ?: 100;
		us = prandom_u32_state(&random) % us + 10;
		work(apic_timer_us_to_tsc(us));
		if (worker.sleep_us) {
			us = prandom_u32_state(&random) % worker.sleep_us + 10;
			usleep_range(us, us + 10);
		} else {
			cond_resched();
		}
	}
	return 0;
}

static void worker_start(struct kunit *test, unsigned int sleep_us)
{
	struct task_struct *task = kthread_create(worker_thread, NULL,
						  "accuracy");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	worker.sleep_us = sleep_us;
	worker.task = task;
	kthread_bind(task, accuracy_cpu());
	wake_up_process(task);
}

static enum hrtimer_restart hrtimer_ran(struct hrtimer *timer)
{
	kernel.runs++;
	kernel.missed += hrtimer_forward_now(timer, HRTIMER_PERIOD_NS) - 1;
	return HRTIMER_RESTART;
}

static int load_test_init(struct kunit *test)
{
	worker.task = NULL;
	kernel.runs = 0;
	kernel.missed = 0;
	apic_timer_hrtimer_setup(&kernel.timer, hrtimer_ran, CLOCK_MONOTONIC,
				 HRTIMER_MODE_REL_PINNED_HARD);
	return accuracy_init(test);
}

static void load_test_exit(struct kunit *test)
{
	accuracy_exit(test);
	hrtimer_cancel(&kernel.timer);
	if (worker.task)
		kthread_stop(worker.task);
}

static void exact(struct kunit *test, const char *name)
{
	struct accuracy_plan plan = accuracy_plan(name, APIC_TIMER_EXACT);
	struct accuracy_figures error = accuracy_run(test, &plan).error;

	KUNIT_EXPECT_GE(test, error.min, 0LL);
	ACCURACY_LE(test, error.p999, 8);
	ACCURACY_LE(test, error.max, ACCURACY_RARE);
}

static void busy_test(struct kunit *test)
{
	worker_start(test, 0);
	exact(test, "exact, busy");
}

/* The CPU alternates between busy and idle, for longer and shorter than an expiry. */
static void alternating_test(struct kunit *test)
{
	worker_start(test, 2000);
	exact(test, "exact, busy and idle");
}

static void mean_busy_test(struct kunit *test)
{
	struct accuracy_plan plan = accuracy_plan("mean, busy", APIC_TIMER_MEAN);
	struct accuracy_figures error;

	worker_start(test, 0);
	error = accuracy_run(test, &plan).error;
	ACCURACY_LE(test, abs(error.mean), ACCURACY_MEAN);
	ACCURACY_LE(test, abs(error.p50), 10);
	ACCURACY_LE(test, error.p99, 10);
}

static void hrtimer_test(struct kunit *test)
{
	hrtimer_start(&kernel.timer, HRTIMER_PERIOD_NS,
		      HRTIMER_MODE_REL_PINNED_HARD);
	exact(test, "exact, hrtimer at 4 kHz");
	kunit_info(test, "hrtimer: ran %llu times, missed %llu\n", kernel.runs,
		   kernel.missed);
	/* It is deferred, never lost. */
	KUNIT_EXPECT_GT(test, kernel.runs, 1000ULL);
	ACCURACY_LE(test, kernel.missed, 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(busy_test),
	KUNIT_CASE(alternating_test),
	KUNIT_CASE(mean_busy_test),
	KUNIT_CASE(hrtimer_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_accuracy_load",
	.init = load_test_init,
	.exit = load_test_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
