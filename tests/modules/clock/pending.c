// SPDX-License-Identifier: GPL-2.0
/*
 * Is a timer pending while one CPU checks it once more, and arms it anew, at about the time when
 * it expires on another CPU? The checking CPU has interrupts off until then. The other CPU asks
 * all the time, and in the handler. Or while one CPU changes its moment?
 */
#include <linux/apic_clock.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "clock_test.h"

#define TIMES		20000
/* Near enough to be armed as the CPU's timer, and far enough for a check. */
#define AHEAD_NS	(400 * NSEC_PER_USEC)
/* Half of the interval around the expiry. */
#define AROUND_NS	(10 * NSEC_PER_USEC)
#define STEPS		200

static struct apic_clock_timer timer;
static struct work_struct arming;
static bool armed, expired;
static int target;

/**
 * struct pending_result - result of a run
 * @times:	number of times that the timer was armed; or that its state was read
 * @runs:	number of times that it expired; or that its moment was changed
 * @own:	expiries in whose handler it was reported pending
 * @gone:	number of times that it was reported not pending before
 */
static struct pending_result {
	unsigned int times, runs, own, gone;
} result;

static void handler(unsigned long long now, unsigned long data)
{
	result.runs++;
	result.own += apic_clock_timer_pending(&timer);
	WRITE_ONCE(expired, true);
}

static void arm(struct work_struct *unused)
{
	ktime_t now = apic_timer_tsc_to_clock(CLOCK_MONOTONIC, apic_timer_now());
	u64 until = apic_timer_now() + apic_timer_ns_to_tsc(AHEAD_NS - AROUND_NS +
		    2 * AROUND_NS / STEPS * (result.times % STEPS));
	unsigned long flags;

	if (add_apic_timer_at_on(&timer, CLOCK_MONOTONIC, now + AHEAD_NS, target))
		return;
	WRITE_ONCE(armed, true);
	local_irq_save(flags);
	while (apic_timer_now() < until)
		cpu_relax();
	local_irq_restore(flags);
}

static void change(struct work_struct *unused)
{
	unsigned int i;

	for (i = 0; i < TIMES; i++)
		result.runs += mod_apic_timer_at(&timer, ktime_get() + NSEC_PER_SEC * 3600) == 1;
	WRITE_ONCE(expired, true);
}

/* Have @cpu change the timer's moment, far away, and ask all the time whether it is pending. */
int clock_test_changed(int cpu)
{
	int ret;

	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -EINVAL;
	result = (struct pending_result) {};
	timer.timer.function = handler;
	init_apic_clock_timer(&timer);
	INIT_WORK(&arming, change);
	WRITE_ONCE(expired, false);
	ret = add_apic_timer_at(&timer, CLOCK_MONOTONIC, ktime_get() + NSEC_PER_SEC * 3600);
	if (ret)
		return ret;
	schedule_work_on(cpu, &arming);
	for (; !READ_ONCE(expired); result.times++) {
		result.gone += !apic_clock_timer_pending(&timer);
		cond_resched();
	}
	flush_work(&arming);
	return del_apic_timer_at_sync(&timer) == 1 ? 0 : -EPROTO;
}

/* Have @cpu arm the timer for this CPU, @times times. */
int clock_test_pending(int cpu, unsigned int times)
{
	unsigned long end;

	if (times > TIMES || cpu < 0 || cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -EINVAL;
	result = (struct pending_result) {};
	timer.timer.function = handler;
	init_apic_clock_timer(&timer);
	INIT_WORK(&arming, arm);
	target = get_cpu();
	put_cpu();
	for (; result.times < times; result.times++) {
		WRITE_ONCE(armed, false);
		WRITE_ONCE(expired, false);
		schedule_work_on(cpu, &arming);
		end = jiffies + HZ / 10;
		while (!READ_ONCE(armed) && time_before(jiffies, end))
			cpu_relax();
		while (READ_ONCE(armed) && !READ_ONCE(expired) && time_before(jiffies, end))
			/* The handler would have interrupted this CPU. */
			if (!apic_clock_timer_pending(&timer) && !READ_ONCE(expired))
				result.gone++;
		flush_work(&arming);
		del_apic_timer_at_sync(&timer);
	}
	return 0;
}

void clock_test_pending_show(struct seq_file *file)
{
	seq_printf(file, "pending times %u runs %u own %u gone %u\n", result.times, result.runs,
		   result.own, result.gone);
}
