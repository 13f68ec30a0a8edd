// SPDX-License-Identifier: GPL-2.0
/*
 * The threads that call the interface, and the random numbers for their calls.
 */
#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "torture.h"

#define NAP_US		200U		/* shorter ones are not worthwhile */
#define BURST_NS	(100 * NSEC_PER_MSEC)

/**
 * struct writer - a thread
 * @task:	the thread
 * @cpu:	its CPU while that is online
 * @state:	random numbers
 */
struct writer {
	struct task_struct *task;
	int cpu;
	u32 state;
};

static struct writer *writers;
static unsigned int writer_count;
static u64 pause_ns;		/* between operations of a writer */

/**
 * torture_random() - return a random number
 * @state:	of the generator, not 0
 *
 * Return: 32 bits.
 */
u32 torture_random(u32 *state)
{
	u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

/**
 * torture_moment() - return a random moment: mostly soon, some past, some never
 * @state:	of the generator
 *
 * Return: absolute TSC.
 */
u64 torture_moment(u32 *state)
{
	u32 kind = torture_random(state) >> 8, part = torture_random(state);
	u64 now = apic_timer_now(), reach = (u64)torture_reach * NSEC_PER_USEC;

	switch (kind % 16) {
	case 0:
		return now - apic_timer_us_to_tsc(part % 100);
	case 1:
		return now + apic_timer_us_to_tsc(3600000000ULL + part);
	case 2 ... 3:
		break;
	case 4 ... 8:
		reach /= 10;
		break;
	default:
		reach /= 100;
	}
	return now + apic_timer_ns_to_tsc(mul_u64_u32_shr(reach, part, 32));
}

/**
 * torture_cpu() - return a random CPU
 * @state:	of the generator
 *
 * Return: a participating CPU; it may be offline.
 */
int torture_cpu(u32 *state)
{
	return torture_cpus[(torture_random(state) >> 8) % torture_cpu_count];
}

/* When its CPU goes offline, the scheduler moves the thread elsewhere permanently. */
static void go_home(const struct writer *writer)
{
	if (raw_smp_processor_id() != writer->cpu && cpu_active(writer->cpu))
		set_cpus_allowed_ptr(current, cpumask_of(writer->cpu));
}

/* Return: when the next operation is due, after one due at @due. */
static u64 pace(u64 due)
{
	u64 now = ktime_get_ns();

	/* Catch up with missed operations, within reason. */
	due = max_t(u64, due + pause_ns, now - BURST_NS);
	if (due > now + NAP_US * NSEC_PER_USEC) {
		unsigned long nap = div_u64(due - now, NSEC_PER_USEC);

		usleep_range(nap, nap + NAP_US);
	}
	return due;
}

static int write(void *data)
{
	struct writer *writer = data;
	u64 due = ktime_get_ns();

	while (!READ_ONCE(torture_over) && !kthread_should_stop()) {
		go_home(writer);
		switch ((torture_random(&writer->state) >> 8) % 8) {
		case 0:
			torture_free_step(&writer->state);
			break;
		case 1 ... 2:
			torture_loose_step(&writer->state);
			break;
		case 3:
			torture_pair_step(&writer->state);
			break;
		default:
			torture_account_step(&writer->state);
		}
		cond_resched();
		if (pause_ns)
			due = pace(due);
		/* Now and then leave the others alone. */
		if (!((torture_random(&writer->state) >> 8) % 512))
			usleep_range(100, 200);
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/**
 * torture_writers_start() - start the threads
 * @per_cpu:	number of threads per CPU
 * @rate:	maximum operations of each per second, 0 for no limit
 * @seed:	of the random numbers
 *
 * Return: 0 or -errno; call torture_writers_stop() in both cases.
 */
int torture_writers_start(unsigned int per_cpu, unsigned int rate, u32 seed)
{
	u32 state = seed * 2654435761U | 1;
	struct writer *writer;
	unsigned int i;

	pause_ns = rate ? div_u64(NSEC_PER_SEC, rate) : 0;
	writers = kvcalloc(per_cpu, torture_cpu_count * sizeof(*writers),
			   GFP_KERNEL);
	if (!writers)
		return -ENOMEM;
	for (i = 0; i < per_cpu * torture_cpu_count; i++) {
		writer = &writers[i];
		writer->cpu = torture_cpus[i % torture_cpu_count];
		writer->state = torture_random(&state);
		writer->task = kthread_run(write, writer, "torture/%d:%u",
					   writer->cpu, i / torture_cpu_count);
		if (IS_ERR(writer->task))
			return PTR_ERR(writer->task);
		writer_count++;
	}
	return 0;
}

/**
 * torture_writers_stop() - stop the threads
 */
void torture_writers_stop(void)
{
	while (writer_count)
		kthread_stop(writers[--writer_count].task);
	kvfree(writers);
	writers = NULL;
}
