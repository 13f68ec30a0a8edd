/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SEND_H
#define _SHAPER_SEND_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/percpu.h>

#include <trace/events/sch_apic.h>

#include "arm.h"
#include "cb.h"
#include "compat.h"
#include "path.h"
#include "shaper.h"

/**
 * struct shaper_sending - a packet that a sender has taken, with its data that are needed later
 * @start:	argument of shaper_start(); its moment is when to hand the packet over
 * @at:		its moment, absolute TSC
 * @want:	of its &struct shaper_cb, which the driver may overwrite
 * @flow:	its flow, or NULL; as @want
 * @tstamp:	its own time, which @launched or the driver may overwrite
 * @class:	its class, or NULL; set after sending, and valid while the sender holds q->lock
 * @len:	its length for the accounts, bytes
 * @segs:	number of packets on the wire
 * @generation:	&shaper.generation when it was taken
 * @flags:	as @want
 * @mode:	TC_APIC_MODE_* by which it is sent; %TC_APIC_MODE_AUTO: the kernel sends it
 * @tstamp_type: the clock of @tstamp, see shaper_tstamp_type()
 * @planned:	it had a moment, of its own or by the rate, for which it can be late
 * @launched:	the device has its moment, by offload
 * @taken:	the driver has it
 */
struct shaper_sending {
	struct shaper_start start;
	u64 at;
	u64 want;
	struct shaper_flow *flow;
	ktime_t tstamp;
	struct shaper_class *class;
	unsigned int len;
	unsigned int segs;
	u32 generation;
	u32 flags;
	u32 mode;
	u8 tstamp_type;
	bool planned;
	bool launched;
	bool taken;
};

/* TSC at which a qdisc has last ended the wait for a packet's moment on this CPU */
DECLARE_PER_CPU(u64, shaper_waited_until);

bool shaper_schedule(struct shaper *q);
void shaper_kick(struct shaper *q);
void shaper_take_specially(struct shaper *q, struct sk_buff *skb, struct shaper_sending *sending);
void shaper_account_class(struct shaper *q, struct shaper_sending *sending);
struct sk_buff *shaper_put_back(struct shaper *q, struct shaper_sending *sending,
				bool by_interrupt);

/* The following functions are inline, because they run for each packet. */

/**
 * shaper_take() - remove a packet from the queue, to send it
 * @q:		the qdisc
 * @skb:	the first packet
 * @txq:	the queue of the device that it leaves by
 * @at:		its moment, absolute TSC
 * @sending:	set: the packet's data that are needed later
 * @sender:	the sender
 *
 * Context: Interrupts off, @q->lock held.
 */
static __always_inline void
shaper_take(struct shaper *q, struct sk_buff *skb, struct netdev_queue *txq, u64 at,
	    struct shaper_sending *sending, enum shaper_sender sender)
	__must_hold(&q->lock)
{
	struct net_device *dev = txq->dev;
	struct shaper_cb *cb = shaper_cb(skb);

	/* Set fields one by one: those that shaper_start() sets need not be zeroed. */
	sending->start.skb = skb;
	sending->start.dev = dev;
	sending->start.txq = txq;
	sending->start.at = shaper_handing(q, at);
	sending->start.irqs_on = false;
	sending->at = at;
	sending->flow = cb->flow;
	sending->class = NULL;
	sending->len = qdisc_pkt_len(skb);
	sending->segs = shaper_pkt_segs(skb);
	sending->generation = q->generation;
	sending->mode = TC_APIC_MODE_AUTO;
	sending->planned = !(cb->flags & SHAPER_AT_ONCE) || at != cb->want;
	sending->launched = false;
	sending->taken = false;
	/* Its own time and clock: for offload, another time replaces it. */
	sending->tstamp = skb->tstamp;
	sending->tstamp_type = shaper_tstamp_type(skb);
	q->sender = sender;
	if (likely(!(q->ce_threshold | q->launch) && !shaper_has_class(skb)))
		shaper_edf_erase(&q->edf, skb);
	else
		shaper_take_specially(q, skb, sending);
	/* Not earlier: that may have marked it. */
	sending->want = cb->want;
	sending->flags = cb->flags;
	skb->dev = dev;
}

/**
 * shaper_give() - give a packet to the driver at its moment
 * @sending:	the packet
 * @mode:	TC_APIC_MODE_* by which it is sent
 *
 * Context: Interrupts off. The device's queue is locked and not stopped.
 */
