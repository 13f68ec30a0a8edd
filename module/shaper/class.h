/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CLASS_H
#define _SHAPER_CLASS_H

#include <linux/xarray.h>
#include <net/gen_stats.h>
#include <uapi/linux/sch_apic.h>

#include "edf.h"
#include "plan.h"

/**
 * struct shaper_class - packets that have a rate of their own
 * @classid:	its number, the qdisc's in the upper half
 * @edf:	its packets except @next
 * @next:	its next packet to leave: in &shaper_classes.heads, or with the sender; NULL
 *		if it has none
 * @want:	when @next itself wants to leave, absolute TSC; the packet's &shaper_cb.want
 *		is when @plan lets it leave
 * @at_once:	only @plan has set a moment for @next
 * @at:		&shaper_cb.want of the packet that is with the sender
 * @plan:	its rate
 * @begin:	begin of the turn of @next, in the time that &shaper_classes.turn counts
 * @end:	end of the turn of @next, or of the previous packet
 * @queued:	number of its packets
 * @backlog:	their bytes
 * @limit:	maximum number of queued packets
 * @rate:	as set by the user, bit/s
 * @burst:	...
 * @overhead:	...
 * @filters:	number of filters that lead to it; RTNL
 * @drops:	number of dropped packets
 * @bstats:	packets that have left
 * @stats:	counters of its packets
 */
struct shaper_class {
	u32 classid;
	struct shaper_edf edf;
	struct sk_buff *next;
	u64 want;
	bool at_once;
	u64 at;
	struct shaper_plan plan;
	u64 begin;
	u64 end;
	u32 queued;
	u32 backlog;
	u32 limit;
	u64 rate;
	u32 burst;
	s32 overhead;
	unsigned int filters;
	u32 drops;
	struct gnet_stats_basic_sync bstats;
	struct tc_apic_xstats stats;
};

/**
 * struct shaper_classes - the classes of a qdisc
 * @all:	the classes, by the lower halves of their numbers. Changed under the root
 *		qdisc's lock; a class with packets is also found under the qdisc's own lock
 * @count:	number of classes
 * @heads:	the next packet of each class that has one
 * @sending:	the class of the packet that is with the sender, or NULL
 * @turn:	virtual time of the turns that compete for the qdisc's rate, in TSC cycles of
 *		their own rates
 * @rest:	begin of the turn of the first packet without a class, or end of the last one's
 * @longest:	duration of the longest recent packet at the qdisc's rate, TSC cycles
 * @waits:	@rest is a begin, of a packet that competes
 */
struct shaper_classes {
	struct xarray all;
	u32 count;
	struct shaper_edf heads;
	struct shaper_class *sending;
	u64 turn;
	u64 rest;
	u64 longest;
	bool waits;
};

void shaper_classes_init(struct shaper_classes *classes);
void shaper_classes_rate_set(struct shaper_classes *classes);
void shaper_classes_shift(struct shaper_classes *classes, const struct shaper_plan *root,
			  s64 shift);
struct sk_buff *shaper_classes_first(struct shaper_classes *classes, const struct shaper_edf *rest,
				     const struct shaper_plan *root);
void shaper_classes_rest_left(struct shaper_classes *classes, const struct shaper_plan *root);
struct shaper_class *shaper_class_of(struct shaper_classes *classes, const struct sk_buff *skb);
void shaper_class_rate_set(struct shaper_classes *classes, struct shaper_class *class,
			   const struct shaper_plan *root);
void shaper_class_account(struct shaper_class *class, struct sk_buff *skb, u32 len);
bool shaper_class_insert(struct shaper_classes *classes, const struct shaper_plan *root,
			 struct sk_buff *skb);
void shaper_class_take(struct shaper_classes *classes, struct sk_buff *skb);
void shaper_class_left(struct shaper_classes *classes, const struct shaper_plan *root,
		       u64 left, bool planned, u32 len);
void shaper_class_drop(struct shaper_classes *classes, const struct shaper_plan *root,
		       struct sk_buff *skb, u32 len);
struct shaper_edf shaper_class_detach(struct shaper_classes *classes, struct shaper_class *class);

#endif /* _SHAPER_CLASS_H */
