// SPDX-License-Identifier: GPL-2.0
/*
 * apic_fake_net: two network cards with a cable between them, fake0 and fake1. Each card stamps
 * PTP's event messages by a clock of apic_fake_phc, in steps of some ns, when it sends and when it
 * receives them. A packet reaches the other card at once, but its stamp there is later by @cable.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "fake_phc.h"
#include "hwtstamp.h"

static unsigned int cable = 500;
module_param(cable, uint, 0400);
MODULE_PARM_DESC(cable, "TSC cycles that a packet takes from one card to the other");

static unsigned int step_ns = 8;
module_param(step_ns, uint, 0400);
MODULE_PARM_DESC(step_ns, "resolution of time stamps, in ns (a power of two)");

/**
 * struct card - private part of a network device
 * @n:		number of the card and of its clock
 * @config:	which packets are stamped
 */
struct card {
	unsigned int n;
	struct kernel_hwtstamp_config config;
};

static struct net_device *devices[FAKE_PHCS];

static ktime_t stamp(const struct card *card, u64 tsc)
{
	return ns_to_ktime(round_down(fake_phc_reads(card->n, tsc), (s64)step_ns));
}

/*
 * PTP's event messages are the packets whose sender wants to know when they left. There is no
 * queue: ptp4l calls this directly, so never in an interrupt.
 */
static netdev_tx_t card_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct card *card = netdev_priv(dev);
	struct net_device *other = devices[!card->n];
	struct card *peer = netdev_priv(other);
	bool event = skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP;
	struct sk_buff *received = skb_copy(skb, GFP_ATOMIC);
	struct skb_shared_hwtstamps stamps = {};
	u64 now = rdtsc_ordered();

	if (event && card->config.tx_type == HWTSTAMP_TX_ON) {
		skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
		stamps.hwtstamp = stamp(card, now);
		skb_tstamp_tx(skb, &stamps);
	}
	if (received) {
		if (event && peer->config.rx_filter != HWTSTAMP_FILTER_NONE)
			skb_hwtstamps(received)->hwtstamp = stamp(peer, now + cable);
		dev_forward_skb(other, received);
	}
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
}

static int card_hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config)
{
	struct card *card = netdev_priv(dev);

	*config = card->config;
	return 0;
}

static int card_hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
			     struct netlink_ext_ack *extack)
{
	struct card *card = netdev_priv(dev);

	if (config->tx_type != HWTSTAMP_TX_OFF && config->tx_type != HWTSTAMP_TX_ON)
		return -ERANGE;
	if (config->rx_filter != HWTSTAMP_FILTER_NONE)
		config->rx_filter = HWTSTAMP_FILTER_PTP_V2_EVENT;
	card->config = *config;
	return 0;
}

DEFINE_HWTSTAMP(card)

static int card_get_ts_info(struct net_device *dev, struct kernel_ethtool_ts_info *info)
{
	struct card *card = netdev_priv(dev);

	info->so_timestamping = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
				SOF_TIMESTAMPING_RAW_HARDWARE;
	info->phc_index = fake_phc_index(card->n);
	info->tx_types = BIT(HWTSTAMP_TX_OFF) | BIT(HWTSTAMP_TX_ON);
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) | BIT(HWTSTAMP_FILTER_PTP_V2_EVENT);
	return 0;
}

static const struct net_device_ops card_ops = {
	.ndo_start_xmit = card_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	HWTSTAMP_OPS(card),
};

static const struct ethtool_ops card_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_ts_info = card_get_ts_info,
};

static void card_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &card_ops;
	dev->ethtool_ops = &card_ethtool_ops;
	dev->priv_flags |= IFF_NO_QUEUE;
}

/* Packets pass to the other card while both exist. */
static void remove_all(unsigned int registered)
{
	unsigned int n;

	for (n = 0; n < registered; n++)
		unregister_netdev(devices[n]);
	for (n = 0; n < FAKE_PHCS; n++)
		if (devices[n])
			free_netdev(devices[n]);
}

static int __init fake_net_init(void)
{
	u8 address[ETH_ALEN] = { 2, };
	struct card *card;
	unsigned int n;
	int ret;

	BUILD_BUG_ON(FAKE_PHCS != 2);
	for (n = 0; n < FAKE_PHCS; n++) {
		devices[n] = alloc_netdev(sizeof(*card), "fake%d", NET_NAME_ENUM, card_setup);
		if (!devices[n]) {
			remove_all(0);
			return -ENOMEM;
		}
		card = netdev_priv(devices[n]);
		card->n = n;
		address[ETH_ALEN - 1] = n + 1;
		eth_hw_addr_set(devices[n], address);
	}
	for (n = 0; n < FAKE_PHCS; n++) {
		ret = register_netdev(devices[n]);
		if (ret) {
			remove_all(n);
			return ret;
		}
	}
	return 0;
}

static void __exit fake_net_exit(void)
{
	remove_all(FAKE_PHCS);
}

module_init(fake_net_init);
module_exit(fake_net_exit);

MODULE_DESCRIPTION("Two network cards that time-stamp PTP messages by clocks of known error");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
