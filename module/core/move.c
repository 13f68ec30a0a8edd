// SPDX-License-Identifier: GPL-2.0
/*
 * Write to TSCs while the machine runs.
 *
 * A deadline is a value of its CPU's TSC: when that TSC is moved, a pending timer expires
 * too early or too late by the same amount. The timer cannot be moved along, because its
 * owner may keep other values of that TSC, which are unknown here. So no timer may be
 * pending on these CPUs.
 *
 * The kernel's next event may also be programmed as a TSC value, by us or by the kernel
 * itself (TSC-deadline). It is programmed again: the kernel does so when an hrtimer is
 * started that expires before all others. Otherwise, a TSC that is moved back by a
 * second would leave the CPU without a tick for a second.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/hrtimer.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>

#include "compat/hrtimer.h"
#include "lib/refuse.h"
#include "pm.h"
#include "timers/base.h"

/**
 * struct move - a move of TSCs
 * @cpus:	CPUs whose TSC is moved
 * @move:	function that moves the TSC of its own CPU
 */
struct move {
	const struct cpumask *cpus;
	void (*move)(void);
};

static DEFINE_MUTEX(move_mutex);
static DEFINE_PER_CPU(struct hrtimer, first_event);	/* move_mutex */

static enum hrtimer_restart nothing(struct hrtimer *unused)
{
	return HRTIMER_NORESTART;
}

/* Interrupts are off on all CPUs, so that each gets the same result. */
static int check(const struct move *move)
{
	unsigned int cpu;

	if (!cpumask_subset(move->cpus, cpu_online_mask))
		return -ENODEV;
	for_each_cpu(cpu, move->cpus)
		if (apic_timer_base_has_timers(cpu))
			return -EBUSY;
	return 0;
}

static int move_here(void *data)
{
	const struct move *move = data;
	struct hrtimer *event = this_cpu_ptr(&first_event);
	int ret = check(move);

	lockdep_assert_irqs_disabled();
	if (ret || !cpumask_test_cpu(smp_processor_id(), move->cpus))
		return ret;
	move->move();
	apic_timer_pm_restart();
	apic_timer_hrtimer_setup(event, nothing, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	hrtimer_start(event, 0, HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

/**
 * apic_timer_move_tsc() - write to the TSCs of CPUs while nothing depends on them
 * @cpus:	CPUs whose TSC is moved
 * @move:	called on each of them, interrupts off on all CPUs; writes to its CPU's
 *		TSC or TSC_ADJUST
 *
 * TSC values that were read on these CPUs before are invalid afterwards. No notifier
 * is called, because a notice has one distance for all CPUs.
 *
 * Context: Task; sleeps, and stops all CPUs for some microseconds.
 * Return:
 * * %0 - done
 * * %-EBUSY - timers are pending on one of @cpus: nothing was done
 * * %-ENODEV - one of @cpus is offline: nothing was done
 * * %-EOPNOTSUPP - without high resolution timers the kernel's own events would be late
 * * %-EINVAL - @move is NULL, or there are no CPUs
 */
int apic_timer_move_tsc(const struct cpumask *cpus, void (*move)(void))
{
	struct move what = { .cpus = cpus, .move = move };
	unsigned int cpu;
	int ret;

	if (!cpus || cpumask_empty(cpus) || !move)
		return apic_timer_refuse(-EINVAL, APIC_TIMER_CALLER,
					 "TSCs moved without a function or CPUs");
	if (hrtimer_resolution != 1)
		return -EOPNOTSUPP;
	mutex_lock(&move_mutex);
	ret = stop_machine(move_here, &what, cpu_online_mask);
	if (!ret)
		for_each_cpu(cpu, cpus)
			hrtimer_cancel(per_cpu_ptr(&first_event, cpu));
	mutex_unlock(&move_mutex);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_timer_move_tsc);
