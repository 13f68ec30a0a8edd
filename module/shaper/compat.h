/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the supported kernels, as far as they concern the shaper.
 */
#ifndef _SHAPER_COMPAT_H
#define _SHAPER_COMPAT_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/time.h>
#include <linux/version.h>
#include <net/sch_generic.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

/*
 * A variable that is not zeroed although the compiler zeroes all others: zeroing would take a
 * store for each of its words, for each packet. The first kernels of 6.1 and 6.12 lack it.
 */
#ifndef __uninitialized
#define __uninitialized
#endif

/* Whether the driver does its own locking: a feature up to 6.11, a flag since 6.12. */
static inline bool shaper_lltx(const struct net_device *dev)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return dev->lltx;
#else
	return dev->features & NETIF_F_LLTX;
#endif
}

/*
 * Whether a tap, such as tcpdump, wants to see sent packets. The lists are only checked for
 * being empty, so this may be called in hard interrupt. Since 6.16 the lists belong to a
 * network namespace, and are found under RCU.
 */
static inline bool shaper_tapped(struct net_device *dev)
{
	return dev_nit_active(dev);
}

/* Set the size by which the qdisc layer knows a packet, and into how many it is split. */
static inline void shaper_set_pkt_len(struct sk_buff *skb, unsigned int len, unsigned int segs)
{
	qdisc_skb_cb(skb)->pkt_len = len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	qdisc_skb_cb(skb)->pkt_segs = segs;
#endif
}

/* Number of packets on the wire, for statistics. */
static inline unsigned int shaper_pkt_segs(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
}

/*
 * Why the qdisc drops a packet. Since 6.19 the reason is in the part of the control block that
 * segmentation overwrites, so what the kernel has put there before enqueue may be gone.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define SHAPER_DROP_LIMIT	QDISC_DROP_OVERLIMIT
#define SHAPER_DROP_FLOW_LIMIT	QDISC_DROP_FLOW_LIMIT
#define SHAPER_DROP_HORIZON	QDISC_DROP_HORIZON_LIMIT
#define SHAPER_DROP		QDISC_DROP_GENERIC
#else
#ifdef DEFINE_QDISC_DROP_REASON
#define SHAPER_DROP		QDISC_DROP_GENERIC
#else
#define SHAPER_DROP		SKB_DROP_REASON_QDISC_DROP
#endif
#define SHAPER_DROP_LIMIT	SHAPER_DROP
#define SHAPER_DROP_FLOW_LIMIT	SHAPER_DROP
#define SHAPER_DROP_HORIZON	SHAPER_DROP
#endif

/* As qdisc_drop_reason() of the newer kernels. */
static inline int shaper_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
			      u32 reason)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	tc_skb_cb(skb)->drop_reason = reason;
#endif
	return qdisc_drop(skb, sch, to_free);
}

/* The bits that say which clock a packet's time is of, for skb_set_delivery_time(). */
static inline u8 shaper_tstamp_type(const struct sk_buff *skb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	return skb->tstamp_type;
#else
	return skb->mono_delivery_time;
#endif
}

/**
 * shaper_tstamp_clock() - find the clock of a packet's departure time
 * @skb:	the packet, with skb->tstamp set
 * @unknown:	clock to assume if the packet does not specify one
 *
 * A socket with SO_TXTIME has a clock. Otherwise a bit of the packet means CLOCK_MONOTONIC, as
 * set by TCP and BPF. Since 6.11 there are two bits; their value for CLOCK_REALTIME, 0, can
 * also mean that no clock was set.
 *
 * Return: the clock.
 */
static inline clockid_t shaper_tstamp_clock(const struct sk_buff *skb, clockid_t unknown)
{
	const struct sock *sk = skb->sk;

	if (sk && sk_fullsock(sk) && sock_flag(sk, SOCK_TXTIME)) {
		switch (sk->sk_clockid) {
		case CLOCK_MONOTONIC:
		case CLOCK_TAI:
		case CLOCK_REALTIME:
			return sk->sk_clockid;
		}
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	switch (skb->tstamp_type) {
	case SKB_CLOCK_MONOTONIC:
		return CLOCK_MONOTONIC;
	case SKB_CLOCK_TAI:
		return CLOCK_TAI;
	}
#else
	if (skb->mono_delivery_time)
		return CLOCK_MONOTONIC;
#endif
	return unknown;
}

#endif /* _SHAPER_COMPAT_H */
