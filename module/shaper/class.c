// SPDX-License-Identifier: GPL-2.0
/*
 * Classes: groups of packets, each with its own rate below the rate of the qdisc.
 *
 * Only the next packet of each class is in the common queue, with the moment at which the
 * class's plan lets it leave; the others wait in the class. Senders therefore work in the same
 * way with and without classes:
 *
 *	class 1:10	A2 A3 A4	\ A1
 *	class 1:20	B2 B3		- B1	 > heads, by moment	\
 *	class 1:30			/ -				 > first to leave
 *	no class					packets		/
 *
 * A packet leaves at the later of two moments: that of its class, and that of the qdisc's
 * rate. The class plans its next packet from the class's own moment, so a packet of another
 * class in between does not reduce its rate.
 *
 * When the qdisc's rate is the bottleneck, the moments of several classes have passed before
 * the qdisc lets a packet leave. Then turns decide, as in worst-case fair queueing (WF2Q+). The
 * turn of a packet begins where the turn of the class's previous packet ended, or at the latest
 * turn that has begun in any class. It takes as long as the packet does at the rate of its
 * class. The packet whose turn ends first is sent first. Classes thus share in proportion to
 * their rates, and classes that together do not exceed the qdisc's rate lose nothing. Packets
 * without a class count as a class with the qdisc's rate.
 */
#include <linux/minmax.h>

#include "cb.h"
#include "class.h"
#include "shift.h"

/* Maximum number of competing classes to search for the turn that ends first. */
#define COMPETITORS	32

/* Number of packets after which a long one is forgotten, approximately. */
#define MEMORY		64

static u32 minor(u32 classid)
{
	return classid & 0xffff;
}

/**
 * shaper_classes_init() - initialise, without classes
 * @classes:	zeroed
 *
 * Context: Any.
 */
void shaper_classes_init(struct shaper_classes *classes)
{
	xa_init(&classes->all);
	shaper_edf_init(&classes->heads);
}

/**
 * shaper_class_of() - find the class of a packet
 * @classes:	the classes
 * @skb:	a queued packet
 *
 * Context: Any; the caller serialises access to @classes.
 * Return: the class; NULL if it has none.
 */
struct shaper_class *shaper_class_of(struct shaper_classes *classes, const struct sk_buff *skb)
{
	u32 number = SHAPER_CLASS(shaper_cb(skb)->flags);

	return number ? xa_load(&classes->all, number) : NULL;
}

/*
 * Move the first packet of a class to the heads, which have none of that class.
 * @again: it takes the place of a head that has not left, whose turn has begun
 */
static void advance(struct shaper_classes *classes, struct shaper_class *class,
		    const struct shaper_plan *root, bool again)
{
	struct sk_buff *skb = shaper_edf_first(&class->edf);
	struct shaper_cb *cb;

	class->next = skb;
	if (!skb)
		return;
	shaper_edf_erase(&class->edf, skb);
	/* The kernel has refined the rate of the TSC meanwhile. */
	if (unlikely(class->plan.hz != root->hz))
		shaper_plan_set(&class->plan, root->hz, class->rate, class->burst,
				class->overhead);
	cb = shaper_cb(skb);
	class->want = cb->want;
	class->at_once = cb->flags & SHAPER_AT_ONCE;
	cb->want = shaper_plan_at(&class->plan, class->want);
	if (cb->want != class->want)
		cb->flags &= ~SHAPER_AT_ONCE;
	if (root->rate) {
		if (!again)
			class->begin = max(classes->turn, class->end);
		class->end = class->begin + shaper_plan_takes(&class->plan, qdisc_pkt_len(skb));
	}
	shaper_edf_insert(&classes->heads, skb);
}

/* Undo advance(): put the head back among the other packets of its class. */
static void retreat(struct shaper_classes *classes, struct shaper_class *class)
{
	struct sk_buff *skb = class->next;
	struct shaper_cb *cb = shaper_cb(skb);

	shaper_edf_erase(&classes->heads, skb);
	cb->want = class->want;
	if (class->at_once)
		cb->flags |= SHAPER_AT_ONCE;
	shaper_edf_insert_again(&class->edf, skb);
	class->end = class->begin;
	class->next = NULL;
}

/**
 * shaper_class_account() - account for a packet that is queued and has a class
 * @class:	the class
 * @skb:	the packet; shaper_class_insert() follows, at once or later
 * @len:	its length for the accounts, bytes
 *
 * Context: Any; the caller serialises access to @class.
 */
