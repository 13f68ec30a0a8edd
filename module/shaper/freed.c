// SPDX-License-Identifier: GPL-2.0
/*
 * Packets to be freed when no lock is held. They are removed from their queue a few at a time,
 * or as a whole tree, so that interrupts are not off for all of them.
 */
#include <linux/rtnetlink.h>
#include <net/sch_generic.h>

#include "freed.h"

/**
 * shaper_freed_add_one() - add a packet to be freed
 * @freed:	the list
 * @q:		the qdisc that it was in
 * @skb:	the packet, which no other code can reach any more
 *
 * Context: Any.
 */
void shaper_freed_add_one(struct shaper_freed *freed, struct shaper *q, struct sk_buff *skb)
{
	skb->dev = qdisc_dev(q->sch);
	skb->prev = NULL;
	skb->next = NULL;
	if (freed->first)
		freed->last->next = skb;
	else
		freed->first = skb;
	freed->last = skb;
	freed->count++;
	freed->len += qdisc_pkt_len(skb);
}

/**
 * shaper_freed_add() - add packets to be freed
 * @freed:	the list
 * @q:		the qdisc that they were in
 * @edf:	the packets, which no other code can reach any more
 *
 * No lock need be held, so their number does not matter.
 *
 * Context: Any.
 */
void shaper_freed_add(struct shaper_freed *freed, struct shaper *q, struct shaper_edf *edf)
{
	struct sk_buff *skb, *next;

	/* Each node follows those below it, whose links in the tree are not needed any more. */
	rbtree_postorder_for_each_entry_safe(skb, next, &edf->root.rb_root, rbnode)
		shaper_freed_add_one(freed, q, skb);
}

/**
 * shaper_freed_add_list() - add the packets of a list to be freed
 * @freed:	the list of those to be freed
 * @q:		the qdisc that they were in
 * @first:	first packet, linked by &sk_buff.next; no other code can reach them any more
 *
 * No lock need be held, so their number does not matter.
 *
 * Context: Any.
 */
void shaper_freed_add_list(struct shaper_freed *freed, struct shaper *q, struct sk_buff *first)
{
	struct sk_buff *skb, *next;

	skb_list_walk_safe(first, skb, next)
		shaper_freed_add_one(freed, q, skb);
}

/**
 * shaper_freed_free() - free the packets of a list
 * @freed:	the list
 *
 * Context: Task context, RTNL: the packets are freed when it is released.
 */
void shaper_freed_free(struct shaper_freed *freed)
{
	if (freed->first)
		rtnl_kfree_skbs(freed->first, freed->last);
}
