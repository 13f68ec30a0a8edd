// SPDX-License-Identifier: GPL-2.0
/*
 * Notify waiters at once that a new epoch has invalidated their TSC values, rather than when
 * their timers, which the epoch has moved, expire.
 *
 * A thread in SLEEP or read() needs no notification: an epoch begins while the machine is
 * suspended. The kernel has taken every thread out of its system call before that, and
 * restarts the call afterwards. An epoll or io_uring, however, keeps its entries across a
 * suspend, and reports only those that have woken it.
 *
 * Users may have any number of files and commands. An epoch begins with interrupts off, so
 * a thread notifies the waiters one after the other. It runs before the kernel thaws
 * processes, or soon after.
 *
 * Each command of an io_uring adds a waiter and removes it, on any CPU and at any priority. The
 * lock of the list is therefore one whose holder is not preempted (on PREEMPT_RT, inherits the
 * priority of those who wait), and it is held for one waiter at a time.
 */
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "epoch.h"

static LIST_HEAD(waiters);
static DEFINE_SPINLOCK(waiters_lock);

static void notify(struct work_struct *work)
{
	struct device_epoch_waiter *waiter;
	LIST_HEAD(todo);

	spin_lock(&waiters_lock);
	/* Those that are added from here on belong to the new epoch. */
	list_splice_init(&waiters, &todo);
	while ((waiter = list_first_entry_or_null(&todo, struct device_epoch_waiter, node))) {
		list_move_tail(&waiter->node, &waiters);
		waiter->began(waiter);
		spin_unlock(&waiters_lock);
		cond_resched();
		spin_lock(&waiters_lock);
	}
	spin_unlock(&waiters_lock);
}

static DECLARE_WORK(notify_work, notify);

/**
 * device_epoch_add() - add a waiter
 * @waiter:	the waiter, with its function
 *
 * Context: Task.
 */
void device_epoch_add(struct device_epoch_waiter *waiter)
{
	spin_lock(&waiters_lock);
	list_add(&waiter->node, &waiters);
	spin_unlock(&waiters_lock);
}

/**
 * device_epoch_del() - remove a waiter
 * @waiter:	the waiter, added before
 *
 * When this returns, its function is not running and will not be called.
 *
 * Context: Task. The caller holds no lock that the function takes.
 */
void device_epoch_del(struct device_epoch_waiter *waiter)
{
	spin_lock(&waiters_lock);
	list_del(&waiter->node);
	spin_unlock(&waiters_lock);
}

/**
 * device_epoch_began() - have all waiters notified
 *
 * Context: Any but NMI. The page already has the new epoch.
 */
void device_epoch_began(void)
{
	queue_work(system_highpri_wq, &notify_work);
}

/**
 * device_epoch_sync() - wait until all waiters have been notified of earlier epochs
 *
 * Context: Task. Sleeps.
 */
void device_epoch_sync(void)
{
	flush_work(&notify_work);
}
