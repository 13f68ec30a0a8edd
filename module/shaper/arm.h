/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_ARM_H
#define _SHAPER_ARM_H

/*
 * The first packet: which packet it is, when to begin with it, and who sends it.
 *
 * Inline, because these functions run twice for each packet.
 */
#include <linux/apic_timer.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <asm/msr.h>

#include "cb.h"
#include "compat.h"
#include "path.h"
#include "shaper.h"

static inline u64 shaper_before(u64 tsc, u64 cycles)
{
	return tsc > cycles ? tsc - cycles : 0;
}

/* The first packet to leave. Most qdiscs have no classes, and must not pay for them. */
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

/* When a packet wants to leave, regardless of its class's rate. */
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
 * When to hand a packet that leaves at @at to the driver: earlier with offload, or by the time that
 * the driver takes until it starts the card.
 */
static inline u64 shaper_handing(const struct shaper *q, u64 at)
{
	return shaper_before(at, q->handing);
}

/* Moment of a packet that is handed to the driver now, absolute TSC. */
static inline u64 shaper_leaving(const struct shaper *q)
{
	return apic_timer_add_tsc(rdtsc(), READ_ONCE(q->handing));
}

/* Whether the packet was prepared for the driver, for the same features as the latest one. */
static inline bool shaper_is_prepared(const struct shaper *q, const struct sk_buff *skb)
{
	u32 flags = shaper_cb(skb)->flags;

	return !(flags & SHAPER_STACK) && SHAPER_PREPARED(flags) == q->prepared;
}

/* Whether the kernel's own path must send the packet. */
static inline bool shaper_for_stack(const struct shaper *q, const struct sk_buff *skb)
{
	return !shaper_is_prepared(q, skb) || q->features != READ_ONCE(qdisc_dev(q->sch)->features);
}

/* Whether the handler may send the packet, as far as this depends on the packet alone. */
static inline bool shaper_is_plain(const struct shaper *q, const struct sk_buff *skb)
{
	return !(shaper_cb(skb)->flags & SHAPER_SOFT) && shaper_is_prepared(q, skb);
}

/*
 * Whether the handler may send the packet. Receivers of taps take locks that must not be taken in
 * hard interrupt. While the kernel may give a packet back, it owns the accounts.
 */
static inline bool shaper_for_interrupt(const struct shaper *q, const struct sk_buff *skb)
{
	return q->mode == TC_APIC_MODE_HARD && shaper_is_plain(q, skb) && !q->handed &&
	       !shaper_for_stack(q, skb) && shaper_is_root(q->sch) &&
	       !shaper_tapped(qdisc_dev(q->sch));
}

/* The latest moment for a packet to leave. A deadline is converted by its clock's present line. */
static inline u64 shaper_until(struct shaper *q, const struct sk_buff *skb)
	__must_hold(&q->lock)
{
	bool is_far;

	if (unlikely(shaper_cb(skb)->flags & SHAPER_DEADLINE))
		return shaper_far_to_tsc(shaper_tstamp_clock(skb, q->config.clock), skb->tstamp,
					 U64_MAX, &is_far);
	return shaper_wanted(q, skb);
}

/* Whether the packet must be dropped because it is late. */
static inline bool shaper_too_late(struct shaper *q, const struct sk_buff *skb, u64 now)
	__must_hold(&q->lock)
{
	return q->config.late == TC_APIC_LATE_DROP && shaper_cb(skb)->flags & SHAPER_TXTIME &&
	       now > apic_timer_add_tsc(shaper_until(q, skb), q->late);
}

/*
 * The lead: time from the timer's expiry to the packet's hand-over, by the interrupt or not.
 * The time that interrupts spend waiting is lost for the rest of the system, so a busy CPU gets a
 * shorter lead. The sender that queues the first packet checks its own CPU, which may not be the
 * timer's. The packet may then be late by the difference, or the wait is longer by it. The same
 * happens when the CPU becomes busy, or no longer is.
 */
static inline u64 shaper_lead_when(const struct shaper *q, bool by_interrupt, unsigned int busy)
{
	u32 cycles = q->lead_soft.cycles;

	if (by_interrupt)
		cycles = likely(!busy) ? q->lead_hard.cycles : q->lead_hard.usual;
	return shaper_path_longest + cycles;
}

