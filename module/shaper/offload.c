// SPDX-License-Identifier: GPL-2.0
/*
 * LaunchTime: the device keeps a packet until its moment, which is more exact than any software
 * above the bus. The kernel has one interface for it, that of the qdisc etf: the driver is asked
 * to turn it on for a queue, and finds the moment in skb->tstamp, in nanoseconds of the device's
 * own clock. That clock must agree with CLOCK_TAI, for which phc2sys can adjust either of the
 * two; no driver reports how far they are apart.
 */
#include <asm/msr.h>
#include <linux/apic_timer.h>
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <net/pkt_sched.h>

#include "offload.h"
#include "shaper.h"

/* The qdiscs that use LaunchTime. RTNL. */
static LIST_HEAD(users);

static int ask(struct Qdisc *sch, bool enable)
{
	struct net_device *dev = qdisc_dev(sch);
	struct tc_etf_qopt_offload offload = {
		.enable = enable,
		.queue = sch->dev_queue - netdev_get_tx_queue(dev, 0),
	};

	if (!dev->netdev_ops->ndo_setup_tc)
		return -EOPNOTSUPP;
	return dev->netdev_ops->ndo_setup_tc(dev, TC_SETUP_QDISC_ETF, &offload);
}

/*
 * Check whether all packets of a qdisc are for one queue of the device. A root has the packets of
 * all queues, and so do the qdiscs below it, unless it is mq or the like, which gives each queue
 * a root of its own. A root deleted there leaves noop behind, possibly on several queues. Queues
 * that "ethtool -L" has disabled count as well: it enables them again without asking.
 */
static bool of_one_queue(const struct Qdisc *sch)
{
	const struct net_device *dev = qdisc_dev(sch);
	const struct Qdisc *root = rcu_access_pointer(sch->dev_queue->qdisc_sleeping);
	unsigned int i, queues = 0;

	if (dev->num_tx_queues == 1)
		return true;
	if (sch->parent == TC_H_ROOT)
		return false;
	if (root == &noop_qdisc)
		return true;
	for (i = 0; i < dev->num_tx_queues; i++)
		queues += rcu_access_pointer(netdev_get_tx_queue(dev, i)->qdisc_sleeping) == root;
	return queues == 1;
}

/* A replaced qdisc is destroyed after its successor exists and has asked for the same. */
static bool is_used(const struct Qdisc *sch)
{
	const struct shaper *q;

	list_for_each_entry(q, &users, offloads)
		if (q->sch->dev_queue == sch->dev_queue)
			return true;
	return false;
}

/* While a root is replaced, and while the device is down, its queue has no qdisc that sends. */
static bool queue_is_active(const struct Qdisc *sch)
{
	return rcu_access_pointer(sch->dev_queue->qdisc) != &noop_qdisc;
}

static void set_launch(struct shaper *q, bool launch)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&q->lock, flags);
	q->launch = launch;
	raw_spin_unlock_irqrestore(&q->lock, flags);
}

/*
 * Wait for packets that were taken from the queue: whoever takes one sends it under RCU. Those
 * that the kernel keeps because their queue is stopped are not waited for.
 */
static void wait_for_taken(void)
{
	synchronize_net();
}

/**
 * shaper_offload_on() - turn a device's LaunchTime on
 * @sch:	the qdisc, which has not turned it on
 * @extack:	receives the reason if this fails
 *
 * The device must not see the time of an application, which may be of another clock: packets get
 * their moments first. They are handed over ahead of them only after this.
 *
 * Context: Task context, RTNL.
 * Return: 0; a negative errno, and nothing has changed.
 */
int shaper_offload_on(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	struct shaper *q = qdisc_priv(sch);
	int err;

	if (!of_one_queue(sch)) {
		NL_SET_ERR_MSG(extack, "offload requires a qdisc per queue: use apic below mq");
		return -EOPNOTSUPP;
	}
	if (!strcmp(rtnl_dereference(sch->dev_queue->qdisc_sleeping)->ops->id, "etf")) {
		NL_SET_ERR_MSG(extack, "etf turns LaunchTime off when deleted: delete it first");
		return -EBUSY;
	}
	set_launch(q, true);
	wait_for_taken();
	err = ask(sch, true);
	if (err < 0) {
		set_launch(q, false);
		NL_SET_ERR_MSG(extack, "the device does not support LaunchTime on this queue");
		return err;
	}
	list_add(&q->offloads, &users);
	sch->flags |= TCQ_F_OFFLOADED;
	return 0;
}

/**
 * shaper_offload_off() - turn a device's LaunchTime off
 * @sch:	the qdisc, which has turned it on, and hands packets over at their moments again
 * @ahead_ns:	how long before their moments it has handed them over until now
 * @destroyed:	@sch is being destroyed
 *
 * The device would send at once what it still has, and what it gets ahead of its moment. But
 * below mq or another qdisc, a successor sends before @sch is destroyed. The device would delay
 * its packets by times of an application, perhaps of another clock: then do not wait.
 *
 * Context: Task context, RTNL. Sleeps.
 */
void shaper_offload_off(struct Qdisc *sch, u64 ahead_ns, bool destroyed)
{
	struct shaper *q = qdisc_priv(sch);

	list_del(&q->offloads);
	if (!is_used(sch)) {
		if (!destroyed || !queue_is_active(sch)) {
			wait_for_taken();
			fsleep(DIV_ROUND_UP(ahead_ns, NSEC_PER_USEC));
		}
		ask(sch, false);
	}
	set_launch(q, false);
	sch->flags &= ~TCQ_F_OFFLOADED;
}

/**
 * shaper_offload_launch() - store a packet's moment for the device
 * @skb:	the packet
 * @at:		its moment, absolute TSC
 *
 * Replace a past moment by the present: a device may mistake an older one for a future one.
 *
 * Context: Any but NMI.
 */
void shaper_offload_launch(struct sk_buff *skb, u64 at)
{
	skb->tstamp = apic_timer_tsc_to_clock(CLOCK_TAI, max(at, rdtsc()));
}
