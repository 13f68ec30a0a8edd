/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CB_H
#define _SHAPER_CB_H

#include <linux/bits.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>

struct shaper_flow;

/* The departure time is the application's own, by SO_TXTIME. */
#define SHAPER_TXTIME		BIT(0)
/* The kernel's own transmit path has to send it: its dequeue is all that we do. */
#define SHAPER_STACK		BIT(1)
/* Not from hard interrupt: the driver will do something for it that is not allowed there. */
#define SHAPER_SOFT		BIT(2)
/* Was marked with "congestion experienced", or cannot be. */
#define SHAPER_MARKED		BIT(3)
/* Wants to leave at once: nobody has planned a moment for it. */
#define SHAPER_AT_ONCE		BIT(4)
/* The application's own time is a deadline: it wants to leave at once, and not after that. */
#define SHAPER_DEADLINE		BIT(5)
/* &shaper.prepared when it was queued. */
#define SHAPER_PREPARED_SHIFT	8
#define SHAPER_PREPARED(flags)	((u8)((flags) >> SHAPER_PREPARED_SHIFT))
/* Lower half of the number of its class; 0: it has none. */
#define SHAPER_CLASS_SHIFT	16
#define SHAPER_CLASS(flags)	((flags) >> SHAPER_CLASS_SHIFT)

/**
 * struct shaper_cb - what a queued packet carries in its control block
 * @want:	when it is to leave as far as itself is concerned, TSC cycles: its departure
 *		time, or the moment that it was queued. Of the next packet of a class: when that
 *		lets it leave. While that is far: nanoseconds of its clock
 * @flow:	its flow, or NULL
 * @flags:	SHAPER_* bits
 *
 * Twenty bytes are all that a qdisc has there.
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
