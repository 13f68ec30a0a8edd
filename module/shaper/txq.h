/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_TXQ_H
#define _SHAPER_TXQ_H

#include <linux/kconfig.h>
#include <linux/netdevice.h>

/*
 * Try to lock a device's queue from the handler: false if it is locked already.
 *
 * Without CONFIG_SMP a spinlock is nothing, and a try succeeds also on top of the driver that this
 * interrupt has interrupted. Who locks a queue writes its CPU down, on any kernel.
 */
static inline bool shaper_txq_trylock(struct netdev_queue *txq)
{
	if (!IS_ENABLED(CONFIG_SMP) && READ_ONCE(txq->xmit_lock_owner) != -1)
		return false;
	return __netif_tx_trylock(txq);
}

/* Whether a device's queue takes no packets now. */
static inline bool shaper_txq_stopped(const struct netdev_queue *txq)
{
	/* Who wakes or stops it meanwhile changes a bit: either answer is right then. */
	return data_race(netif_xmit_frozen_or_stopped(txq));
}

#endif /* _SHAPER_TXQ_H */
