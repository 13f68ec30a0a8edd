/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions.
 *
 * hrtimer_setup(): since 6.13; before, hrtimer_init() and an assignment. 6.15 removed
 * hrtimer_init().
 * Workqueues in softirq context: since 6.9.
 * WQ_PERCPU: since 6.18 a workqueue that is not unbound must set it.
 */
#ifndef _APIC_MEASURE_COMPAT_H
#define _APIC_MEASURE_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>
#include <linux/workqueue.h>

static inline void
measure_hrtimer_setup(struct hrtimer *timer,
		      enum hrtimer_restart (*function)(struct hrtimer *timer),
		      clockid_t clock, enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#endif
}

static inline struct workqueue_struct *measure_bh_workqueue(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	return system_bh_highpri_wq;
#else
	return NULL;
#endif
}

static inline struct workqueue_struct *measure_workqueue(unsigned int flags)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	flags |= WQ_PERCPU;
#endif
	return alloc_workqueue("apic_measure", flags, 0);
}

#endif /* _APIC_MEASURE_COMPAT_H */
