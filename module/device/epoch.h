/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_EPOCH_H
#define _APIC_TIMER_DEVICE_EPOCH_H

#include <linux/list.h>

/**
 * struct device_epoch_waiter - something that may wait for a TSC value
 * @node:	in the list of all
 * @began:	called soon after a new epoch has begun, which device_page_epoch() has then:
 *		in a thread of the kernel's, under a mutex. What waits for a moment of the new
 *		epoch may be among those notified.
 */
struct device_epoch_waiter {
	struct list_head node;
	void (*began)(struct device_epoch_waiter *waiter);
};

void device_epoch_add(struct device_epoch_waiter *waiter);
void device_epoch_del(struct device_epoch_waiter *waiter);
void device_epoch_began(void);
void device_epoch_sync(void);

#endif /* _APIC_TIMER_DEVICE_EPOCH_H */
