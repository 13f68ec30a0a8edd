// SPDX-License-Identifier: GPL-2.0
/*
 * Classes: groups of packets with a rate each, below the rate of the qdisc.
 *
 * Of each class only the packet that is next stands in the common queue, with the moment
 * that the class's plan lets it leave; the others wait in the class. So all that the
 * senders do is the same with and without classes:
 *
 *	class 1:10	A2 A3 A4	\ A1
 *	class 1:20	B2 B3		- B1	 > heads, by moment	\
 *	class 1:30			/ -				 > first to leave
 *	no class					packets		/
 *
 * A packet leaves at the later of two moments: that of its class, and that of the qdisc's
 * rate. The class plans its next packet from its own moment, so that a packet of another
 * class in between costs it nothing of its rate.
 *
 * When the qdisc's rate is the bottleneck, the moments of several have passed before it lets
 * one leave. Then turns decide, as in worst-case fair queueing (WF2Q+): the turn of a packet
 * begins where that of the class's latest one ended, or at the latest turn that any had
 * begun, and takes as long as the packet does at the rate of its class; whose ends first
 * is first. So they share in proportion to their rates, and those that together ask
 * for no more than there is lose nothing. Packets without a class count as a class of the
 * qdisc's rate.
 */
#include <linux/minmax.h>

#include "cb.h"
#include "class.h"
#include "shift.h"

/* Those that compete, of which the one whose turn ends first is searched for. */
#define COMPETITORS	32

/* After about that number of packets a long one is forgotten. */
#define MEMORY		64

static u32 minor(u32 classid)
{
	return classid & 0xffff;
}

/**
 * shaper_classes_init() - begin without classes
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
 * @skb:	a packet that is queued
 *
 * Context: Any; the caller keeps others from @classes.
 * Return: the class; NULL if it has none.
 */
struct shaper_class *shaper_class_of(struct shaper_classes *classes, const struct sk_buff *skb)
{
	u32 number = SHAPER_CLASS(shaper_cb(skb)->flags);

	return number ? xa_load(&classes->all, number) : NULL;
}

/* Put the first packet of a class, which has none there, among the heads. */
static void advance(struct shaper_classes *classes, struct shaper_class *class,
		    const struct shaper_plan *root)
{
	struct sk_buff *skb = shaper_edf_first(&class->edf);
	struct shaper_cb *cb;

	class->next = skb;
	if (!skb)
		return;
	shaper_edf_erase(&class->edf, skb);
	/* The kernel has refined the rate of the TSC. */
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
		class->begin = max(classes->turn, class->end);
		class->end = class->begin + shaper_plan_takes(&class->plan, qdisc_pkt_len(skb));
	}
	shaper_edf_insert(&classes->heads, skb);
}

/* The reverse: put it back among the others. */
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
 * shaper_class_account() - a packet is queued that has a class
 * @class:	the class
 * @skb:	the packet; shaper_class_insert() follows, at once or later
 * @len:	its length for the accounts, bytes
 *
 * Context: Any; the caller keeps others from @class.
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
 * @skb:	the packet, which is in the accounts of its class
 *
 * Context: Any; the caller keeps others from @classes.
 * Return: whether it is the next of its class.
 */
bool shaper_class_insert(struct shaper_classes *classes, const struct shaper_plan *root,
			 struct sk_buff *skb)
{
	struct shaper_class *class = shaper_class_of(classes, skb);

	if (class->next && class != classes->sending && shaper_cb(skb)->want < class->want)
		retreat(classes, class);
	shaper_edf_insert(&class->edf, skb);
	if (class->next)
		return false;
	advance(classes, class, root);
	return true;
}

/*
 * Of those whose moment has passed when the qdisc's rate lets one leave: the one whose turn ends
 * first. @other: the first without a class, or NULL.
 */