void shaper_class_account(struct shaper_class *class, struct sk_buff *skb, u32 len)
{
	shaper_cb(skb)->flags |= minor(class->classid) << SHAPER_CLASS_SHIFT;
	WRITE_ONCE(class->queued, class->queued + 1);
	class->backlog += len;
}

/**
 * shaper_class_insert() - put a packet into its class
 * @classes:	the classes
 * @root:	the plan of all packets
 * @skb:	the packet, for which its class has accounted
 *
 * Context: Any; the caller serialises access to @classes.
 * Return: true if it is the next packet of its class.
 */
bool shaper_class_insert(struct shaper_classes *classes, const struct shaper_plan *root,
			 struct sk_buff *skb)
{
	struct shaper_class *class = shaper_class_of(classes, skb);
	bool again = class->next && class != classes->sending &&
		     shaper_cb(skb)->want < class->want;

	if (again)
		retreat(classes, class);
	shaper_edf_insert(&class->edf, skb);
	if (class->next)
		return false;
	advance(classes, class, root, again);
	return true;
}

/*
 * Find the packet whose turn ends first, of those whose moment has passed when the qdisc's rate
 * lets one leave. @other: first packet without a class, or NULL.
 */
static struct sk_buff *by_turn(struct shaper_classes *classes, struct sk_buff *other,
			       const struct shaper_plan *root, u64 open)
{
	unsigned int left = COMPETITORS;
	struct sk_buff *best = NULL;
	struct rb_node *node;
	u64 end = 0;

	if (other && shaper_cb(other)->want <= open) {
		/* Its turn begins once: turns of classes begin meanwhile, and must not delay it. */
		if (!classes->waits)
			classes->rest = max(classes->turn, classes->rest);
		classes->waits = true;
		best = other;
		end = classes->rest + root->gap;
	}
	for (node = rb_first_cached(&classes->heads.root); node && left--; node = rb_next(node)) {
		struct sk_buff *skb = rb_to_skb(node);
		struct shaper_class *class;

		if (shaper_cb(skb)->want > open)
			break;
		class = shaper_class_of(classes, skb);
		if (!best || class->end < end) {
			best = skb;
			end = class->end;
		}
	}
	return best;
}

/**
 * shaper_classes_first() - choose the first packet to leave
 * @classes:	the classes
 * @rest:	the packets without a class
 * @root:	the plan of all packets
 *
 * Context: Any; the caller serialises access to all of these.
 * Return: the packet, or NULL.
 */
struct sk_buff *shaper_classes_first(struct shaper_classes *classes, const struct shaper_edf *rest,
				     const struct shaper_plan *root)
{
	struct sk_buff *skb = shaper_edf_first(&classes->heads), *other = shaper_edf_first(rest);
	struct sk_buff *first = skb;
	u64 open;

	if (!other)
		classes->waits = false;
	if (!skb || (other && shaper_cb(other)->want <= shaper_cb(skb)->want))
		first = other;
	if (!first || !root->rate)
		return first;
	open = shaper_plan_at(root, 0);
	return shaper_cb(first)->want <= open ? by_turn(classes, other, root, open) : first;
}

/**
 * shaper_classes_rate_set() - follow a change of the qdisc's rate
 * @classes:	the classes
 *
 * What a packet took at the old rate says nothing about the next one. After a low rate, packets
 * without a class would wait for thousands of packets of the classes.
 *
 * Context: Any; the caller serialises access to @classes.
 */
void shaper_classes_rate_set(struct shaper_classes *classes)
{
	classes->longest = 0;
	classes->rest = min(classes->rest, classes->turn);
}

/**
 * shaper_class_rate_set() - follow a change of a class's rate
 * @classes:	the classes
 * @class:	one of them, whose plan has changed
 * @root:	the plan of all packets
 *
 * Its next packet leaves when the new rate lets it. Its turn is as long as the new rate has it,
 * and does not wait for the end of a turn of the old one.
 *
 * Context: Any; the caller serialises access to @classes.
 */
void shaper_class_rate_set(struct shaper_classes *classes, struct shaper_class *class,
			   const struct shaper_plan *root)
{
	/* A packet that is with the sender may be gone already. */
	bool again = class->next && class != classes->sending;

	if (again)
		retreat(classes, class);
	class->begin = min(class->begin, classes->turn);
	class->end = class->begin;
	if (again)
		advance(classes, class, root, true);
}

/* Take the length of the last packet that left into account. */
static void remember(struct shaper_classes *classes, const struct shaper_plan *root)
{
	classes->longest -= classes->longest / MEMORY;
	classes->longest = max(classes->longest, root->gap);
}

