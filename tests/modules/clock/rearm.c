// SPDX-License-Identifier: GPL-2.0
/*
 * Delete a timer while its handler, on another CPU, arms it again, each time for another clock.
 * The handler runs a third of the time.
 */
#include <linux/apic_clock.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "clock_test.h"

#define TIMES		10000
#define MOST		(10 * TIMES)
/* Far enough for a check shortly before the moment. */
#define AHEAD_NS	(200 * NSEC_PER_USEC)
#define BUSY_US		100

static struct apic_clock_timer timer;
static bool stopped;

/**
 * struct rearm_result - result of a run
 * @times:	number of times that the timer was deleted
 * @pending:	deletions after which a part of it was pending
 * @ran:	deletions after which its handler ran
 * @runs:	number of times that the handler ran
 */
static struct rearm_result {
	unsigned int times, pending, ran, runs;
} result;

static int arm(int cpu)
{
	clockid_t clock = result.runs % 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	ktime_t now = apic_timer_tsc_to_clock(clock, apic_timer_now());

	return add_apic_timer_at_on(&timer, clock, now + AHEAD_NS, cpu);
}

static void handler(unsigned long long now, unsigned long data)
{
	result.runs++;
	result.ran += READ_ONCE(stopped);
	udelay(BUSY_US);
	arm(smp_processor_id());
}

static bool is_left(void)
{
	return apic_clock_timer_pending(&timer) || !list_empty(&timer.node) ||
	       hrtimer_active(&timer.approach) || hrtimer_active(&timer.check);
}

/*
 * Arm the timer on a CPU and delete it, that number of times, and until its handler has run as
 * often: a CPU that is held up runs none.
 */
int clock_test_rearm(int cpu, unsigned int times)
{
	unsigned int i;
	int ret = 0;

	if (times > TIMES)
		return -EINVAL;
	result = (struct rearm_result) {};
	timer.timer.function = handler;
	init_apic_clock_timer(&timer);
	for (i = 0; !ret && (i < times || (READ_ONCE(result.runs) < times && i < MOST)); i++) {
		WRITE_ONCE(stopped, false);
		ret = arm(cpu);
		if (ret)
			break;
		usleep_range(200, 1500);
		del_apic_timer_at_sync(&timer);
		WRITE_ONCE(stopped, true);
		result.times++;
		if (is_left()) {
			result.pending++;
			del_apic_timer_at_sync(&timer);
		}
	}
	return ret;
}

void clock_test_rearm_show(struct seq_file *file)
{
	seq_printf(file, "rearm times %u pending %u ran %u runs %u\n", result.times,
		   result.pending, result.ran, result.runs);
}
