// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's clock event device for the LAPIC timer of a CPU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "hw/lapic_device.h"

/* No other device of ours is registered between the probe and a look at what it is behind. */
static DEFINE_RAW_SPINLOCK(registering);

/* More devices than the kernel can have: each CPU's, ours for each, and some */
#define DEVICES_MAX	(8 * nr_cpu_ids + 64)

/*
 * The kernel has no function to look it up, but its list of devices can be walked
 * from a device of our own, one that it will never use.
 *
 * Modules can't lock that list. Devices are registered at boot, by a CPU that comes
 * online, which is excluded, and by the proxy. But one may be unbound by sysfs:
 *
 *	CPU0: find()				CPU1: unbind
 *
 *	at device
 *						list_del_init(&device->list)
 *	at device again, without end
 */
static struct clock_event_device *find(unsigned int cpu)
{
	static struct clock_event_device probe;
	struct clock_event_device *device, *found = NULL;
	struct list_head *head;
	unsigned int count = 0;
	unsigned long flags;

	probe = (struct clock_event_device) {
		.name = "apic_timer_probe",
		.features = CLOCK_EVT_FEAT_DUMMY,
		.cpumask = cpumask_of(cpu),
		.irq = -1,
	};
	raw_spin_lock_irqsave(&registering, flags);
	clockevents_register_device(&probe);
	/* It was inserted first, so the element before it is the list's head. */
	head = probe.list.prev;
	raw_spin_unlock_irqrestore(&registering, flags);
	/* What is inserted first from now on is none of the LAPICs'. */
	list_for_each_entry(device, head, list) {
		if (count++ > DEVICES_MAX)
			break;
		if (device != &probe && device->name &&
		    str_has_prefix(device->name, "lapic") &&
		    cpumask_equal(device->cpumask, cpumask_of(cpu))) {
			found = device;
			break;
		}
	}
	clockevents_unbind_device(&probe, cpu);
	return found;
}

/**
 * apic_timer_lapic_device_register() - register a device to be used instead of a LAPIC's
 * @device:	device, in ns
 * @min_delta:	ns
 * @max_delta:	ns
 *
 * Context: Any.
 */
void apic_timer_lapic_device_register(struct clock_event_device *device,
				      unsigned long min_delta, unsigned long max_delta)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&registering, flags);
	clockevents_config_and_register(device, NSEC_PER_SEC, min_delta, max_delta);
	raw_spin_unlock_irqrestore(&registering, flags);
}

/**
 * apic_timer_lapic_device() - find the device of a CPU
 * @source:	name of the source that wants it, for the log
 * @cpu:	online
 *
 * Context: Task context, CPU hotplug excluded.
 * Return: the device, which the kernel uses. With the reason in the log: %-ENODEV
 * if there is none or the kernel does not use it, %-EBUSY if the kernel's tick comes
 * from another device.
 */
struct clock_event_device *apic_timer_lapic_device(const char *source,
						   unsigned int cpu)
{
	struct clock_event_device *device = find(cpu);

	if (!device || device->features & CLOCK_EVT_FEAT_DUMMY) {
		pr_err("%s: CPU %u has no LAPIC timer in use (booted with nolapic_timer?)\n",
		       source, cpu);
		return ERR_PTR(-ENODEV);
	}
	if (clockevent_state_detached(device)) {
		pr_err("%s: the tick of CPU %u comes from another device than its LAPIC timer\n",
		       source, cpu);
		return ERR_PTR(-EBUSY);
	}
	return device;
}
