// SPDX-License-Identifier: GPL-2.0
/*
 * LaunchTime: the device keeps a packet until its moment, which is more exact than anything
 * that software does above the bus. The kernel has one interface for it, that of the qdisc etf: the
 * driver is asked to turn it on for a queue, and finds the moment in skb->tstamp, in
 * nanoseconds of the device's own clock. That clock is to be CLOCK_TAI, which is what
 * phc2sys makes of the one or the other; no driver says how far they are apart.
 */
#include <asm/msr.h>
#include <linux/apic_timer.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <net/pkt_sched.h>

#include "offload.h"
#include "shaper.h"

/* The qdiscs that it is on for. RTNL. */
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
 * Whether all of its packets are for one queue of the device. A root has those of all
 * queues, and so has what is below it, unless that is mq or the like, which gives each queue a
 * root of its own. One that was deleted there leaves noop behind, at any number of queues.
 * Those count that "ethtool -L" has taken from the device, too: it gives them back without asking.
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

/* A qdisc that is replaced goes when the one in its place is there, and has asked for the same. */
static bool is_used(const struct Qdisc *sch)
{
	const struct shaper *q;

	list_for_each_entry(q, &users, offloads)
		if (q->sch->dev_queue == sch->dev_queue)
			return true;
	return false;
}

/**
 * shaper_offload() - turn a device's LaunchTime on or off
 * @sch:	the qdisc
 * @was:	it is on, by this qdisc
 * @wanted:	whether it is to be
 * @extack:	where a reason goes if this fails
 *
 * Context: Task context, RTNL.
 * Return: 0; a negative errno, and nothing has changed. To turn it off does not fail.
 */
int shaper_offload(struct Qdisc *sch, bool was, bool wanted, struct netlink_ext_ack *extack)
{
	struct shaper *q = qdisc_priv(sch);
	int err;

	if (was == wanted)
		return 0;
	if (!wanted) {
		list_del(&q->offloads);
		if (!is_used(sch))
			ask(sch, false);
		sch->flags &= ~TCQ_F_OFFLOADED;
		return 0;
	}
	if (!of_one_queue(sch)) {
		NL_SET_ERR_MSG(extack, "offload is for one queue: use apic below mq");
		return -EOPNOTSUPP;
	}
	if (!strcmp(rtnl_dereference(sch->dev_queue->qdisc_sleeping)->ops->id, "etf")) {
		NL_SET_ERR_MSG(extack, "etf turns LaunchTime off as it goes: delete it first");
		return -EBUSY;
	}
	err = ask(sch, true);
	if (err < 0) {
		NL_SET_ERR_MSG(extack, "the device has no LaunchTime for this queue");
		return err;
	}
	list_add(&q->offloads, &users);
	sch->flags |= TCQ_F_OFFLOADED;
	return 0;
}

/**
 * shaper_offload_launch() - write down a packet's moment for the device
 * @skb:	the packet
 * @at:		its moment, absolute TSC
 *
 * A moment that has passed is now: a device may take an older one for one that is yet to come.
 *
 * Context: Any but NMI.
 */
void shaper_offload_launch(struct sk_buff *skb, u64 at)
{
	skb->tstamp = apic_timer_tsc_to_clock(CLOCK_TAI, max(at, rdtsc()));
}
