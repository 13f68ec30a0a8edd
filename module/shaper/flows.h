/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_FLOWS_H
#define _SHAPER_FLOWS_H

#include <linux/list.h>
#include <linux/skbuff.h>

#include "plan.h"

/**
 * struct shaper_flow - packets of one socket, or with the same hash
 * @node:	entry in its bucket
 * @key:	address of the socket, or the hash
 * @check:	&sock.sk_hash, to recognise another socket at the same address
 * @queued:	number of its queued packets
 * @last:	when the packet queued last wants to leave, absolute TSC
 * @plan:	when the next packet may leave at the rate of its socket
 */
struct shaper_flow {
	struct hlist_node node;
	unsigned long key;
	u32 check;
	u32 queued;
	u64 last;
	struct shaper_plan plan;
};

/**
 * struct shaper_flows - all flows of a qdisc
 * @buckets:	the flows, by the hash of their keys
 * @count:	number of flows
 */
struct shaper_flows {
	struct hlist_head *buckets;
	u32 count;
};

int shaper_flows_init(struct shaper_flows *flows);
void shaper_flows_exit(struct shaper_flows *flows);
void shaper_flows_clear(struct shaper_flows *flows);
void shaper_flows_shift(struct shaper_flows *flows, s64 shift);
/* Account for a packet that has left the queue; @flow may be NULL. */
static inline void shaper_flow_leave(struct shaper_flow *flow)
{
	if (flow)
		WRITE_ONCE(flow->queued, flow->queued - 1);
}

struct shaper_flow *shaper_flow_get(struct shaper_flows *flows, struct sk_buff *skb, u64 now);

#endif /* _SHAPER_FLOWS_H */
