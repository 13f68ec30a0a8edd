// SPDX-License-Identifier: GPL-2.0
/*
 * The users' interface to classes: add, change, delete and show them, by netlink. See class.c
 * for what happens to the packets.
 *
 * A class has no qdisc of its own: its packets wait in the order of their departure times, like
 * those without a class.
 */
#include <linux/netlink.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "arm.h"
#include "cb.h"
#include "class_ops.h"
#include "classify.h"
#include "config.h"

#define LIMIT		1000		/* packets */

static struct netlink_range_validation rate_range = { .min = 1, .max = SHAPER_RATE_MAX };

static const struct nla_policy policy[TCA_APIC_MAX + 1] = {
	[TCA_APIC_UNSPEC] = { .strict_start_type = TCA_APIC_UNSPEC + 1 },
	[TCA_APIC_RATE64] = NLA_POLICY_FULL_RANGE(NLA_U64, &rate_range),
	[TCA_APIC_BURST] = NLA_POLICY_FULL_RANGE(NLA_U32, &shaper_burst_range),
	[TCA_APIC_OVERHEAD] = NLA_POLICY_FULL_RANGE_SIGNED(NLA_S32, &shaper_overhead_range),
	[TCA_APIC_LIMIT] = NLA_POLICY_MIN(NLA_U32, 1),
};

/**
 * shaper_classes_reset() - remove all packets from all classes
 * @q:		the qdisc, which the handler does not use any more
 * @freed:	receives the packets
 *
 * Context: The root qdisc's lock held, @q->lock not held.
 */
void shaper_classes_reset(struct shaper *q, struct shaper_freed *freed)
{
	struct shaper_class *class;
	unsigned long number, flags;
	struct shaper_edf edf;

	xa_for_each(&q->classes.all, number, class) {
		raw_spin_lock_irqsave(&q->lock, flags);
		edf = shaper_class_detach(&q->classes, class);
		class->plan.next = 0;
		class->plan.rest = 0;
		class->end = 0;
		raw_spin_unlock_irqrestore(&q->lock, flags);
		shaper_freed_add(freed, q, &edf);
	}
	q->classes.turn = 0;
	q->classes.rest = 0;
	q->classes.waits = false;
	q->classes.longest = 0;
}

/**
 * shaper_classes_exit() - delete all classes
 * @q:	the qdisc, which has no users any more; also if its creation failed
 *
 * Context: Task context, RTNL.
 */
void shaper_classes_exit(struct shaper *q)
{
	struct shaper_class *class;
	unsigned long number;

	xa_for_each(&q->classes.all, number, class)
		kfree(class);
	xa_destroy(&q->classes.all);
}

static int parse(struct nlattr *options, struct shaper_class *class,
		 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_APIC_MAX + 1] = {};

	if (options) {
		int err = nla_parse_nested(tb, TCA_APIC_MAX, options, policy, extack);

		if (err)
			return err;
	}
	if (tb[TCA_APIC_RATE64])
		class->rate = nla_get_u64(tb[TCA_APIC_RATE64]);
	if (tb[TCA_APIC_BURST])
		class->burst = nla_get_u32(tb[TCA_APIC_BURST]);
	if (tb[TCA_APIC_OVERHEAD])
		class->overhead = nla_get_s32(tb[TCA_APIC_OVERHEAD]);
	if (tb[TCA_APIC_LIMIT])
		class->limit = nla_get_u32(tb[TCA_APIC_LIMIT]);
	if (!class->rate) {
		NL_SET_ERR_MSG(extack, "a class needs a rate");
		return -EINVAL;
	}
	return 0;
}

/* Copy what the user has set, and nothing that packets change meanwhile. */
static void copy(struct shaper_class *class, const struct shaper_class *from)
{
	class->rate = from->rate;
	class->burst = from->burst;
	class->overhead = from->overhead;
	class->limit = from->limit;
}

/* Use the values of another class. */
static void apply(struct shaper *q, struct shaper_class *class, const struct shaper_class *from)
	__must_hold(&q->lock)
{
	u64 hz = apic_timer_ns_to_tsc(NSEC_PER_SEC);
	bool changed = class->plan.hz != hz || class->rate != from->rate ||
		       class->burst != from->burst || class->overhead != from->overhead;

	/* First: if the frequency of the TSC changes, the plan is set again from these. */
	copy(class, from);
	if (changed) {
		shaper_plan_change(&class->plan, shaper_leaving(q), hz, from->rate, from->burst,
				   from->overhead);
		shaper_class_rate_set(&q->classes, class, &q->plan);
	}
}

