// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: the state of a socket's packets, or of packets with the same hash if there is no
 * socket. It is needed for a flow's own rate, limit and order.
 *
 * A flow without queued packets whose moments have passed is stale. It is freed when its bucket
 * is searched.
 */
#include <linux/hash.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "flows.h"
#include "shift.h"

#define BITS	10	/* log2 of the number of buckets */
/* Maximum number of flows; packets of further ones are sent without a flow. */
#define FLOWS_MAX	65536

/**
 * shaper_flows_init() - initialise, without flows
 * @flows:	zeroed
 *
 * Context: Task context.
 * Return: 0, -ENOMEM.
 */
int shaper_flows_init(struct shaper_flows *flows)
{
	flows->buckets = kvcalloc(BIT(BITS), sizeof(*flows->buckets), GFP_KERNEL);
	return flows->buckets ? 0 : -ENOMEM;
}

/**
 * shaper_flows_clear() - forget all flows
 * @flows:	the flows; no packet refers to one
 *
 * Context: Any but NMI and hard interrupt; the caller serialises access to @flows.
 */
void shaper_flows_clear(struct shaper_flows *flows)
{
	struct shaper_flow *flow;
	struct hlist_node *next;
	unsigned int i;

	if (!flows->count)
		return;
	for (i = 0; i < BIT(BITS); i++) {
		hlist_for_each_entry_safe(flow, next, &flows->buckets[i], node) {
			hlist_del(&flow->node);
			kfree(flow);
		}
	}
	flows->count = 0;
}

/**
 * shaper_flows_exit() - free the memory
 * @flows:	the flows, also if shaper_flows_init() failed or was not called
 *
 * Context: Task context; @flows has no users.
 */
void shaper_flows_exit(struct shaper_flows *flows)
{
	shaper_flows_clear(flows);
	kvfree(flows->buckets);
	flows->buckets = NULL;
}

/**
 * shaper_flows_shift() - follow the TSC into a new epoch
 * @flows:	the flows
 * @shift:	cycles to add to TSC values of the old one
 *
 * Context: Any; the caller serialises access to @flows.
 */
void shaper_flows_shift(struct shaper_flows *flows, s64 shift)
{
	struct shaper_flow *flow;
	unsigned int i;

	if (!flows->count)
		return;
	for (i = 0; i < BIT(BITS); i++) {
		hlist_for_each_entry(flow, &flows->buckets[i], node) {
			shaper_plan_shift(&flow->plan, shift);
			flow->last = shaper_shifted(flow->last, shift);
		}
	}
}

/* @queued is written under a lock not held here, but only code that searches increments it. */
static bool stale(const struct shaper_flow *flow, u64 now)
{
	return !READ_ONCE(flow->queued) && flow->plan.next < now && flow->last < now;
}

static struct shaper_flow *search(struct shaper_flows *flows, struct hlist_head *bucket,
				  unsigned long key, u64 now)
{
	struct shaper_flow *flow, *found = NULL;
	struct hlist_node *next;

	hlist_for_each_entry_safe(flow, next, bucket, node) {
		if (flow->key == key) {
			found = flow;
		} else if (stale(flow, now)) {
			hlist_del(&flow->node);
			kfree(flow);
			flows->count--;
		}
	}
	return found;
}

/**
 * shaper_flow_get() - find a packet's flow, or create one
 * @flows:	the flows
 * @skb:	the packet
 * @now:	TSC
 *
 * Context: Softirqs off; the caller serialises access to @flows, except
 * &shaper_flow.queued. Not under a raw lock: this allocates memory.
 * Return: the flow; NULL if there is no memory for it, or too many flows exist.
 */
struct shaper_flow *shaper_flow_get(struct shaper_flows *flows, struct sk_buff *skb, u64 now)
{
	struct sock *sk = skb->sk && sk_fullsock(skb->sk) ? skb->sk : NULL;
	/* Objects never have odd addresses. */
	unsigned long key = sk ? (unsigned long)sk : (unsigned long)skb_get_hash(skb) << 1 | 1;
	struct hlist_head *bucket = &flows->buckets[hash_long(key, BITS)];
	u32 check = sk ? sk->sk_hash : 0;
	struct shaper_flow *flow;

	flow = search(flows, bucket, key, now);
	if (flow && flow->check != check) {
		flow->check = check;
		flow->plan = (struct shaper_plan) {};
		flow->last = 0;
	}
	if (flow || flows->count >= FLOWS_MAX)
		return flow;

	flow = kzalloc(sizeof(*flow), GFP_ATOMIC | __GFP_NOWARN);
	if (!flow)
		return NULL;
	flow->key = key;
	flow->check = check;
	hlist_add_head(&flow->node, bucket);
	flows->count++;
	return flow;
}
