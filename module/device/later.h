/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_LATER_H
#define _APIC_TIMER_DEVICE_LATER_H

#include <linux/list.h>
#include <linux/types.h>

/**
 * struct device_later - work that a handler defers out of the hard interrupt
 * @node:	entry in the list of @cpu, if @queued
 * @queued:	it is in that list; protected by the list's lock
 * @cpu:	CPU that it was queued on
 * @call:	function that does the work; it may free this structure
 */
struct device_later {
	struct list_head node;
	bool queued;
	int cpu;
	void (*call)(struct device_later *later);
};

bool device_later(struct device_later *later);
bool device_later_cancel(struct device_later *later);
int device_later_init(void);
void device_later_exit(void);

#endif /* _APIC_TIMER_DEVICE_LATER_H */
