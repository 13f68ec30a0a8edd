/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CB_H
#define _SHAPER_CB_H

#include <linux/bits.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>

struct shaper_flow;

/* The application has set the departure time, by SO_TXTIME. */
#define SHAPER_TXTIME		BIT(0)
/* The kernel's own transmit path has to send it; we only dequeue it. */
#define SHAPER_STACK		BIT(1)
/* Must not be sent in hard interrupt: the driver will do something that is not allowed there. */
#define SHAPER_SOFT		BIT(2)
/* Was marked with "congestion experienced", or cannot be marked. */
#define SHAPER_MARKED		BIT(3)
/* Wants to leave at once: it has no planned departure time. */
#define SHAPER_AT_ONCE		BIT(4)
/* The application's time is a deadline: the packet wants to leave at once, and not after it. */
#define SHAPER_DEADLINE		BIT(5)
/* Value of &shaper.prepared when it was queued. */
#define SHAPER_PREPARED_SHIFT	8
#define SHAPER_PREPARED(flags)	((u8)((flags) >> SHAPER_PREPARED_SHIFT))
/* Lower half of the number of its class; 0: no class. */
#define SHAPER_CLASS_SHIFT	16
#define SHAPER_CLASS(flags)	((flags) >> SHAPER_CLASS_SHIFT)

/**
 * struct shaper_cb - our data in the control block of a queued packet
 * @want:	when the packet itself wants to leave, TSC cycles: its departure time, or the
 *		moment that it was queued. For the next packet of a class: when the class lets it
 *		leave. For a far packet: nanoseconds of its clock
 * @flow:	its flow, or NULL
 * @flags:	SHAPER_* bits
 *
 * A qdisc has only twenty bytes there. They belong to whoever has the packet: a driver may
 * overwrite them even if it then does not take the packet. See shaper_put_back().
 */
struct shaper_cb {
	u64 want;
	struct shaper_flow *flow;
	u32 flags;
} __packed __aligned(4);

static inline struct shaper_cb *shaper_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct shaper_cb));
	return (struct shaper_cb *)qdisc_skb_cb(skb)->data;
}

#endif /* _SHAPER_CB_H */
