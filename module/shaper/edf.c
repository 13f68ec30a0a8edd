// SPDX-License-Identifier: GPL-2.0
/*
 * Packets in the order of the moments at which they want to leave. Packets that want the same
 * moment leave in the order in which they were queued.
 *
 * The tree's node shares its memory with the packet's list pointers and its device. The caller
 * sets the device again when it removes a packet.
 */
#include "cb.h"
#include "edf.h"
#include "shift.h"

/* @again: insert before packets that want the same moment; otherwise after them. */
static bool insert(struct shaper_edf *edf, struct sk_buff *skb, bool again)
{
	struct rb_node **place = &edf->root.rb_root.rb_node, *parent = NULL;
	u64 want = shaper_cb(skb)->want;
	bool first = true;

	while (*place) {
		u64 other = shaper_cb(rb_to_skb(*place))->want;

		parent = *place;
		if (want > other || (want == other && !again)) {
			place = &parent->rb_right;
			first = false;
		} else {
			place = &parent->rb_left;
		}
	}
	rb_link_node(&skb->rbnode, parent, place);
	rb_insert_color_cached(&skb->rbnode, &edf->root, first);
	return first;
}

/**
 * shaper_edf_insert_among() - queue a packet among others
 * @edf:	the queue
 * @skb:	the packet
 *
 * Context: Any; the caller serialises access to @edf.
 * Return: true if it is the first to leave.
 */
bool shaper_edf_insert_among(struct shaper_edf *edf, struct sk_buff *skb)
{
	return insert(edf, skb, false);
}

/**
 * shaper_edf_insert_again() - queue a packet again that was removed and has not left
 * @edf:	the queue
 * @skb:	the packet
 *
 * It keeps its place before other packets that want the same moment.
 *
 * Context: Any; the caller serialises access to @edf.
 * Return: true if it is the first to leave.
 */
bool shaper_edf_insert_again(struct shaper_edf *edf, struct sk_buff *skb)
{
	return insert(edf, skb, true);
}

/**
 * shaper_edf_shift() - follow the TSC into a new epoch
 * @edf:	the queue
 * @shift:	cycles to add to TSC values of the old one
 *
 * Context: Any; the caller serialises access to @edf.
 */
void shaper_edf_shift(struct shaper_edf *edf, s64 shift)
{
	struct rb_node *node;

	for (node = rb_first_cached(&edf->root); node; node = rb_next(node)) {
		struct shaper_cb *cb = shaper_cb(rb_to_skb(node));

		cb->want = shaper_shifted(cb->want, shift);
	}
}
