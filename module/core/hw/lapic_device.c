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

/*
 * Keeps other devices of ours from being registered between the probe and the read of its
 * neighbour.
 */
static DEFINE_RAW_SPINLOCK(registering);

/* More devices than the kernel can have: each CPU's, ours for each, and some */
#define DEVICES_MAX	(8 * nr_cpu_ids + 64)
/* Number of attempts to walk the list */
#define TRIES		10

/*
 * An element of the walk may not be a device: see walk(). The address of the mask is
 * compared first: only the LAPIC's devices, ours and perhaps a few others have the
 * kernel's mask of that CPU.
 */
static bool is_lapic_of(const struct clock_event_device *device, unsigned int cpu)
{
	return device->cpumask == cpumask_of(cpu) && device->name &&
	       str_has_prefix(device->name, "lapic");
}

/*
 * Modules cannot lock the list. Devices are registered at boot, by a CPU that
 * comes online, which is excluded here, and by the proxy. But a device may be
 * unbound by sysfs, or released for a moment while the proxy registers its device
 * again on another CPU:
 *
 *	CPU0: walk()				CPU1
 *
 *	at device
 *						list_del_init(&device->list)
 *	at device again, without end
 *
 *	CPU0: walk()				CPU1
 *
 *	at device
 *						list_move(&device->list, &released)
 *	at &released, which is in no device
 *						list_move(&device->list, &devices)
 *	at &released again, without end
 *
 * Return: true if the walk came to an end; @found is then the device, or NULL.
 */
static bool walk(struct list_head *head, unsigned int cpu, struct clock_event_device **found)
{
	struct clock_event_device *device;
	unsigned int count = 0;

	*found = NULL;
	list_for_each_entry(device, head, list) {
		if (count++ > DEVICES_MAX)
			return false;
		if (is_lapic_of(device, cpu)) {
			*found = device;
			break;
		}
	}
	return true;
}

/*
 * The kernel has no function to look up the device, but its list of devices can
 * be walked, starting from a device of our own that the kernel will never use.
 *
 * Return: true if the walk came to an end, as walk().
 */
static bool find(unsigned int cpu, struct clock_event_device **found)
{
	static struct clock_event_device probe;
	struct list_head *head;
	unsigned long flags;
	bool ended;

	probe = (struct clock_event_device) {
		.name = "apic_timer_probe",
		.features = CLOCK_EVT_FEAT_DUMMY,
		.cpumask = cpumask_of(cpu),
		.irq = -1,
	};
	raw_spin_lock_irqsave(&registering, flags);
	clockevents_register_device(&probe);
	/* The probe was inserted at the front, so the element before it is the list's head. */
	head = probe.list.prev;
	raw_spin_unlock_irqrestore(&registering, flags);
	/* The list's head does not move, and no other code moves the LAPIC's device of this CPU. */
	ended = walk(head, cpu, found);
	clockevents_unbind_device(&probe, cpu);
	return ended;
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
 * @source:	name of the calling source, for the log
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
	struct clock_event_device *device;
	unsigned int tries;

	/*
	 * The next attempt waits for the kernel's lock, until the change that disturbed
	 * this one is complete.
	 */
	for (tries = 1; !find(cpu, &device) && tries < TRIES; tries++)
		;
	if (!device || device->features & CLOCK_EVT_FEAT_DUMMY) {
		pr_err("%s: CPU %u has no LAPIC timer in use (booted with nolapic_timer?)\n",
		       source, cpu);
		return ERR_PTR(-ENODEV);
	}
	if (clockevent_state_detached(device)) {
		pr_err("%s: the tick of CPU %u is driven by a device other than its LAPIC timer\n",
		       source, cpu);
		return ERR_PTR(-EBUSY);
	}
	return device;
}
