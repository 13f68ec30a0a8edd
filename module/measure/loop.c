// SPDX-License-Identifier: GPL-2.0
/*
 * How far from its target a loop over the TSC ends. Interrupts are off for one
 * shot at a time.
 */
#include <linux/apic_timer.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "cache.h"
#include "counts.h"
#include "measure.h"
#include "ways.h"

/* Most that interrupts may be off for a shot. */
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

static int shots(const struct apic_measure_loop *a, measure_way_fn wait,
		 const struct measure_walk *walk, s32 *errors)
{
	u32 i;

	/* The first one is cold, and not counted. */
	shot(wait, a->least);
	for (i = 0; i < a->count; i++) {
		if (a->cache == APIC_MEASURE_WALK)
			measure_walk(walk);
		else if (a->cache == APIC_MEASURE_FLUSH)
			measure_flush_code(wait);
		errors[i] = shot(wait, a->least + i % a->spread);
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/**
 * measure_loop() - wait for TSC values in a loop
 * @a:		what the user wants, and gets
 *
 * Context: Task; the device's mutex.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -ENOMEM, -EFAULT, -EINTR.
 */
long measure_loop(struct apic_measure_loop *a)
{
	measure_way_fn wait = measure_way(a->way);
	struct measure_walk walk;
	unsigned long flags;
	s32 *errors;
	long ret;

	if (!wait || a->reserved || !a->count || a->count > MEASURE_COUNT_MAX || !a->spread ||
	    (u64)a->least + a->spread > apic_timer_us_to_tsc(OFF_US))
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
	local_irq_save(flags);
	a->turn = measure_turn();
	local_irq_restore(flags);
	measure_turn_set(a->turn);
	ret = shots(a, wait, &walk, errors);
	if (!ret && copy_to_user(u64_to_user_ptr(a->errors), errors, a->count * sizeof(*errors)))
		ret = -EFAULT;
	kvfree(errors);
	measure_walk_exit(&walk);
	return ret;
}