static __always_inline void shaper_give(struct shaper_sending *sending, u32 mode)
{
	const struct shaper_start *start = &sending->start;

	sending->mode = mode;
	shaper_start(&sending->start);
	sending->taken = dev_xmit_complete(start->rc);
	/* Do not dereference @start->skb: the driver may have freed it. */
	trace_sch_apic_send(start->dev, start->skb, sending->len, start->at, start->left,
			    start->ready, mode, start->rc);
}

/* Account for a packet that has left the queue. */
static __always_inline void shaper_account(struct shaper *q, struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	const struct shaper_start *start = &sending->start;

	if (unlikely(q->classes.sending))
		shaper_account_class(q, sending);

	/* A packet that wanted to leave at once had no moment but the one it left at. */
	if (q->plan.rate)
		shaper_plan_sent(&q->plan, sending->planned ? sending->at : start->left,
				 start->left, sending->len);
	if (unlikely(q->classes.count && !sending->class))
		shaper_classes_rest_left(&q->classes, &q->plan);
	_bstats_update(&q->sch->bstats, sending->len, sending->segs);
	if (unlikely(sending->generation != q->generation))
		return;
	shaper_flow_leave(sending->flow);
	shaper_leave(q, 1, sending->len);
}

static __always_inline void shaper_count_sent(struct tc_apic_xstats *stats, u32 mode)
{
	switch (mode) {
	case TC_APIC_MODE_HARD:
		stats->sent_hard++;
		return;
	case TC_APIC_MODE_SOFT:
		stats->sent_soft++;
		return;
	case TC_APIC_MODE_THREAD:
		stats->sent_thread++;
		return;
	default:
		stats->sent_stack++;
	}
}

static __always_inline void
shaper_count_error(const struct shaper *q, struct tc_apic_xstats *stats, s64 error)
{
	stats->errors[error <= 0 ? 0 : min(fls64(error), TC_APIC_ERRORS - 1)]++;
	if (error > (s64)q->late)
		stats->late++;
	if (error < 0)
		stats->early++;
}

/* Count a packet that has left, and its error. */
static __always_inline void shaper_count(struct shaper *q, const struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	const struct shaper_start *start = &sending->start;
	/* Compare with the moment it was taken for: the configuration may have changed since. */
	s64 error = start->left - start->at;

	shaper_count_sent(&q->stats, sending->mode);
	if (unlikely(sending->class))
		shaper_count_sent(&sending->class->stats, sending->mode);
	if (!sending->planned)
		return;
	/* The device keeps the packet until its moment. */
	if (unlikely(sending->launched))
		error = max_t(s64, start->left - sending->at, 0);
	shaper_count_error(q, &q->stats, error);
	if (unlikely(sending->class))
		shaper_count_error(q, &sending->class->stats, error);
	q->waited += start->left - start->ready;
}

/**
 * shaper_finish() - finish a packet that was sent, or that the driver did not take
 * @q:		the qdisc
 * @sending:	the packet
 *
 * Context: Interrupts off, @q->lock held.
 * Return: a packet that the caller has to free, or NULL.
 */
static __always_inline struct sk_buff *shaper_finish(struct shaper *q,
						     struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	bool by_interrupt = q->sender == SHAPER_INTERRUPT;

	q->sender = SHAPER_NOBODY;
	if (unlikely(!sending->taken))
		return shaper_put_back(q, sending, by_interrupt);
	shaper_account(q, sending);
	shaper_count(q, sending);
	return NULL;
}

/**
 * shaper_learn() - take the preparation of a packet into account
 * @lead:	the lead
 * @sending:	the packet, which the driver has
 * @since:	TSC at which the timer has expired; 0: the packet did not wait for it
 * @found:	state of the CPU that the interrupt found
 *
 * If another qdisc was waiting on this CPU then, the preparation includes a part of that wait. The
 * other one may just as well have to wait for this one: each would learn the lead of the other,
 * plus a little.
 *
 * Context: Interrupts off, the qdisc's lock held.
 */
static __always_inline void
shaper_learn(struct shaper_lead *lead, const struct shaper_sending *sending, u64 since,
	     enum shaper_lead_found found)
{
	if (likely((s64)(since - this_cpu_read(shaper_waited_until)) > 0))
		shaper_lead_learn(lead, sending->start.ready - since, found);
	this_cpu_write(shaper_waited_until, sending->start.left);
}

#endif /* _SHAPER_SEND_H */
