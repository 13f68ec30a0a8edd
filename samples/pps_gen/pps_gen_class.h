/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The entry of pps_gen_apic in /sys/class/pps-gen, on kernels with that class, such as
 * 7.2:
 *
 *	cd /sys/class/pps-gen/pps-gen0
 *	echo 0 >enable		no more pulses; 1: again
 *	cat time		of the clock that they follow
 *
 * A program may also wait for missed pulses, at /dev/pps-gen0: see <linux/pps_gen.h>.
 */
#ifndef _PPS_GEN_CLASS_H
#define _PPS_GEN_CLASS_H

#include <linux/kconfig.h>

#if IS_REACHABLE(CONFIG_PPS_GENERATOR)

#include <linux/apic_clock.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/pps_gen_kernel.h>
#include <linux/time64.h>

static struct pps_gen_device *class_entry;

static int class_get_time(struct pps_gen_device *entry, struct timespec64 *time)
{
	*time = ktime_to_timespec64(apic_timer_tsc_to_clock(clock_id, apic_timer_now()));
	return 0;
}

static int class_enable(struct pps_gen_device *entry, bool enable)
{
	return switch_pulses(enable);
}

static const struct pps_gen_source_info class_info = {
	.use_system_clock = true,
	.get_time = class_get_time,
	.enable = class_enable,
	.owner = THIS_MODULE,
};

/* The class takes locks that a timer's handler must not take: on PREEMPT_RT they sleep. */
static void class_tell_missed(struct irq_work *work)
{
	pps_gen_event(class_entry, PPS_GEN_EVENT_MISSEDPULSE, NULL);
}

static struct irq_work class_missed_work = IRQ_WORK_INIT(class_tell_missed);

/* Report that a handler has found a moment that had passed. */
static void class_missed(void)
{
	/* Pairs with class_enter(). */
	if (smp_load_acquire(&class_entry))
		irq_work_queue(&class_missed_work);
}

static int class_enter(void)
{
	struct pps_gen_device *entry = pps_gen_register_source(&class_info);

	if (IS_ERR(entry))
		return PTR_ERR(entry);
	/* Pairs with class_missed(). */
	smp_store_release(&class_entry, entry);
	return 0;
}

/* Unregister: there are no more pulses, and they can no longer be switched on. */
static void class_leave(void)
{
	irq_work_sync(&class_missed_work);
	pps_gen_unregister_source(class_entry);
}

#else

static void class_missed(void)
{
}

static int class_enter(void)
{
	return 0;
}

static void class_leave(void)
{
}

#endif

#endif /* _PPS_GEN_CLASS_H */
