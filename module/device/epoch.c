// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for a TSC value is notified at once that a new epoch has made it void, instead of
 * when its timer, which the epoch has moved, expires.
 *
 * A thread in SLEEP or read() needs no notice: an epoch begins in a sleep of the machine,
 * for which the kernel has taken every thread out of its system call; it begins the call
 * anew afterwards. An epoll and an io_uring keep what waits, and whoever looks after such a
 * sleep is shown nothing that has not woken them.
 */
#include <linux/spinlock.h>

#include "epoch.h"

static LIST_HEAD(waiters);
static DEFINE_RAW_SPINLOCK(waiters_lock);

/**
 * device_epoch_add() - something may wait from now on
 * @waiter:	it, with its function
 *
 * Context: Any but NMI.
 */
void device_epoch_add(struct device_epoch_waiter *waiter)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&waiters_lock, flags);
	list_add(&waiter->node, &waiters);
	raw_spin_unlock_irqrestore(&waiters_lock, flags);
}

/**
 * device_epoch_del() - it does not any more
 * @waiter:	added
 *
 * Its function is not running when this returns, and will not be called.
 *
 * Context: Any but NMI, without a lock that the function takes.
 */
void device_epoch_del(struct device_epoch_waiter *waiter)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&waiters_lock, flags);
	list_del(&waiter->node);
	raw_spin_unlock_irqrestore(&waiters_lock, flags);
}

/**
 * device_epoch_began() - notify all
 *
 * Context: Interrupts off; the page has the new epoch.
 */
void device_epoch_began(void)
{
	struct device_epoch_waiter *waiter;
	unsigned long flags;

	raw_spin_lock_irqsave(&waiters_lock, flags);
	list_for_each_entry(waiter, &waiters, node)
		waiter->began(waiter);
	raw_spin_unlock_irqrestore(&waiters_lock, flags);
}
