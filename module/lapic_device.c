// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's clock event device for the LAPIC timer of a CPU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/string.h>

#include "lapic_device.h"

/**
 * apic_timer_lapic_device() - find the device of a CPU
 * @cpu:	online
 *
 * The kernel offers no way to ask for it, but its list of devices can be walked
 * from a device of our own, one that it will never use.
 *
 * Context: Task context, CPU hotplug excluded: CPUs come and go under its lock,
 * and other devices are registered at boot only.
 * Return: the device; NULL if the kernel has none.
 */
struct clock_event_device *apic_timer_lapic_device(unsigned int cpu)
{
	static struct clock_event_device probe;
	struct clock_event_device *device, *found = NULL;

	probe = (struct clock_event_device) {
		.name = "apic_timer_probe",
		.features = CLOCK_EVT_FEAT_DUMMY,
		.cpumask = cpumask_of(cpu),
		.irq = -1,
	};
	clockevents_register_device(&probe);
	/* It was put first, so before it is the head of the list. */
	list_for_each_entry(device, probe.list.prev, list) {
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
