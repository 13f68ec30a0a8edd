// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: what is remembered of a socket's packets, or of those that have the same
 * hash where there is no socket: for its own rate, its own limit, and its order.
 *
 * A flow that has nothing queued and whose moments have passed says nothing any
 * more. It is freed when its bucket is searched.
 */
#include <linux/hash.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "flows.h"
#include "shift.h"

#define BITS	10	/* of the number of buckets */
/* More than that, and further ones have no flow: their packets are sent all the same. */
#define FLOWS_MAX	65536

/**
 * shaper_flows_init() - begin without flows
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
 * Context: Any but NMI and hard interrupt; the caller keeps others from @flows.
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
 * shaper_flows_exit() - give the memory back
 * @flows:	the flows, also if shaper_flows_init() failed or was not called
 *
 * Context: Task context; nobody uses @flows.
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
 * Context: Any; the caller keeps others from @flows.
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

/* @queued is written under a lock that is not held here, but only a searcher makes it more. */
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
 * shaper_flow_get() - find a packet's flow, or make one
 * @flows:	the flows
 * @skb:	the packet
 * @now:	TSC
 *
 * Context: Softirqs off; the caller keeps others from @flows, except
 * &shaper_flow.queued. Not under a raw lock: allocates memory.
 * Return: the flow; NULL if there is no memory for it, or there are too many.
 */
struct shaper_flow *shaper_flow_get(struct shaper_flows *flows, struct sk_buff *skb, u64 now)
{
	struct sock *sk = skb->sk && sk_fullsock(skb->sk) ? skb->sk : NULL;
	/* No object is at an odd address. */
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