static struct sk_buff *by_turn(struct shaper_classes *classes, struct sk_buff *other,
			       const struct shaper_plan *root, u64 open)
{
	unsigned int left = COMPETITORS;
	struct sk_buff *best = NULL;
	struct rb_node *node;
	u64 end = 0;

	if (other && shaper_cb(other)->want <= open) {
		best = other;
		end = max(classes->turn, classes->rest) + root->gap;
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
 * shaper_classes_first() - choose the packet that is the first to leave
 * @classes:	the classes
 * @rest:	the packets without a class
 * @root:	the plan of all packets
 *
 * Context: Any; the caller keeps others from all of these.
 * Return: the packet, or NULL.
 */
struct sk_buff *shaper_classes_first(struct shaper_classes *classes, const struct shaper_edf *rest,
				     const struct shaper_plan *root)
{
	struct sk_buff *skb = shaper_edf_first(&classes->heads), *other = shaper_edf_first(rest);
	struct sk_buff *first = skb;
	u64 open;

	if (!skb || (other && shaper_cb(other)->want <= shaper_cb(skb)->want))
		first = other;
	if (!first || !root->rate)
		return first;
	open = shaper_plan_at(root, 0);
	return shaper_cb(first)->want <= open ? by_turn(classes, other, root, open) : first;
}

/* The packet that left last. */
static void remember(struct shaper_classes *classes, const struct shaper_plan *root)
{
	classes->longest -= classes->longest / MEMORY;
	classes->longest = max(classes->longest, root->gap);
}

/**
 * shaper_classes_rest_left() - take a packet without a class into account that has left
 * @classes:	the classes
 * @root:	the plan of all packets, which knows of it
 *
 * Context: Any; the caller keeps others from @classes.
 */
void shaper_classes_rest_left(struct shaper_classes *classes, const struct shaper_plan *root)
{
	if (!root->rate)
		return;
	remember(classes, root);
	classes->turn = max(classes->turn, classes->rest);
	classes->rest = classes->turn + root->gap;
}

/**
 * shaper_class_take() - take a packet out for the sender
 * @classes:	the classes
 * @skb:	the next packet of its class
 *
 * Context: Any; the caller keeps others from @classes. Nobody else is sending.
 */
void shaper_class_take(struct shaper_classes *classes, struct sk_buff *skb)
{
	struct shaper_class *class = shaper_class_of(classes, skb);

	class->at = shaper_cb(skb)->want;
	shaper_edf_erase(&classes->heads, skb);
	classes->sending = class;
}

/**
 * shaper_class_left() - take the packet into account that was with the sender
 * @classes:	the classes, of which one is sending
 * @root:	the plan of all packets, which does not know of it yet
 * @left:	when it left, absolute TSC
 * @planned:	it had a moment, of its own or by a rate
 * @len:	its length in bytes
 *
 * One of the longest packets may have been in the way: not only of this one, also of those that
 * follow it and have not caught up yet. That says nothing about a queue that was stopped.
 *
 * Context: Any; the caller keeps others from @classes.
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
	advance(classes, class, root);
}

/**
 * shaper_class_drop() - take the next packet of a class out, which is not sent
 * @classes:	the classes
 * @root:	the plan of all packets
 * @skb:	the packet
 * @len:	its length for the accounts, bytes
 *
 * Context: Any; the caller keeps others from @classes.
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
	advance(classes, class, root);
}

/**
 * shaper_class_detach() - take all packets out of a class
 * @classes:	the classes
 * @class:	one of them
 *
 * The one that is with the sender stays there, and is of no class any more.
 *
 * Context: Any; the caller keeps others from @classes.
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
 * Context: Any; the caller keeps others from @classes.
 */
void shaper_classes_shift(struct shaper_classes *classes, const struct shaper_plan *root,
			  s64 shift)
{
	struct shaper_class *class;
	unsigned long number;

	xa_for_each(&classes->all, number, class) {
		bool sending = class == classes->sending;

		/* The sender may be a thread that the sleep has interrupted: it has the next. */
		if (class->next && !sending)
			retreat(classes, class);
		shaper_edf_shift(&class->edf, shift);
		shaper_plan_shift(&class->plan, shift);
		if (sending) {
			class->want = shaper_shifted(class->want, shift);
			class->at = shaper_shifted(class->at, shift);
		} else {
			advance(classes, class, root);
		}
	}
}
