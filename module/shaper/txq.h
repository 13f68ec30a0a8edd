/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_TXQ_H
#define _SHAPER_TXQ_H

#include <linux/kconfig.h>
#include <linux/netdevice.h>

/*
 * Try to lock a device's queue from the handler. Return: false if it is already locked.
 *
 * Without CONFIG_SMP spinlocks do nothing, and a trylock succeeds even if this interrupt has
 * interrupted the driver. So check the owner: every kernel records the CPU that locks a queue.
 */
static inline bool shaper_txq_trylock(struct netdev_queue *txq)
{
	if (!IS_ENABLED(CONFIG_SMP) && READ_ONCE(txq->xmit_lock_owner) != -1)
		return false;
	return __netif_tx_trylock(txq);
}

/* Whether a device's queue is stopped. */
static inline bool shaper_txq_stopped(const struct netdev_queue *txq)
{
	/* If the queue is woken or stopped meanwhile, one bit changes: either answer is right. */
	return data_race(netif_xmit_frozen_or_stopped(txq));
}

#endif /* _SHAPER_TXQ_H */
