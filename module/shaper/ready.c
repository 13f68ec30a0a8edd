// SPDX-License-Identifier: GPL-2.0
/*
 * Queueing: determine when a packet wants to leave, and do all that can be done in advance.
 *
 * A packet is made ready for the driver before it is queued: it is split, its checksum is
 * computed, and its VLAN tag is inserted, unless the device can do that. The handler then only
 * has to call the driver.
 */
#include <linux/errqueue.h>
#include <linux/netdevice.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/xfrm.h>
#include <asm/msr.h>

#include <trace/events/sch_apic.h>

#include "arm.h"
#include "cb.h"
#include "classify.h"
#include "compat.h"
#include "epoch.h"
#include "ready.h"
#include "report.h"
#include "soft.h"

/**
 * struct request - when a packet wants to leave
 * @now:	TSC
 * @want:	absolute TSC
 * @timed:	@want is a departure time of @clock, or now if that time has passed
 * @far:	the departure time is far, and has to be converted again
 * @clock:	clock of the departure time
 * @flags:	SHAPER_*
 * @epoch:	with PREEMPT_RT: &shaper.epoch, read before @now
 * @flow:	its flow, or NULL
 * @class:	its class, or NULL
 * @pace:	rate of its socket, bit/s; 0: none
 * @features:	features of the device, read before the packet was prepared for them
 */
struct request {
	u64 now;
	u64 want;
	bool timed;
	bool far;
	clockid_t clock;
	u32 flags;
	u32 epoch;
	struct shaper_flow *flow;
	struct shaper_class *class;
	u64 pace;
	netdev_features_t features;
};

static int drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u32 reason,
		u64 *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
	return shaper_drop(skb, sch, to_free, reason);
}

/*
 * Use the packet's own departure time. A packet whose time has passed keeps its place in the
 * order of its clock: those before it may be late as well, and may not have left yet.
 *
 * Return: false if the time is beyond the horizon, and the packet must be dropped.
 */
static bool from_tstamp(struct shaper *q, const struct sk_buff *skb, struct request *request)
{
	const struct sock *sk = skb->sk && sk_fullsock(skb->sk) ? skb->sk : NULL;
	clockid_t clock = shaper_tstamp_clock(skb, q->config.clock);
	/* With order within a flow, a later conversion could change the order: none is far. */
	u64 near = q->config.flow_order ? U64_MAX :
		   apic_timer_add_tsc(request->now, READ_ONCE(q->near) + READ_ONCE(q->handing));
	u64 at, horizon = READ_ONCE(q->horizon);
	bool far;

	at = shaper_far_to_tsc(clock, skb->tstamp, near, &far);

	if (sk && sock_flag(sk, SOCK_TXTIME)) {
		request->flags |= SHAPER_TXTIME;
		/* shaper_too_late() checks the deadline later. */
		if (sk->sk_txtime_deadline_mode) {
			request->flags |= SHAPER_DEADLINE | SHAPER_AT_ONCE;
			return true;
		}
	} else if (at <= request->now) {
		/* TCP sets the present time, unless it is paced. */
		request->flags |= SHAPER_AT_ONCE;
		request->timed = !q->config.flow_order;
		request->clock = clock;
		return true;
	}
	request->want = at;
	if (at > request->now && at - request->now > horizon) {
		if (!q->config.horizon_cap)
			return false;
		request->want = apic_timer_add_tsc(request->now, horizon);
		WRITE_ONCE(q->stats.capped_horizon, q->stats.capped_horizon + 1);
	} else {
		request->timed = !q->config.flow_order;
		request->far = far;
		request->clock = clock;
	}
	return true;
}

/* Return the rate of the socket of a packet without a departure time, bit/s; 0: none. */
static u64 pace(const struct shaper *q, const struct sk_buff *skb)
{
	struct sock *sk = skb->sk && sk_fullsock(skb->sk) ? skb->sk : NULL;
	unsigned long rate;

	if (!q->config.pacing || !sk)
		return 0;
	/* Paced TCP uses a timer of its own, unless a qdisc does the pacing. */
	if (sk->sk_protocol == IPPROTO_TCP &&
	    READ_ONCE(sk->sk_pacing_status) == SK_PACING_NEEDED) {
		/* Pairs with smp_load_acquire() in tcp_needs_internal_pacing(). */
		smp_store_release(&sk->sk_pacing_status, SK_PACING_FQ);
	}
	if (skb->tstamp)
		return 0;
	rate = READ_ONCE(sk->sk_pacing_rate);
	if (rate == ~0UL)
		return 0;
	return clamp_t(u64, rate, 1, SHAPER_RATE_MAX / BITS_PER_BYTE) * BITS_PER_BYTE;
}

