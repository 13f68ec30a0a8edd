/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernel versions.
 *
 * hrtimer_setup(): from 6.13; before, hrtimer_init() and an assignment. Gone
 * with hrtimer_init() in 6.15.
 * Workqueues in softirq context: from 6.9.
 * WQ_PERCPU: from 6.18 a workqueue has to say that it is not unbound.
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
