// SPDX-License-Identifier: GPL-2.0
/*
 * Choose the class of a packet, by its priority and by filters.
 */
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "classify.h"

/**
 * shaper_classify() - choose the class of a packet
 * @q:		the qdisc
 * @skb:	the packet
 * @to_free:	receives the packet if a filter drops it
 * @class:	out: its class; NULL if it has none
 *
 * If the packet's priority is the number of a class, choose that; otherwise ask the filters.
 *
 * Context: Softirqs off, the lock of the root qdisc held.
 * Return: NET_XMIT_SUCCESS; otherwise a filter took the packet, and enqueue must return this.
 */
int shaper_classify(struct shaper *q, struct sk_buff *skb, struct sk_buff **to_free,
		    struct shaper_class **class)
{
	struct tcf_result res = {};
	struct tcf_proto *filters;

	*class = NULL;
	if (TC_H_MAJ(skb->priority ^ q->sch->handle) == 0) {
		*class = shaper_class_find(q, skb->priority);
		if (*class)
			return NET_XMIT_SUCCESS;
	}
	filters = rcu_dereference_bh(q->filters);
	if (!filters)
		return NET_XMIT_SUCCESS;
	switch (tcf_classify(skb, NULL, filters, &res, false)) {
	case TC_ACT_UNSPEC:
		return NET_XMIT_SUCCESS;
	case TC_ACT_CONSUMED:
		/* For example, it waits for its other fragments. */
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	case TC_ACT_QUEUED:
	case TC_ACT_STOLEN:
	case TC_ACT_TRAP:
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	case TC_ACT_SHOT:
	case TC_ACT_REDIRECT:
		qdisc_drop(skb, q->sch, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	}
	/* A filter that is older than its class, or a program, has only the number. */
	*class = (struct shaper_class *)res.class;
	if (!*class && TC_H_MAJ(res.classid ^ q->sch->handle) == 0)
		*class = shaper_class_find(q, res.classid);
	return NET_XMIT_SUCCESS;
}
