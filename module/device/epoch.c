// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for a TSC value is notified at once that a new epoch has made it void, instead of
 * when its timer, which the epoch has moved, expires.
 *
 * A thread in SLEEP or read() needs no notice: an epoch begins in a sleep of the machine,
 * for which the kernel has taken every thread out of its system call; it begins the call
 * anew afterwards. An epoll and an io_uring keep what waits, and whoever looks after such a
 * sleep is shown nothing that has not woken them.
 *
 * Users may have any number of files and commands. An epoch begins with interrupts off, so
 * it is the work of a thread to notify them, one after the other. That thread runs before the
 * kernel lets processes go on, or soon after.
 */
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "epoch.h"

static LIST_HEAD(waiters);
static DEFINE_MUTEX(waiters_lock);

static void notify(struct work_struct *work)
{
	struct device_epoch_waiter *waiter;

	mutex_lock(&waiters_lock);
	list_for_each_entry(waiter, &waiters, node) {
		waiter->began(waiter);
		cond_resched();
	}
	mutex_unlock(&waiters_lock);
}

static DECLARE_WORK(notify_work, notify);

/**
 * device_epoch_add() - something may wait from now on
 * @waiter:	it, with its function
 *
 * Context: Task. Sleeps.
 */
void device_epoch_add(struct device_epoch_waiter *waiter)
{
	mutex_lock(&waiters_lock);
	list_add(&waiter->node, &waiters);
	mutex_unlock(&waiters_lock);
}

/**
 * device_epoch_del() - it does not any more
 * @waiter:	added
 *
 * Its function is not running when this returns, and will not be called.
 *
 * Context: Task. Sleeps. Without a lock that the function takes.
 */
void device_epoch_del(struct device_epoch_waiter *waiter)
{
	mutex_lock(&waiters_lock);
	list_del(&waiter->node);
	mutex_unlock(&waiters_lock);
}

/**
 * device_epoch_began() - have all notified
 *
 * Context: Any but NMI; the page has the new epoch.
 */
void device_epoch_began(void)
{
	queue_work(system_highpri_wq, &notify_work);
}

/**
 * device_epoch_sync() - wait until all have been notified of what began before
 *
 * Context: Task. Sleeps.
 */
void device_epoch_sync(void)
{
	flush_work(&notify_work);
}
