// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_sink: a network device, sinkN, that records when packets arrive at its driver, and
 * drops them. At random it can be full or busy, as hardware can be.
 *
 * Files in /sys/kernel/debug/apic_timer_sink/:
 *
 *	packets		by flow: number of packets that arrived, were lost, doubled, reordered;
 *			and the contexts in which they arrived
 *	errors		s64 each: TSC cycles after the plan in the packet
 *	departures	two u64 each: TSC at the driver's first instruction, plan
 *	flows		u32 each: flow of the packet, in the same order
 *	launches	two s64 each, for queues with LaunchTime on: the packet's launch time minus
 *			the plan in the packet, and minus the time when the driver got it, ns
 *	reset		write: forget all packets
 *	stops, refusals	how often the driver stopped a queue, and how often it had no room
 *	unprepared	packets that lack a checksum although the device computes none
 *	validated	how often the kernel validated a packet, see validate.c
 *	irqs_off	with "driver": packets that came with interrupts off
 *	cut		how often LaunchTime was turned off before the launch time of a packet
 *
 * Parameters, which may be changed at any time: one packet in "stop", at random, stops its queue
 * for a random time, and one packet in "busy" gets NETDEV_TX_BUSY. Half of the latter also stop
 * the queue, as a driver should; the other half do not, as with some drivers. What a driver may
 * overwrite is overwritten before that: its control block, as hv_netvsc does, and its time, as veth
 * does.
 *
 * The device has a parent, as hardware has; with "driver", that has a driver of this name. With
 * "gso" it accepts UDP packets that it would have to split. With "launch" it also has LaunchTime,
 * like a few network cards: it does not delay packets, but records their launch times. To turn it
 * on or off takes twice "launch_ms".
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <net/pkt_sched.h>
#include <asm/msr.h>

#include "compat/hrtimer.h"
#include "sink.h"

#define QUEUES_MAX	512

static unsigned int queues = 1;
module_param(queues, uint, 0444);
MODULE_PARM_DESC(queues, "number of tx queues");

static unsigned int unused;
module_param(unused, uint, 0444);
MODULE_PARM_DESC(unused, "number of tx queues that are not in use");

static unsigned int records = 1 << 18;
module_param(records, uint, 0444);
MODULE_PARM_DESC(records, "number of departures to record; later ones are only counted");

static unsigned int packets = 1 << 20;
module_param(packets, uint, 0444);
MODULE_PARM_DESC(packets, "number of packets per flow whose loss and duplication are detected");

static unsigned int stop;
module_param(stop, uint, 0644);
MODULE_PARM_DESC(stop, "fill the queue at one packet in N; 0: none");

static unsigned int busy;
module_param(busy, uint, 0644);
MODULE_PARM_DESC(busy, "refuse one packet in N; 0: none");

static unsigned int stop_us = 200;
module_param(stop_us, uint, 0644);
MODULE_PARM_DESC(stop_us, "maximum time that a queue is stopped, in us");

static bool launch;
module_param(launch, bool, 0444);
MODULE_PARM_DESC(launch, "the device has LaunchTime");

static unsigned int launch_ms;
module_param(launch_ms, uint, 0444);
MODULE_PARM_DESC(launch_ms, "time before and after LaunchTime is turned on or off, in ms");

static bool gso;
module_param(gso, bool, 0444);
MODULE_PARM_DESC(gso, "the device splits UDP packets itself");

static char *driver;
module_param(driver, charp, 0444);
MODULE_PARM_DESC(driver, "name of the driver of the device's parent");

static struct net_device *device;
static struct dentry *directory;
static struct device *parent;
static struct device_driver named;
static atomic_t stops, refusals, unprepared, irqs_off, cut;

/* Wakes a queue again. All members except the timer are under the queue's lock. */
static struct sink_queue {
	struct hrtimer wake;
	struct netdev_queue *txq;
	struct rnd_state random;
	bool launches;
	ktime_t latest;		/* launch time */
} sink_queues[QUEUES_MAX];

static enum hrtimer_restart sink_wake(struct hrtimer *timer)
{
	netif_tx_wake_queue(container_of(timer, struct sink_queue, wake)->txq);
	return HRTIMER_NORESTART;
}

static bool sink_chance(struct sink_queue *queue, unsigned int one_in)
{
	return one_in && prandom_u32_state(&queue->random) % one_in == 0;
}

