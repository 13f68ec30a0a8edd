// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how far from its target a loop over the TSC ends. Interrupts are off for one
 * shot at a time.
 */
#include <linux/apic_timer.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "cache.h"
#include "counts.h"
#include "measure.h"
#include "ways.h"

/* Maximum time with interrupts off for a shot. */
#define OFF_US	50

static s32 shot(measure_way_fn wait, u64 ahead)
{
	unsigned long flags;
	u64 target, after;

	local_irq_save(flags);
	target = rdtsc() + ahead;
	after = wait(target);
	local_irq_restore(flags);
	return measure_clamp((s64)(after - target));
}

/* Number of shots to build the table, for each target modulo the step and each delay. */
#define TRIALS	9

/* The median error of shots with these delays, for targets that are @residue modulo the step. */
static s32 usual(const struct apic_measure_loop *a, u32 residue)
{
	s32 sorted[TRIALS], error;
	unsigned int i, j;

	for (i = 0; i < TRIALS; i++) {
		error = shot(measure_way(APIC_MEASURE_TABLE),
			     rounddown(a->least, a->step) + residue);
		for (j = i; j && sorted[j - 1] > error; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = error;
	}
	return sorted[TRIALS / 2];
}

/* Find the best delay of up to two turns for each target modulo the step. */
static int learn(const struct apic_measure_loop *a)
{
	u8 delays[APIC_MEASURE_STEP_MAX] = {}, best[APIC_MEASURE_STEP_MAX] = {};
	u32 residue, delay, most = min_t(u64, 2 * measure_turns(a->step, a->turn) + 1, U8_MAX);
	s32 error, least;

	for (residue = 0; residue < a->step; residue++) {
		least = S32_MAX;
		for (delay = 0; delay <= most; delay++) {
			/* The loop's index into the table depends on how long the call takes. */
			memset(delays, delay, a->step);
			measure_table_set(delays, a->step);
			error = usual(a, residue);
			if (error < least) {
				least = error;
				best[measure_table_looked()] = delay;
			}
			if (signal_pending(current))
				return -EINTR;
			cond_resched();
		}
	}
	measure_table_set(best, a->step);
	return 0;
}

static int shots(const struct apic_measure_loop *a, measure_way_fn wait,
		 const struct measure_walk *walk, s32 *errors)
{
	u32 i;

	/* The first shot runs with cold caches, and is not counted. */
	shot(wait, a->least);
	for (i = 0; i < a->count; i++) {
		if (a->cache == APIC_MEASURE_WALK) {
			measure_walk(walk);
		} else if (a->cache == APIC_MEASURE_FLUSH) {
			measure_flush_code(wait);
			measure_ways_flush();
		}
		errors[i] = shot(wait, a->least + i % a->spread);
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/**
 * measure_loop() - wait for TSC values in a loop
 * @a:		the user's request, and the result
 *
 * Context: Task; the device's mutex.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -ENOMEM, -EFAULT, -EINTR.
 */
long measure_loop(struct apic_measure_loop *a)
{
	measure_way_fn wait = measure_way(a->way);
	struct measure_walk walk;
	s32 *errors;
	long ret;

	if (!wait || !a->count || a->count > MEASURE_COUNT_MAX || !a->spread ||
	    (u64)a->least + a->spread > apic_timer_us_to_tsc(OFF_US) ||
	    (a->way == APIC_MEASURE_TABLE ? !a->step || a->step > APIC_MEASURE_STEP_MAX : a->step))
		return -EINVAL;
	if (!measure_way_there(a->way))
		return -EOPNOTSUPP;
	ret = measure_walk_init(&walk, a->cache, a->walk_kib);
	if (ret)
		return ret;
	errors = kvmalloc_array(a->count, sizeof(*errors), GFP_KERNEL);
	if (!errors) {
		measure_walk_exit(&walk);
		return -ENOMEM;
	}
	a->turn = measure_turn();
	measure_turn_set(a->turn);
	ret = a->way == APIC_MEASURE_TABLE ? learn(a) : 0;
	ret = ret ?: shots(a, wait, &walk, errors);
	if (!ret && copy_to_user(u64_to_user_ptr(a->errors), errors, a->count * sizeof(*errors)))
		ret = -EFAULT;
	kvfree(errors);
	measure_walk_exit(&walk);
	return ret;
}
