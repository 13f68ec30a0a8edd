/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_LATER_H
#define _APIC_TIMER_DEVICE_LATER_H

#include <linux/list.h>
#include <linux/types.h>

/**
 * struct device_later - what a handler leaves to be done out of the hard interrupt
 * @node:	in the list of its CPU, if @queued
 * @queued:	under that list's lock
 * @cpu:	that CPU
 * @call:	does it; this structure may be gone when it returns
 */
struct device_later {
	struct list_head node;
	bool queued;
	int cpu;
	void (*call)(struct device_later *later);
};

void device_later(struct device_later *later);
bool device_later_cancel(struct device_later *later);
int device_later_init(void);
void device_later_exit(void);

#endif /* _APIC_TIMER_DEVICE_LATER_H */