/*
 * Apply the rate of the packet's socket, which any user may set to nearly zero: a packet delays
 * the next one by at most a second, as with fq, and none waits beyond the horizon.
 *
 * Return: false if the packet would wait longer, and must be dropped.
 */
static bool in_pace(struct shaper *q, const struct request *request, unsigned int len, u64 *want)
{
	struct shaper_plan *plan = &request->flow->plan;
	u64 horizon = apic_timer_add_tsc(request->now, READ_ONCE(q->horizon));
	u64 hz = READ_ONCE(q->plan.hz);

	if (plan->rate != request->pace || plan->hz != hz || plan->overhead != q->config.overhead)
		shaper_plan_set(plan, hz, request->pace, 0, q->config.overhead);
	*want = shaper_plan_at(plan, *want);
	if (unlikely(*want > horizon)) {
		if (!q->config.horizon_cap)
			return false;
		*want = horizon;
		WRITE_ONCE(q->stats.capped_horizon, q->stats.capped_horizon + 1);
	}
	shaper_plan_sent(plan, *want, *want, len);
	plan->next = min(plan->next, apic_timer_add_tsc(*want, plan->hz));
	return true;
}

/*
 * Determine when a packet leaves after the others of its flow.
 * @want: absolute TSC
 *
 * Return: as in_pace().
 */
static bool in_flow(struct shaper *q, const struct request *request, unsigned int len, u64 *want)
{
	struct shaper_flow *flow = request->flow;

	if (!flow)
		return true;
	if (request->pace && !in_pace(q, request, len, want))
		return false;
	if (q->config.flow_order)
		*want = max(*want, flow->last);
	flow->last = *want;
	return true;
}

/* Return when a packet with a departure time leaves after the others of its clock, absolute TSC. */
static u64 in_order(struct shaper *q, const struct sk_buff *skb, const struct request *request,
		    u64 want)
	__must_hold(&q->lock)
{
	if (request->flags & SHAPER_AT_ONCE)
		return shaper_far_behind(&q->far, request->clock, skb->tstamp, want);
	return shaper_far_in_order(&q->far, request->clock, skb->tstamp, want);
}

/* Check for a packet of an earlier epoch: the moments planned for its flow are void. */
static bool from_epoch_before(const struct shaper *q, const struct request *request)
	__must_hold(&q->lock)
{
	if (!shaper_epoch_is_over(q, request->epoch))
		return false;
	if (request->flow) {
		request->flow->plan = (struct shaper_plan) {};
		request->flow->last = 0;
	}
	return true;
}

/* Queue a packet that is ready. */
static int insert(struct shaper *q, struct sk_buff *skb, const struct request *request,
		  struct sk_buff **to_free)
{
	struct Qdisc *sch = q->sch;
	struct net_device *dev = qdisc_dev(sch);
	struct shaper_flow *flow = request->flow;
	unsigned int len = qdisc_pkt_len(skb);
	struct shaper_cb *cb = shaper_cb(skb);
	u64 want = request->want;
	unsigned long flags;
	u32 queued;

	if (unlikely(READ_ONCE(q->queued) >= q->config.limit))
		return drop(skb, sch, to_free, SHAPER_DROP_LIMIT, &q->stats.dropped_limit);
	if (unlikely(flow && q->config.flow_limit &&
		     READ_ONCE(flow->queued) >= q->config.flow_limit))
		return drop(skb, sch, to_free, SHAPER_DROP_FLOW_LIMIT,
			    &q->stats.dropped_flow_limit);

	if (unlikely(request->class && READ_ONCE(request->class->queued) >=
		     request->class->limit)) {
		request->class->drops++;
		request->class->stats.dropped_limit++;
		return drop(skb, sch, to_free, SHAPER_DROP_LIMIT, &q->stats.dropped_limit);
	}

	if (unlikely(!in_flow(q, request, len, &want)))
		return drop(skb, sch, to_free, SHAPER_DROP_HORIZON, &q->stats.dropped_horizon);
	cb->flow = flow;
	cb->flags = request->flags;
	if (want != request->want)
		cb->flags &= ~SHAPER_AT_ONCE;
	/* For timestamps and the like, a driver queues packets to the socket. */
	if (skb_shinfo(skb)->tx_flags)
		cb->flags |= SHAPER_SOFT;