static inline u64 shaper_lead_for(const struct shaper *q, bool by_interrupt)
{
	return shaper_lead_when(q, by_interrupt, by_interrupt ? apic_timer_busy() : 0);
}

void shaper_arm_at(struct shaper *q, u64 expires);
void shaper_come_near(struct shaper *q);
void shaper_look_again(struct shaper *q);
void shaper_arm(struct shaper *q);

/**
 * shaper_join() - put a packet into the queue
 * @q:		the qdisc
 * @skb:	the packet, which wants to leave now or soon, and is accounted for already
 *
 * Context: Interrupts off, @q->lock held.
 * Return: whether the packet is the first of the queue, or of its class.
 */
static __always_inline bool shaper_join(struct shaper *q, struct sk_buff *skb)
	__must_hold(&q->lock)
{
	if (unlikely(shaper_has_class(skb)))
		return shaper_class_insert(&q->classes, &q->plan, skb);
	return shaper_edf_insert(&q->edf, skb);
}

/*
 * Maximum number of packets that one call lets into the queue. If the clocksource is not the TSC,
 * it is read twice for each packet, which takes microseconds with an HPET.
 */
#define SHAPER_JOIN	2

/* Let packets that have come near into the queue. */
static __always_inline void shaper_let_in(struct shaper *q)
	__must_hold(&q->lock)
{
	u64 now = rdtsc();
	unsigned int budget = SHAPER_JOIN;
	struct sk_buff *skb;

	while (budget-- && shaper_far_due(&q->far, now)) {
		skb = shaper_far_pop(&q->far, now, q->near, q->handing);
		if (!skb)
			return;
		shaper_join(q, skb);
	}
}

/* Moment at which to begin with a packet. */
static __always_inline u64
shaper_preparation(const struct shaper *q, const struct sk_buff *skb, bool next, unsigned int busy)
{
	u64 at = shaper_handing(q, shaper_moment(q, skb));

	if (next && likely(shaper_is_plain(q, skb)))
		return shaper_before(at, shaper_lead_when(q, true, busy));
	return shaper_before(at, shaper_lead_for(q, shaper_for_interrupt(q, skb)));
}

/* Arm the timer as shaper_arm_at() does, which is left the unusual cases. */
static __always_inline void shaper_arm_placed(struct shaper *q, u64 expires)
	__must_hold(&q->lock)
{
	if (likely(q->placed)) {
		q->asked = expires;
		q->since = max_t(u64, expires, rdtsc());
		if (likely(mod_apic_timer(&q->timer, expires) >= 0))
			return;
	}
	shaper_arm_at(q, expires);
}

static __always_inline void shaper_arm_when(struct shaper *q, bool next, unsigned int busy)
	__must_hold(&q->lock)
{
	u64 expires = U64_MAX;
	struct sk_buff *skb;

	lockdep_assert_held(&q->lock);
	if (q->dead || q->sender != SHAPER_NOBODY)
		return;
	if (unlikely(q->stopped)) {
		shaper_look_again(q);
		return;
	}
	if (unlikely(q->far.count)) {
		shaper_let_in(q);
		expires = shaper_far_look(&q->far);
	}
	skb = shaper_first(q);
	if (skb)
		expires = min(expires, shaper_preparation(q, skb, next, busy));
	else if (!q->far.count)
		return;
	if (expires != q->asked || !apic_timer_pending(&q->timer))
		shaper_arm_placed(q, expires);
}

/**
 * shaper_arm_next() - arm the timer for the first packet, after the handler has sent one
 * @q:		the qdisc
 * @busy:	earlier result of apic_timer_busy()
 *
 * The conditions under which the handler may send (for example, no taps) have hardly changed, and
 * are not checked again here. If they have changed, the handler leaves the packet to softirq.
 *
 * Context: Interrupts off, @q->lock held.
 */
static __always_inline void shaper_arm_next(struct shaper *q, unsigned int busy)
	__must_hold(&q->lock)
{
	shaper_arm_when(q, true, busy);
}

#endif /* _SHAPER_ARM_H */
