/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_EPOCH_H
#define _APIC_TIMER_DEVICE_EPOCH_H

#include <linux/list.h>

/**
 * struct device_epoch_waiter - an object that may wait for a TSC value
 * @node:	entry in the list of all waiters
 * @began:	called soon after a new epoch has begun, in a kernel thread, under a spinlock:
 *		it must not sleep. device_page_epoch() already returns the new epoch. Waiters
 *		that were armed in the new epoch may be notified as well.
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