	raw_spin_lock_irqsave(&q->lock, flags);
	if (from_epoch_before(q, request)) {
		raw_spin_unlock_irqrestore(&q->lock, flags);
		return shaper_drop(skb, sch, to_free, SHAPER_DROP);
	}
	/* The kernel has to prepare the packets queued earlier anew. */
	if (unlikely(q->features != request->features)) {
		q->features = request->features;
		q->prepared++;
	}
	cb->flags |= q->prepared << SHAPER_PREPARED_SHIFT;
	if (flow)
		WRITE_ONCE(flow->queued, flow->queued + 1);
	queued = q->queued + 1;
	WRITE_ONCE(q->queued, queued);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + len);
	if (unlikely(request->class))
		shaper_class_account(request->class, skb, len);
	/* A dequeue follows, which arms the timer, or sends due packets. */
	if (request->far || unlikely(request->timed && q->far.count &&
				     shaper_far_precedes(&q->far, request->clock, skb->tstamp))) {
		if (shaper_far_insert(&q->far, skb, request->clock))
			shaper_arm(q);
	} else {
		if (request->timed)
			want = in_order(q, skb, request, want);
		cb->want = want;
		if (shaper_join(q, skb) && want > request->now)
			shaper_arm(q);
	}
	raw_spin_unlock_irqrestore(&q->lock, flags);
	trace_sch_apic_enqueue(dev, skb, len, want, request->now, queued);
	return NET_XMIT_SUCCESS;
}

/*
 * Split a GSO packet.
 *
 * Return: its packets; NULL if that failed, and @skb still exists.
 */
static struct sk_buff *split(struct sk_buff *skb)
{
	netdev_features_t features = netif_skb_features(skb);
	struct sk_buff *segments, *segment;

	segments = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segments))
		return NULL;
	skb_list_walk_safe(segments, segment, skb)
		shaper_set_pkt_len(segment, segment->len, 1);
	return segments;
}

/*
 * Whether the packet's socket prepares it, as for TLS by the card. That must not happen twice: if
 * the card lacks the keys, TLS is encrypted then.
 */
static bool sock_validates(const struct sk_buff *skb)
{
#ifdef CONFIG_SOCK_VALIDATE_XMIT
	const struct sock *sk = skb->sk;

	return sk && sk_fullsock(sk) && READ_ONCE(sk->sk_validate_xmit_skb);
#else
	return false;
#endif
}

/**
 * shaper_enqueue() - queue a packet
 * @skb:	the packet
 * @sch:	the qdisc
 * @to_free:	receives dropped packets
 *
 * Context: Softirqs off, the lock of the root qdisc held.
 * Return: NET_XMIT_*.
 */
int shaper_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	unsigned int whole = qdisc_pkt_len(skb), len = 0, count = 0;
	struct shaper *q = qdisc_priv(sch);
	struct sk_buff *list = skb, *next;
	bool many = false, again = false;
	struct request request = {};

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		request.epoch = READ_ONCE(q->epoch);
	request.now = rdtsc();
	if (unlikely(READ_ONCE(q->queued) >= q->config.limit))
		return drop(skb, sch, to_free, SHAPER_DROP_LIMIT, &q->stats.dropped_limit);
	if (unlikely(shaper_classifies(q))) {
		int err = shaper_classify(q, skb, to_free, &request.class);

		if (err != NET_XMIT_SUCCESS)
			return err;
	}
	request.want = request.now;
	if (!skb->tstamp)
		request.flags = SHAPER_AT_ONCE;
	if (skb->tstamp && !from_tstamp(q, skb, &request)) {
		if (request.flags & SHAPER_TXTIME)
			shaper_report(skb, EINVAL, SO_EE_CODE_TXTIME_INVALID_PARAM);
		return drop(skb, sch, to_free, SHAPER_DROP_HORIZON, &q->stats.dropped_horizon);
	}
	request.pace = pace(q, skb);
	if (request.pace || q->config.flow_limit || q->config.flow_order)
		request.flow = shaper_flow_get(&q->flows, skb, request.now);

	request.features = READ_ONCE(qdisc_dev(sch)->features);
	if (xfrm_offload(skb) || sock_validates(skb)) {
		request.flags |= SHAPER_STACK;
	} else {
		if (skb_is_gso(skb) && q->config.split_gso) {
			list = split(skb);
			if (!list)
				return shaper_drop(skb, sch, to_free, SHAPER_DROP);
			consume_skb(skb);
			q->stats.gso_split++;
			many = true;
		}
		if (shaper_is_root(sch)) {
			list = validate_xmit_skb_list(list, qdisc_dev(sch), &again);
			if (!list) {
				qdisc_qstats_drop(sch);
				return NET_XMIT_DROP;
			}
			/* The device could not take the packet as a whole. */
			if (list->next && !many) {
				many = true;
				for (next = list; next; next = next->next)
					shaper_set_pkt_len(next, next->len, 1);
			}
		}
	}

	skb_list_walk_safe(list, skb, next) {
		unsigned int bytes = qdisc_pkt_len(skb);

		skb_mark_not_on_list(skb);
		if (insert(q, skb, &request, to_free) == NET_XMIT_SUCCESS) {
			len += bytes;
			count++;
		}
	}
	if (!count)
		return NET_XMIT_DROP;
	if (many)
		qdisc_tree_reduce_backlog(sch, 1 - (int)count, whole - len);
	return NET_XMIT_SUCCESS;
}