static void sink_stop_queue(struct sink_queue *queue)
{
	u32 us = prandom_u32_state(&queue->random) % max(READ_ONCE(stop_us), 1U) + 1;

	atomic_inc(&stops);
	netif_tx_stop_queue(queue->txq);
	/* The kernel may place one that is not pinned on a CPU that is going offline, and warn. */
	hrtimer_start(&queue->wake, ns_to_ktime(us * (u64)NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED);
}

/* Overwrite what belongs to a driver from the moment that it is called. */
static void sink_spoil(struct sk_buff *skb)
{
	memset(skb->cb, 0xa5, sizeof(skb->cb));
	skb_set_delivery_time(skb, 0, 0);
}

static noinline netdev_tx_t sink_take(struct sk_buff *skb, struct net_device *dev, u64 tsc)
{
	struct sink_queue *queue = &sink_queues[skb_get_queue_mapping(skb)];

	if (unlikely(sink_chance(queue, READ_ONCE(busy)))) {
		if (atomic_inc_return(&refusals) & 1)
			sink_stop_queue(queue);
		sink_spoil(skb);
		return NETDEV_TX_BUSY;
	}
	if (unlikely(driver) && irqs_disabled())
		atomic_inc(&irqs_off);
	if (READ_ONCE(queue->launches))
		WRITE_ONCE(queue->latest, skb->tstamp);
	sink_account(skb, tsc, READ_ONCE(queue->launches));
	if (skb->ip_summed == CHECKSUM_PARTIAL && !(dev->features & NETIF_F_CSUM_MASK))
		atomic_inc(&unprepared);
	dev_sw_netstats_tx_add(dev, 1, skb->len);
	dev_kfree_skb_any(skb);
	if (unlikely(sink_chance(queue, READ_ONCE(stop))))
		sink_stop_queue(queue);
	return NETDEV_TX_OK;
}

/* Only read the TSC first: all other work, including the saving of registers, comes after it. */
static notrace netdev_tx_t sink_xmit(struct sk_buff *skb, struct net_device *dev)
{
	return sink_take(skb, dev, rdtsc());
}

/* A sender that sets SO_PRIORITY chooses; the kernel's hash may take one queue for all flows. */
static u16 sink_select_queue(struct net_device *dev, struct sk_buff *skb,
			     struct net_device *sb_dev)
{
	if (skb->priority)
		return skb->priority % dev->real_num_tx_queues;
	return netdev_pick_tx(dev, skb, sb_dev);
}

static int sink_open(struct net_device *dev)
{
	netif_tx_start_all_queues(dev);
	return 0;
}

static int sink_stop(struct net_device *dev)
{
	unsigned int i;

	netif_tx_stop_all_queues(dev);
	for (i = 0; i < queues; i++)
		hrtimer_cancel(&sink_queues[i].wake);
	return 0;
}

static int sink_setup_tc(struct net_device *dev, enum tc_setup_type type, void *data)
{
	const struct tc_etf_qopt_offload *offload = data;
	struct sink_queue *queue;

	if (type != TC_SETUP_QDISC_ETF || !launch)
		return -EOPNOTSUPP;
	if (offload->queue < 0 || offload->queue >= queues)
		return -EINVAL;
	queue = &sink_queues[offload->queue];
	msleep(launch_ms);
	if (!offload->enable && READ_ONCE(queue->latest) > ktime_get_clocktai())
		atomic_inc(&cut);
	WRITE_ONCE(queue->launches, offload->enable);
	msleep(launch_ms);
	return 0;
}

static const struct net_device_ops sink_ops = {
	.ndo_open = sink_open,
	.ndo_stop = sink_stop,
	.ndo_start_xmit = sink_xmit,
	.ndo_select_queue = sink_select_queue,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_setup_tc = sink_setup_tc,
	.ndo_get_stats64 = dev_get_tstats64,
};

static void sink_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &sink_ops;
	dev->flags |= IFF_NOARP;
	dev->flags &= ~IFF_MULTICAST;
	dev->features |= NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	if (gso)
		dev->features |= NETIF_F_GSO_UDP_L4;
	dev->hw_features |= dev->features;
	dev->vlan_features |= dev->features;
	eth_hw_addr_random(dev);
}

static int __init sink_init(void)
{
	unsigned int i;
	int ret;

	if (!queues || queues > QUEUES_MAX || unused >= queues)
		return -EINVAL;
	ret = sink_account_init(records, packets);
	if (ret)
		return ret;
	parent = root_device_register(KBUILD_MODNAME);
	if (IS_ERR(parent)) {
		ret = PTR_ERR(parent);
		goto account;
	}
	named.name = driver;
	parent->driver = driver ? &named : NULL;
	ret = -ENOMEM;
	device = alloc_netdev_mqs(0, "sink%d", NET_NAME_ENUM, sink_setup, queues, 1);
	if (!device)
		goto parent;
	/* The number that "ethtool -L" sets. */
	netif_set_real_num_tx_queues(device, queues - unused);
	SET_NETDEV_DEV(device, parent);
	device->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	if (!device->tstats)
		goto free;
	for (i = 0; i < queues; i++) {
		sink_queues[i].txq = netdev_get_tx_queue(device, i);
		prandom_seed_state(&sink_queues[i].random, i + 1);
		apic_timer_hrtimer_setup(&sink_queues[i].wake, sink_wake, CLOCK_MONOTONIC,
					 HRTIMER_MODE_REL_PINNED);
	}
	ret = register_netdev(device);
	if (ret)
		goto stats;
	directory = debugfs_create_dir("apic_timer_sink", NULL);
	sink_account_files(directory);
	debugfs_create_atomic_t("stops", 0600, directory, &stops);
	debugfs_create_atomic_t("refusals", 0600, directory, &refusals);
	debugfs_create_atomic_t("unprepared", 0600, directory, &unprepared);
	debugfs_create_atomic_t("validated", 0600, directory, &sink_validated);
	debugfs_create_atomic_t("irqs_off", 0600, directory, &irqs_off);
	debugfs_create_atomic_t("cut", 0600, directory, &cut);
	return 0;

stats:
	free_percpu(device->tstats);
free:
	free_netdev(device);
parent:
	parent->driver = NULL;
	root_device_unregister(parent);
account:
	sink_account_exit();
	return ret;
}

static void __exit sink_exit(void)
{
	debugfs_remove(directory);
	unregister_netdev(device);
	free_percpu(device->tstats);
	free_netdev(device);
	parent->driver = NULL;
	root_device_unregister(parent);
	sink_account_exit();
}

module_init(sink_init);
module_exit(sink_exit);

MODULE_DESCRIPTION("Network driver that records when packets arrive");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
