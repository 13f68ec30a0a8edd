/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_PATH_H
#define _SHAPER_PATH_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>

/**
 * struct shaper_start - a packet on its way to the driver
 * @skb:	the packet
 * @dev:	its device
 * @txq:	the queue of the device, whose lock is held
 * @at:		its moment, absolute TSC
 * @irqs_on:	turn interrupts on for the driver, as on all other paths to it
 * @ready:	out: when it could have been given to the driver, absolute TSC
 * @left:	out: when the driver got it, as far as is known
 * @rc:		out: the driver's return value
 */
struct shaper_start {
	struct sk_buff *skb;
	struct net_device *dev;
	struct netdev_queue *txq;
	u64 at;
	bool irqs_on;
	u64 ready;
	u64 left;
	netdev_tx_t rc;
};

/* TSC cycles: shaper_path() never returns more. Written once, before any packet is sent. */
extern u32 shaper_path_longest;

int shaper_path_measure(void);
u32 shaper_path(void);
u64 shaper_wait(u64 until);
void shaper_start(struct shaper_start *start);

#endif /* _SHAPER_PATH_H */
