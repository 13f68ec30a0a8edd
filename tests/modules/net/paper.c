// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_paper: the queueing discipline "apic_paper" sends packets by one of the two timers
 * with which the paper of 2001 compared its own: the kernel's ordinary timer, and a timer that
 * ticks 5,000 times a second. As in the paper, a packet leaves at the tick nearest to its moment,
 * before or after it.
 *
 * Parameters, read when a qdisc is created and with each packet: "tick", whether to use the second
 * timer, and "rate", in bit/s; 0: packets carry their own times. Packets must be queued in the
 * order of their times.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/timer.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "compat/hrtimer.h"

#define TICK_NS		(NSEC_PER_SEC / 5000)
#define START_NS	(100 * NSEC_PER_USEC)	/* the first packet of a burst */

static bool tick;
module_param(tick, bool, 0644);
MODULE_PARM_DESC(tick, "use 5,000 ticks per second instead of the kernel's timer");

static ulong rate;
module_param(rate, ulong, 0644);
MODULE_PARM_DESC(rate, "rate in bit/s; 0: send at the packets' own times");

struct paper {
	struct Qdisc *sch;
	bool ticks;
	struct timer_list timer;
	struct hrtimer hrtimer;
	u64 last;		/* moment of the packet queued last, ns */
	u64 remainder;		/* of that moment, in bits of a rate's ns */
};

static u64 *paper_moment(struct sk_buff *skb)
{
	return (u64 *)qdisc_skb_cb(skb)->data;
}

static u64 paper_plan(struct paper *q, struct sk_buff *skb)
{
	u64 now = ktime_get_ns(), bits, ns, rest;

	if (!rate)
		return max_t(u64, skb->tstamp, now);
	bits = qdisc_pkt_len(skb) * 8ULL * NSEC_PER_SEC + q->remainder;
	ns = div64_u64_rem(bits, rate, &rest);
	q->remainder = rest;
	q->last = q->last + ns < now ? now + START_NS : q->last + ns;
	return q->last;
}

static int paper_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct paper *q = qdisc_priv(sch);

	if (sch->q.qlen >= sch->limit)
		return qdisc_drop(skb, sch, to_free);
	*paper_moment(skb) = paper_plan(q, skb);
	return qdisc_enqueue_tail(skb, sch);
}

static struct sk_buff *paper_dequeue(struct Qdisc *sch)
{
	struct paper *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_peek_head(sch);
	u64 period = q->ticks ? TICK_NS : NSEC_PER_SEC / HZ;
	s64 left;

	if (!skb)
		return NULL;
	left = *paper_moment(skb) - ktime_get_ns();
	if (left > (s64)(period / 2)) {
		if (!q->ticks)
			mod_timer(&q->timer, jiffies + nsecs_to_jiffies(left));
		return NULL;
	}
	return qdisc_dequeue_head(sch);
}

static void paper_timer(struct timer_list *timer)
{
	__netif_schedule(container_of(timer, struct paper, timer)->sch);
}

static enum hrtimer_restart paper_tick(struct hrtimer *timer)
{
	__netif_schedule(container_of(timer, struct paper, hrtimer)->sch);
	hrtimer_forward_now(timer, ns_to_ktime(TICK_NS));
	return HRTIMER_RESTART;
}

static int paper_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paper *q = qdisc_priv(sch);

	q->sch = sch;
	q->ticks = tick;
	sch->limit = 200000;
	timer_setup(&q->timer, paper_timer, TIMER_PINNED);
	apic_timer_hrtimer_setup(&q->hrtimer, paper_tick, CLOCK_MONOTONIC,
				 HRTIMER_MODE_REL_PINNED_HARD);
	if (q->ticks)
		hrtimer_start(&q->hrtimer, ns_to_ktime(TICK_NS), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static void paper_destroy(struct Qdisc *sch)
{
	struct paper *q = qdisc_priv(sch);

	if (!q->sch)
		return;
	hrtimer_cancel(&q->hrtimer);
	timer_delete_sync(&q->timer);
}

static struct Qdisc_ops paper_ops __read_mostly = {
	.id = "apic_paper",
	.priv_size = sizeof(struct paper),
	.enqueue = paper_enqueue,
	.dequeue = paper_dequeue,
	.peek = qdisc_peek_head,
	.init = paper_init,
	.reset = qdisc_reset_queue,
	.destroy = paper_destroy,
	.owner = THIS_MODULE,
};

static int __init paper_module_init(void)
{
	return register_qdisc(&paper_ops);
}

static void __exit paper_module_exit(void)
{
	unregister_qdisc(&paper_ops);
}

module_init(paper_module_init);
module_exit(paper_module_exit);

MODULE_DESCRIPTION("Qdisc that sends packets by the timers compared in a paper of 2001");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
