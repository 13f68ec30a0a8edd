/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_EDF_H
#define _SHAPER_EDF_H

#include <linux/rbtree.h>
#include <linux/rbtree_augmented.h>
#include <linux/skbuff.h>

/**
 * struct shaper_edf - packets, sorted by the moment at which they want to leave
 * @root:	the tree, over &sk_buff.rbnode, with &shaper_cb.want as its key
 */
struct shaper_edf {
	struct rb_root_cached root;
};

static inline void shaper_edf_init(struct shaper_edf *edf)
{
	edf->root = RB_ROOT_CACHED;
}

/* The first packet to leave, or NULL. */
static inline struct sk_buff *shaper_edf_first(const struct shaper_edf *edf)
{
	return rb_to_skb(rb_first_cached(&edf->root));
}

/**
 * shaper_edf_erase() - take a packet out
 * @edf:	the queue
 * @skb:	the packet; it is on no list afterwards, and its device is not set
 *
 * Context: Any; the caller serialises access to @edf.
 */
static inline void shaper_edf_erase(struct shaper_edf *edf, struct sk_buff *skb)
{
	/* Usually it is the only packet, and the tree needs no rebalancing. */
	if (edf->root.rb_root.rb_node == &skb->rbnode && !skb->rbnode.rb_left &&
	    !skb->rbnode.rb_right)
		edf->root = RB_ROOT_CACHED;
	else
		rb_erase_cached(&skb->rbnode, &edf->root);
	skb->next = NULL;
	skb->prev = NULL;
}

bool shaper_edf_insert_among(struct shaper_edf *edf, struct sk_buff *skb);
bool shaper_edf_insert_again(struct shaper_edf *edf, struct sk_buff *skb);
void shaper_edf_shift(struct shaper_edf *edf, s64 shift);

/**
 * shaper_edf_insert() - queue a packet
 * @edf:	the queue
 * @skb:	the packet
 *
 * Context: Any; the caller serialises access to @edf.
 * Return: true if it is the first to leave.
 */
static inline bool shaper_edf_insert(struct shaper_edf *edf, struct sk_buff *skb)
{
	if (edf->root.rb_root.rb_node)
		return shaper_edf_insert_among(edf, skb);
	/* The tree needs no balancing. */
	rb_link_node(&skb->rbnode, NULL, &edf->root.rb_root.rb_node);
	rb_set_parent_color(&skb->rbnode, NULL, RB_BLACK);
	edf->root.rb_leftmost = &skb->rbnode;
	return true;
}

#endif /* _SHAPER_EDF_H */
