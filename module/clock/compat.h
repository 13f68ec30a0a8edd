/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions.
 *
 * hrtimer_setup(): since 6.13; before, hrtimer_init() and an assignment. 6.15 removed
 * hrtimer_init().
 *
 * cpuid(): in <asm/cpuid/api.h> since 6.16; before, in <asm/processor.h>.
 */
#ifndef _APIC_CLOCK_COMPAT_H
#define _APIC_CLOCK_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid/api.h>
#else
#include <asm/processor.h>
#endif

static inline void
apic_clock_hrtimer_setup(struct hrtimer *timer,
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

#endif /* _APIC_CLOCK_COMPAT_H */
