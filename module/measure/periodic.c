// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how late a periodic timer's handler starts while other work runs in the background.
 * The paper of 1997 found that its own samples disturbed the measurement: every eighth sample
 * began a new cache line. Samples may therefore also be counted only, in six cache lines.
 */
#include <linux/apic_timer.h>
#include <linux/completion.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "cache.h"
#include "counts.h"
#include "hardware.h"
#include "measure.h"

#define PERIOD_MIN_NS	5000
#define PERIOD_MAX_NS	1000000000

/**
 * struct series - the handler's data
 * @timer:	the timer
 * @period:	period in TSC cycles
 * @next:	number of the next expiry
 * @body:	length of the previous handler's body
 * @done:	the last expiry has happened, or arming failed
 * @error:	error of arming the timer
 * @request:	the user's request, with its counts
 * @samples:	room for all samples that may be stored
 * @finished:	wakes an idle thread
 */
struct series {
	struct apic_timer_list timer;
	u64 period;
	u32 next;
	u32 body;
	bool done;
	int error;
	struct apic_measure_periodic *request;
	struct apic_measure_sample *samples;
	struct completion finished;
};

static void store(struct series *series, s32 error)
{
	struct apic_measure_periodic *a = series->request;
	struct apic_measure_sample *sample;
	bool outlier;

	measure_count(&a->errors, error);
	if (series->next)
		measure_count(&a->bodies, measure_clamp(series->body));
	if (a->keep == APIC_MEASURE_KEEP_NONE)
		return;
	sample = &series->samples[a->kept];
	if (a->keep == APIC_MEASURE_KEEP_ALL) {
		sample->error = error;
		sample->body = series->body;
		a->kept++;
		return;
	}
	outlier = abs(error) > a->bound || series->body > a->bound;
	if (outlier) {
		sample->error = error;
		sample->body = series->next;
		a->kept++;
	}
}

/* Arm the timer again, unless this was the last expiry. */
static void go_on(struct series *series, u64 now)
{
	struct apic_measure_periodic *a = series->request;

	if (++series->next < a->count) {
		/* In mode mean the handler may be early, and would run for this moment again. */
		now = max(now, series->timer.expires);
		a->missed += apic_timer_forward(&series->timer, now, series->period) - 1;
		series->error = add_apic_timer(&series->timer);
		if (!series->error)
			return;
	}
	complete(&series->finished);
	/* Once the thread sees this, it may return and its stack may be gone. */
	smp_store_release(&series->done, true);
}

static void expired(unsigned long long now, unsigned long data)
{
	struct series *series = (struct series *)data;
	bool flush = series->request->cache == APIC_MEASURE_FLUSH;

	store(series, measure_clamp((s64)(now - series->timer.expires)));
	series->body = rdtsc() - now;
	/* Flush for the next expiry, before it is armed: after that it may be due. */
	if (flush) {
		measure_flush_code(expired);
		measure_flush_code(store);
		measure_flush_data(series, sizeof(*series));
		measure_flush_data(series->request, sizeof(*series->request));
	}
	go_on(series, now);
}

static void some_nops(void)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		asm volatile(".rept 16\n\tnop\n\t.endr");
}

static void some_cpuids(void)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		measure_cpuid();
}

static int run_behind(struct series *series, const struct measure_walk *walk)
{
	u32 behind = series->request->behind;

	/* A walk keeps the CPU busy as well. */
	if (behind == APIC_MEASURE_BEHIND_IDLE && !walk->size)
		return wait_for_completion_interruptible(&series->finished);
	while (!smp_load_acquire(&series->done)) { /* go_on() */
		if (walk->size)
			measure_walk(walk);
		if (behind == APIC_MEASURE_BEHIND_NOP)
			some_nops();
		else if (behind == APIC_MEASURE_BEHIND_CPUID)
			some_cpuids();
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static long run(struct series *series, const struct measure_walk *walk)
{
	struct apic_measure_periodic *a = series->request;
	int ret;

	init_completion(&series->finished);
	series->timer.function = expired;
	series->timer.data = (unsigned long)series;
	init_apic_timer(&series->timer);
	series->timer.flags = a->mode;
	series->period = apic_timer_ns_to_tsc(a->period_ns);
	series->timer.expires = apic_timer_now() + 2 * series->period;
	ret = add_apic_timer(&series->timer);
	if (ret)
		return ret;
	ret = run_behind(series, walk);
	/* This also waits for the handler, which uses our stack. */
	del_apic_timer_sync(&series->timer);
	return ret ? -EINTR : series->error;
}

/**
 * measure_periodic() - let a periodic timer expire
 * @a:		the user's request, and the result
 *
 * Context: Task; the device's mutex.
 * Return: 0, -EINVAL, -ENOMEM, -EFAULT, -EINTR, or as add_apic_timer().
 */
long measure_periodic(struct apic_measure_periodic *a)
{
	struct series series = { .request = a };
	struct measure_walk walk;
	long ret;

	if (a->mode < APIC_TIMER_RAW || a->mode > APIC_TIMER_EXACT ||
	    a->behind >= APIC_MEASURE_BEHINDS || a->keep >= APIC_MEASURE_KEEPS ||
	    !a->count || a->count > MEASURE_COUNT_MAX || a->period_ns < PERIOD_MIN_NS ||
	    a->period_ns > PERIOD_MAX_NS)
		return -EINVAL;
	a->kept = 0;
	a->missed = 0;
	memset(&a->errors, 0, sizeof(a->errors));
	memset(&a->bodies, 0, sizeof(a->bodies));
	ret = measure_walk_init(&walk, a->cache, a->walk_kib);
	if (ret)
		return ret;
	ret = -ENOMEM;
	series.samples = kvcalloc(a->keep == APIC_MEASURE_KEEP_NONE ? 1 : a->count,
				  sizeof(*series.samples), GFP_KERNEL);
	if (series.samples) {
		ret = run(&series, &walk);
		if (!ret && copy_to_user(u64_to_user_ptr(a->samples), series.samples,
					 a->kept * sizeof(*series.samples)))
			ret = -EFAULT;
	}
	kvfree(series.samples);
	measure_walk_exit(&walk);
	return ret;
}