static int add(struct Qdisc *sch, struct shaper_class *values, u32 classid,
	       struct netlink_ext_ack *extack, unsigned long *arg)
{
	struct shaper *q = qdisc_priv(sch);
	struct shaper_class *class;
	unsigned long flags;
	int err;

	class = kzalloc(sizeof(*class), GFP_KERNEL);
	if (!class)
		return -ENOMEM;
	class->classid = classid;
	shaper_edf_init(&class->edf);
	gnet_stats_basic_sync_init(&class->bstats);
	/* The class is not visible to other code yet. */
	apply(q, class, values);
	/* Softirqs off: the xarray's lock is also taken under the root qdisc's. */
	err = xa_insert_bh(&q->classes.all, TC_H_MIN(classid), class, GFP_KERNEL);
	if (err) {
		kfree(class);
		return err;
	}
	sch_tree_lock(sch);
	raw_spin_lock_irqsave(&q->lock, flags);
	q->classes.count++;
	raw_spin_unlock_irqrestore(&q->lock, flags);
	sch_tree_unlock(sch);
	*arg = (unsigned long)class;
	return 0;
}

static int change(struct Qdisc *sch, u32 classid, u32 parentid, struct nlattr **tca,
		  unsigned long *arg, struct netlink_ext_ack *extack)
{
	struct shaper_class values = { .limit = LIMIT }, *class = (struct shaper_class *)*arg;
	struct shaper *q = qdisc_priv(sch);
	unsigned long flags;
	int err;

	if (!TC_H_MIN(classid) || TC_H_MAJ(classid ^ sch->handle)) {
		NL_SET_ERR_MSG(extack, "class ID must be within the qdisc's handle, such as 1:10");
		return -EINVAL;
	}
	if (parentid && parentid != TC_H_ROOT && parentid != sch->handle) {
		NL_SET_ERR_MSG(extack, "classes of apic cannot be nested");
		return -EINVAL;
	}
	if (tca[TCA_RATE]) {
		NL_SET_ERR_MSG(extack, "classes of apic do not support a rate estimator");
		return -EOPNOTSUPP;
	}
	if (class)
		copy(&values, class);
	err = parse(tca[TCA_OPTIONS], &values, extack);
	if (err)
		return err;
	if (!class)
		return add(sch, &values, classid, extack, arg);

	sch_tree_lock(sch);
	raw_spin_lock_irqsave(&q->lock, flags);
	apply(q, class, &values);
	shaper_arm(q);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	sch_tree_unlock(sch);
	return 0;
}

/* Number of packets processed at a time with interrupts off. */
#define AT_ONCE		16

/* Remove the far packets of a class, which are not in the class yet. */
static void empty_far(struct shaper *q, const struct shaper_class *class,
		      struct shaper_freed *freed)
{
	unsigned int budget;
	struct sk_buff *skb;
	unsigned long flags;

	raw_spin_lock_irqsave(&q->lock, flags);
	shaper_far_rewind(&q->far);
	do {
		budget = AT_ONCE;
		while ((skb = shaper_far_find(&q->far, TC_H_MIN(class->classid), &budget)))
			shaper_freed_add_one(freed, q, skb);
		raw_spin_unlock_irqrestore(&q->lock, flags);
		raw_spin_lock_irqsave(&q->lock, flags);
	} while (!budget);
	raw_spin_unlock_irqrestore(&q->lock, flags);
}

/* Subtract the packets from their flows. */
static void forget_flows(struct shaper *q, struct shaper_freed *freed)
{
	struct sk_buff *skb = freed->first;
	unsigned long flags;
	unsigned int i;

	while (skb) {
		raw_spin_lock_irqsave(&q->lock, flags);
		for (i = 0; i < AT_ONCE && skb; i++, skb = skb->next)
			shaper_flow_leave(shaper_cb(skb)->flow);
		raw_spin_unlock_irqrestore(&q->lock, flags);
	}
}

