/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_ARM_H
#define _SHAPER_ARM_H

/*
 * The first packet: which one that is, when it is to be seen to, and by whom.
 *
 * Inline, as each packet comes here twice.
 */
#include <linux/apic_timer.h>
#include <linux/netdevice.h>

#include "cb.h"
#include "compat.h"
#include "path.h"
#include "shaper.h"

static inline u64 shaper_before(u64 tsc, u64 cycles)
{
	return tsc > cycles ? tsc - cycles : 0;
}

/* The first to leave. Most have no classes, and are not to pay for them. */
static inline struct sk_buff *shaper_first(struct shaper *q)
	__must_hold(&q->lock)
{
	if (likely(!shaper_edf_first(&q->classes.heads)))
		return shaper_edf_first(&q->edf);
	return shaper_classes_first(&q->classes, &q->edf, &q->plan);
}

static inline bool shaper_has_class(const struct sk_buff *skb)
{
	return SHAPER_CLASS(shaper_cb(skb)->flags);
}

/* When a packet wants to leave, whatever its class lets it. */
static inline u64 shaper_wanted(struct shaper *q, const struct sk_buff *skb)
	__must_hold(&q->lock)
{
	return shaper_has_class(skb) ? shaper_class_of(&q->classes, skb)->want :
				       shaper_cb(skb)->want;
}

static inline u64 shaper_moment(const struct shaper *q, const struct sk_buff *skb)
{
	return shaper_plan_at(&q->plan, shaper_cb(skb)->want);
}

/*
 * When what leaves at a moment is to be handed to the driver: ahead of it with offload, or by what
 * the driver takes until it starts the card.
 */
static inline u64 shaper_handing(const struct shaper *q, u64 at)
{
	return shaper_before(at, q->handing);
}

/* Whether the kernel's own path has to send it. */
static inline bool shaper_for_stack(const struct shaper *q, const struct sk_buff *skb)
{
	u32 flags = shaper_cb(skb)->flags;

	return flags & SHAPER_STACK || SHAPER_PREPARED(flags) != q->prepared ||
	       q->features != READ_ONCE(qdisc_dev(q->sch)->features);
}

/* The same of all that has to do with the packet alone. */
static inline bool shaper_is_plain(const struct shaper *q, const struct sk_buff *skb)
{
	u32 flags = shaper_cb(skb)->flags;

	return !(flags & (SHAPER_SOFT | SHAPER_STACK)) && SHAPER_PREPARED(flags) == q->prepared;
}

/*
 * Whether the handler may send it. Taps' receivers take locks that may not be
 * taken there; and while the kernel may give a packet back, the accounts are its.
 */
static inline bool shaper_for_interrupt(const struct shaper *q, const struct sk_buff *skb)
{
	return q->mode == TC_APIC_MODE_HARD && !(shaper_cb(skb)->flags & SHAPER_SOFT) &&
	       !q->handed && !shaper_for_stack(q, skb) && shaper_is_root(q->sch) &&
	       !shaper_tapped(qdisc_dev(q->sch));
}

/* Until when a packet has to leave. A deadline is compared with what its clock is now. */
static inline u64 shaper_until(struct shaper *q, const struct sk_buff *skb)
	__must_hold(&q->lock)
{
	bool is_far;

	if (unlikely(shaper_cb(skb)->flags & SHAPER_DEADLINE))
		return shaper_far_to_tsc(shaper_tstamp_clock(skb, q->config.clock), skb->tstamp,
					 U64_MAX, &is_far);
	return shaper_wanted(q, skb);
}

/* Whether it is to be dropped for being late. */
static inline bool shaper_too_late(struct shaper *q, const struct sk_buff *skb, u64 now)
	__must_hold(&q->lock)
{
	return q->config.late == TC_APIC_LATE_DROP && shaper_cb(skb)->flags & SHAPER_TXTIME &&
	       now > apic_timer_add_tsc(shaper_until(q, skb), q->late);
}

/*
 * How much before it is to be handed over a packet is to be seen to, by the interrupt or not.
 * What interrupts wait for is taken from the rest of the system, which needs its turn. Who
 * queues the first packet asks that of its own CPU, which may not be the timer's: that packet may
 * be late by the difference, or be waited for so much longer, as when the answer changes.
 */
static inline u64 shaper_lead_when(const struct shaper *q, bool by_interrupt, unsigned int busy)
{
	u32 cycles = q->lead_soft.cycles;

	if (by_interrupt)
		cycles = likely(!busy) ? q->lead_hard.cycles : q->lead_hard.usual;
	return shaper_path() + cycles;
}

static inline u64 shaper_lead_for(const struct shaper *q, bool by_interrupt)
{
	return shaper_lead_when(q, by_interrupt, by_interrupt ? apic_timer_busy() : 0);
}

void shaper_arm_at(struct shaper *q, u64 expires);
void shaper_come_near(struct shaper *q);
bool shaper_join(struct shaper *q, struct sk_buff *skb);
void shaper_arm(struct shaper *q);
void shaper_arm_next(struct shaper *q, unsigned int busy);

#endif /* _SHAPER_ARM_H */