/**
 * shaper_classes_rest_left() - account for a packet without a class that has left
 * @classes:	the classes
 * @root:	the plan of all packets, which already accounts for it
 *
 * Context: Any; the caller serialises access to @classes.
 */
void shaper_classes_rest_left(struct shaper_classes *classes, const struct shaper_plan *root)
{
	if (!root->rate)
		return;
	remember(classes, root);
	if (!classes->waits)
		classes->rest = max(classes->turn, classes->rest);
	classes->waits = false;
	classes->turn = max(classes->turn, classes->rest);
	classes->rest += root->gap;
}

/**
 * shaper_class_take() - take a packet out for the sender
 * @classes:	the classes
 * @skb:	the next packet of its class
 *
 * Context: Any; the caller serialises access to @classes. No other sender is active.
 */
void shaper_class_take(struct shaper_classes *classes, struct sk_buff *skb)
{
	struct shaper_class *class = shaper_class_of(classes, skb);

	class->at = shaper_cb(skb)->want;
	shaper_edf_erase(&classes->heads, skb);
	classes->sending = class;
}

/**
 * shaper_class_left() - account for the packet that was with the sender
 * @classes:	the classes, one of which is sending
 * @root:	the plan of all packets, which does not account for it yet
 * @left:	when it left, absolute TSC
 * @planned:	it had a moment, of its own or by a rate
 * @len:	its length in bytes
 *
 * A delay by up to one of the longest packets is ignored: such a packet may have delayed this one,
 * and also later ones that have not caught up yet. A longer delay, of a stopped queue, counts.
 *
 * Context: Any; the caller serialises access to @classes.
 */
void shaper_class_left(struct shaper_classes *classes, const struct shaper_plan *root,
		       u64 left, bool planned, u32 len)
{
	struct shaper_class *class = classes->sending;
	u64 at = planned ? class->at : left;

	remember(classes, root);
	classes->sending = NULL;
	WRITE_ONCE(class->queued, class->queued - 1);
	class->backlog -= len;
	shaper_plan_sent(&class->plan, at, max(at, left - min(left, classes->longest)), len);
	if (root->rate)
		classes->turn = max(classes->turn, class->begin);
	advance(classes, class, root, false);
}

/**
 * shaper_class_drop() - remove the next packet of a class without sending it
 * @classes:	the classes
 * @root:	the plan of all packets
 * @skb:	the packet
 * @len:	its length for the accounts, bytes
 *
 * Context: Any; the caller serialises access to @classes.
 */
void shaper_class_drop(struct shaper_classes *classes, const struct shaper_plan *root,
		       struct sk_buff *skb, u32 len)
{
	struct shaper_class *class = shaper_class_of(classes, skb);

	shaper_edf_erase(&classes->heads, skb);
	class->end = class->begin;
	WRITE_ONCE(class->queued, class->queued - 1);
	class->backlog -= len;
	class->drops++;
	advance(classes, class, root, true);
}

/**
 * shaper_class_detach() - remove all packets from a class
 * @classes:	the classes
 * @class:	one of them
 *
 * A packet that is with the sender stays there, but does not belong to a class any more.
 *
 * Context: Any; the caller serialises access to @classes.
 * Return: the packets.
 */
struct shaper_edf shaper_class_detach(struct shaper_classes *classes, struct shaper_class *class)
{
	struct shaper_edf edf;

	if (class == classes->sending)
		classes->sending = NULL;
	else if (class->next)
		retreat(classes, class);
	edf = class->edf;
	shaper_edf_init(&class->edf);
	class->next = NULL;
	WRITE_ONCE(class->queued, 0);
	class->backlog = 0;
	return edf;
}

/**
 * shaper_classes_shift() - follow the TSC into a new epoch
 * @classes:	the classes
 * @root:	the plan of all packets
 * @shift:	cycles to add to TSC values of the old one
 *
 * Context: Any; the caller serialises access to @classes.
 */
void shaper_classes_shift(struct shaper_classes *classes, const struct shaper_plan *root,
			  s64 shift)
{
	struct shaper_class *class;
	unsigned long number;

	xa_for_each(&classes->all, number, class) {
		bool sending = class == classes->sending, again = class->next && !sending;

		/* A sender may be a thread that the suspend interrupted; it has the next packet. */
		if (again)
			retreat(classes, class);
		shaper_edf_shift(&class->edf, shift);
		shaper_plan_shift(&class->plan, shift);
		if (sending) {
			class->want = shaper_shifted(class->want, shift);
			class->at = shaper_shifted(class->at, shift);
		} else {
			advance(classes, class, root, again);
		}
	}
}
