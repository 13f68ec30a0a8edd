// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that are freed when no lock is held. They are taken out of where they wait a few
 * at a time, or as a whole tree, so that interrupts are not off for all of them.
 */
#include <linux/rtnetlink.h>
#include <net/sch_generic.h>

#include "freed.h"

/**
 * shaper_freed_add_one() - note a packet that is to be freed
 * @freed:	where
 * @q:		the qdisc that it was in
 * @skb:	the packet; nobody else sees it any more
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
 * shaper_freed_add() - note packets that are to be freed
 * @freed:	where
 * @q:		the qdisc that they were in
 * @edf:	the packets; nobody else sees them any more
 *
 * However many they are, no lock need be held.
 *
 * Context: Any.
 */
void shaper_freed_add(struct shaper_freed *freed, struct shaper *q, struct shaper_edf *edf)
{
	struct sk_buff *skb, *next;

	/* Each comes after those below it, whose place in the tree is not needed any more. */
	rbtree_postorder_for_each_entry_safe(skb, next, &edf->root.rb_root, rbnode)
		shaper_freed_add_one(freed, q, skb);
}

/**
 * shaper_freed_free() - free what was noted
 * @freed:	packets
 *
 * Context: Task context, RTNL: they are freed when that is released.
 */
void shaper_freed_free(struct shaper_freed *freed)
{
	if (freed->first)
		rtnl_kfree_skbs(freed->first, freed->last);
}