static int delete(struct Qdisc *sch, unsigned long arg, struct netlink_ext_ack *extack)
{
	struct shaper_class *class = (struct shaper_class *)arg;
	struct shaper *q = qdisc_priv(sch);
	struct shaper_freed freed = {};
	struct shaper_edf edf;
	unsigned long flags;

	if (class->filters) {
		NL_SET_ERR_MSG(extack, "the class is in use by filters");
		return -EBUSY;
	}
	sch_tree_lock(sch);
	/* While that lock is held, no packet is queued, and only the handler sends. */
	empty_far(q, class, &freed);
	raw_spin_lock_irqsave(&q->lock, flags);
	/* A packet that is with the sender still leaves, and is accounted for then. */
	edf = shaper_class_detach(&q->classes, class);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	shaper_freed_add(&freed, q, &edf);
	forget_flows(q, &freed);

	raw_spin_lock_irqsave(&q->lock, flags);
	shaper_leave(q, freed.count, freed.len);
	q->classes.count--;
	shaper_arm(q);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	/* No packet refers to the class any more. */
	xa_erase(&q->classes.all, TC_H_MIN(class->classid));
	if (freed.count)
		qdisc_tree_reduce_backlog(sch, freed.count, freed.len);
	sch_tree_unlock(sch);
	shaper_freed_free(&freed);
	kfree(class);
	return 0;
}

static unsigned long find_class(struct Qdisc *sch, u32 classid)
{
	if (TC_H_MAJ(classid ^ sch->handle))
		return 0;
	return (unsigned long)shaper_class_find(qdisc_priv(sch), classid);
}

/* A class has no leaf qdisc. */
static struct Qdisc *leaf(struct Qdisc *sch, unsigned long arg)
{
	return NULL;
}

static struct tcf_block *block(struct Qdisc *sch, unsigned long arg,
			       struct netlink_ext_ack *extack)
{
	struct shaper *q = qdisc_priv(sch);

	if (arg) {
		NL_SET_ERR_MSG(extack, "filters must be attached to the qdisc, not to a class");
		return NULL;
	}
	return q->block;
}

static unsigned long bind_filter(struct Qdisc *sch, unsigned long parent, u32 classid)
{
	struct shaper_class *class = (struct shaper_class *)find_class(sch, classid);

	if (class)
		class->filters++;
	return (unsigned long)class;
}

static void unbind_filter(struct Qdisc *sch, unsigned long arg)
{
	struct shaper_class *class = (struct shaper_class *)arg;

	class->filters--;
}

static void walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct shaper *q = qdisc_priv(sch);
	struct shaper_class *class;
	unsigned long number;

	if (arg->stop)
		return;
	xa_for_each(&q->classes.all, number, class) {
		if (!tc_qdisc_stats_dump(sch, (unsigned long)class, arg))
			return;
	}
}

static int dump(struct Qdisc *sch, unsigned long arg, struct sk_buff *skb, struct tcmsg *message)
{
	const struct shaper_class *class = (struct shaper_class *)arg;
	struct nlattr *nest;

	message->tcm_parent = TC_H_ROOT;
	message->tcm_handle = class->classid;
	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_APIC_RATE64, class->rate, TCA_APIC_PAD) ||
	    nla_put_u32(skb, TCA_APIC_BURST, class->burst) ||
	    nla_put_s32(skb, TCA_APIC_OVERHEAD, class->overhead) ||
	    nla_put_u32(skb, TCA_APIC_LIMIT, class->limit)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int dump_stats(struct Qdisc *sch, unsigned long arg, struct gnet_dump *dump)
{
	struct shaper_class *class = (struct shaper_class *)arg;
	struct gnet_stats_basic_sync bstats;
	struct shaper *q = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	struct tc_apic_xstats stats;
	unsigned long flags;

	/* Drops before queueing are counted under this lock. */
	sch_tree_lock(sch);
	raw_spin_lock_irqsave(&q->lock, flags);
	bstats = class->bstats;
	stats = class->stats;
	queue.qlen = class->queued;
	queue.backlog = class->backlog;
	queue.drops = class->drops;
	raw_spin_unlock_irqrestore(&q->lock, flags);
	sch_tree_unlock(sch);
	stats.tsc_khz = apic_timer_ns_to_tsc(NSEC_PER_MSEC);
	if (gnet_stats_copy_basic(dump, NULL, &bstats, true) < 0 ||
	    gnet_stats_copy_queue(dump, NULL, &queue, queue.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}

const struct Qdisc_class_ops shaper_class_ops = {
	.leaf = leaf,
	.find = find_class,
	.change = change,
	.delete = delete,
	.walk = walk,
	.tcf_block = block,
	.bind_tcf = bind_filter,
	.unbind_tcf = unbind_filter,
	.dump = dump,
	.dump_stats = dump_stats,
};
