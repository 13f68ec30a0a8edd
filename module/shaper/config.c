// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink: the configuration and the statistics. Bad values are refused before anything changes.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/netlink.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>
#include <net/netlink.h>

#include "arm.h"
#include "config.h"
#include "drivers.h"
#include "offload.h"
#include "path.h"
#include "thread.h"

#define LATE_MAX	(10 * NSEC_PER_SEC)
#define HORIZON_MAX	(1000 * NSEC_PER_SEC)
#define AHEAD_MAX	(100 * NSEC_PER_MSEC)
#define DOORBELL_MAX	(100 * NSEC_PER_USEC)
/* A packet does not follow a clock that is steered or set within this time before it leaves. */
#define NEAR_NS		(100 * NSEC_PER_USEC)
/*
 * Number of preparations from which mode hard learns its lead: one packet in thousands may be
 * late. In the other modes packets are late more often, and by far more, with any lead.
 */
#define HARD_WINDOW	4096
/* Covers a task switch, during which interrupts are off, and the preparation after it. */
#define HARD_LEAST_NS	3000

const struct shaper_config shaper_defaults = {
	.late_ns = NSEC_PER_USEC,
	.horizon_ns = 10 * NSEC_PER_SEC,
	.mode = TC_APIC_MODE_AUTO,
	.cpu = TC_APIC_CPU_ANY,
	.clock = CLOCK_MONOTONIC,
	.late = TC_APIC_LATE_SEND,
	.limit = 10000,
	.pacing = true,
	.split_gso = true,
	.ahead_ns = 100 * NSEC_PER_USEC,
};

static struct netlink_range_validation rate_range = { .max = SHAPER_RATE_MAX };
static struct netlink_range_validation late_range = { .max = LATE_MAX };
static struct netlink_range_validation horizon_range = {
	.min = NSEC_PER_USEC, .max = HORIZON_MAX,
};

static struct netlink_range_validation ahead_range = {
	.min = NSEC_PER_USEC, .max = AHEAD_MAX,
};

static struct netlink_range_validation doorbell_range = { .max = DOORBELL_MAX };
static struct netlink_range_validation threshold_range = { .max = HORIZON_MAX };
struct netlink_range_validation shaper_burst_range = { .max = SHAPER_LEN_MAX };
struct netlink_range_validation_signed shaper_overhead_range = { .min = -64, .max = 255 };

static const struct nla_policy policy[TCA_APIC_MAX + 1] = {
	[TCA_APIC_UNSPEC] = { .strict_start_type = TCA_APIC_UNSPEC + 1 },
	[TCA_APIC_RATE64] = NLA_POLICY_FULL_RANGE(NLA_U64, &rate_range),
	[TCA_APIC_BURST] = NLA_POLICY_FULL_RANGE(NLA_U32, &shaper_burst_range),
	[TCA_APIC_OVERHEAD] = NLA_POLICY_FULL_RANGE_SIGNED(NLA_S32, &shaper_overhead_range),
	[TCA_APIC_MODE] = NLA_POLICY_MAX(NLA_U32, __TC_APIC_MODE_MAX - 1),
	[TCA_APIC_CPU] = { .type = NLA_U32 },
	[TCA_APIC_CLOCK] = { .type = NLA_U32 },
	[TCA_APIC_LATE] = NLA_POLICY_MAX(NLA_U32, __TC_APIC_LATE_MAX - 1),
	[TCA_APIC_LATE_NS] = NLA_POLICY_FULL_RANGE(NLA_U64, &late_range),
	[TCA_APIC_HORIZON] = NLA_POLICY_FULL_RANGE(NLA_U64, &horizon_range),
	[TCA_APIC_HORIZON_CAP] = NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_APIC_LIMIT] = NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_APIC_FLOW_LIMIT] = { .type = NLA_U32 },
	[TCA_APIC_FLOW_ORDER] = NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_APIC_PACING] = NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_APIC_CE_THRESHOLD] = NLA_POLICY_FULL_RANGE(NLA_U64, &threshold_range),
	[TCA_APIC_SPLIT_GSO] = NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_APIC_MODE_NOW] = { .type = NLA_REJECT },
	[TCA_APIC_OFFLOAD] = NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_APIC_AHEAD] = NLA_POLICY_FULL_RANGE(NLA_U64, &ahead_range),
	[TCA_APIC_DOORBELL] = NLA_POLICY_FULL_RANGE(NLA_U64, &doorbell_range),
};

static int parse_clock(const struct nlattr *attr, clockid_t *clock, struct netlink_ext_ack *extack)
{
	switch (nla_get_u32(attr)) {
	case CLOCK_MONOTONIC:
	case CLOCK_TAI:
	case CLOCK_REALTIME:
		*clock = nla_get_u32(attr);
		return 0;
	}
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "clock must be CLOCK_MONOTONIC, CLOCK_TAI or CLOCK_REALTIME");
	return -EINVAL;
}

static int parse(struct nlattr *options, struct shaper_config *config,
		 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_APIC_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_APIC_MAX, options, policy, extack);
	if (err)
		return err;
	if (tb[TCA_APIC_CLOCK]) {
		err = parse_clock(tb[TCA_APIC_CLOCK], &config->clock, extack);
		if (err)
			return err;
	}
	if (tb[TCA_APIC_CPU]) {
		config->cpu = nla_get_u32(tb[TCA_APIC_CPU]);
		if (config->cpu != TC_APIC_CPU_ANY &&
		    (config->cpu >= nr_cpu_ids || !cpu_online(config->cpu))) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_APIC_CPU],
					    "the CPU does not exist or is offline");
			return -EINVAL;
		}
	}
	if (tb[TCA_APIC_RATE64])
		config->rate = nla_get_u64(tb[TCA_APIC_RATE64]);
	if (tb[TCA_APIC_BURST])
		config->burst = nla_get_u32(tb[TCA_APIC_BURST]);
	if (tb[TCA_APIC_OVERHEAD])
		config->overhead = nla_get_s32(tb[TCA_APIC_OVERHEAD]);
	if (tb[TCA_APIC_MODE])
		config->mode = nla_get_u32(tb[TCA_APIC_MODE]);
	if (tb[TCA_APIC_LATE])
		config->late = nla_get_u32(tb[TCA_APIC_LATE]);
	if (tb[TCA_APIC_LATE_NS])
		config->late_ns = nla_get_u64(tb[TCA_APIC_LATE_NS]);
	if (tb[TCA_APIC_HORIZON])
		config->horizon_ns = nla_get_u64(tb[TCA_APIC_HORIZON]);
	if (tb[TCA_APIC_HORIZON_CAP])
		config->horizon_cap = nla_get_u8(tb[TCA_APIC_HORIZON_CAP]);
	if (tb[TCA_APIC_LIMIT])
		config->limit = nla_get_u32(tb[TCA_APIC_LIMIT]);
	if (tb[TCA_APIC_FLOW_LIMIT])
		config->flow_limit = nla_get_u32(tb[TCA_APIC_FLOW_LIMIT]);
	if (tb[TCA_APIC_FLOW_ORDER])
		config->flow_order = nla_get_u8(tb[TCA_APIC_FLOW_ORDER]);
	if (tb[TCA_APIC_PACING])
		config->pacing = nla_get_u8(tb[TCA_APIC_PACING]);
	if (tb[TCA_APIC_CE_THRESHOLD])
		config->ce_threshold_ns = nla_get_u64(tb[TCA_APIC_CE_THRESHOLD]);
	if (tb[TCA_APIC_SPLIT_GSO])
		config->split_gso = nla_get_u8(tb[TCA_APIC_SPLIT_GSO]);
	if (tb[TCA_APIC_OFFLOAD])
		config->offload = nla_get_u8(tb[TCA_APIC_OFFLOAD]);
	if (tb[TCA_APIC_AHEAD])
		config->ahead_ns = nla_get_u64(tb[TCA_APIC_AHEAD]);
	if (tb[TCA_APIC_DOORBELL])
		config->doorbell_ns = nla_get_u64(tb[TCA_APIC_DOORBELL]);
	if (config->burst && !config->rate) {
		NL_SET_ERR_MSG(extack, "burst requires a rate");
		return -EINVAL;
	}
	return 0;
}

/*
 * Any user can be root of a network namespace, by way of a user namespace. There the qdisc must not
 * give what only root has elsewhere: a thread of real-time priority, interrupts on any CPU, and
 * packets in hard interrupt for a driver that may not be fit for that.
 */
static bool is_of_root(const struct net_device *dev)
{
	return dev_net(dev)->user_ns == &init_user_ns;
}

/*
 * A thread of real-time priority, and a choice of the CPU whose time is used, also need what a
 * program needs for these. In mode auto the module chooses.
 */
static int check_rights(const struct net_device *dev, const struct shaper_config *config,
			const struct shaper_config *old, struct netlink_ext_ack *extack)
{
	bool cpu = config->cpu != TC_APIC_CPU_ANY && config->cpu != old->cpu;
	bool mode = config->mode != old->mode;
	bool thread = mode && config->mode == TC_APIC_MODE_THREAD;
	bool hard = mode && config->mode == TC_APIC_MODE_HARD;

	if ((hard || thread || cpu) && !is_of_root(dev) && !capable(CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(extack,
			       "modes hard and thread, and a CPU, are not for user namespaces");
		return -EPERM;
	}
	if ((thread || cpu) && !capable(CAP_SYS_NICE)) {
		NL_SET_ERR_MSG(extack, "mode thread and a CPU require CAP_SYS_NICE");
		return -EPERM;
	}
	return 0;
}

/* @text: a fixed text, which the kernel's macro cannot see, because it is no literal; or NULL */
static void say(struct netlink_ext_ack *extack, const char *text)
{
	if (extack && text)
		extack->_msg = text;
}

/* Return: the mode in effect; a negative errno, with a reason, if @wanted is not possible. */
static int choose_mode(const struct net_device *dev, u32 wanted, struct netlink_ext_ack *extack)
{
	const char *refused = shaper_hard_refused(dev);

	switch (wanted) {
	case TC_APIC_MODE_HARD:
		say(extack, refused ?: shaper_hard_doubt(dev));
		return refused ? -EOPNOTSUPP : TC_APIC_MODE_HARD;
	case TC_APIC_MODE_AUTO:
		if (IS_ENABLED(CONFIG_PREEMPT_RT))
			return is_of_root(dev) ? TC_APIC_MODE_THREAD : TC_APIC_MODE_SOFT;
		return refused || shaper_hard_doubt(dev) ? TC_APIC_MODE_SOFT : TC_APIC_MODE_HARD;
	default:
		return wanted;
	}
}

/* Compute cycles from a configuration and the rate of the TSC. */
static void convert(struct shaper *q, const struct shaper_config *config)
	__must_hold(&q->lock)
{
	const struct shaper_config *old = &q->config;
	u64 hz = apic_timer_ns_to_tsc(NSEC_PER_SEC);

	if (q->plan.hz != hz || config->rate != old->rate || config->burst != old->burst ||
	    config->overhead != old->overhead) {
		shaper_plan_change(&q->plan, shaper_leaving(q), hz, config->rate, config->burst,
				   config->overhead);
		shaper_classes_rate_set(&q->classes);
	}
	q->late = apic_timer_ns_to_tsc(config->late_ns);
	WRITE_ONCE(q->horizon, apic_timer_ns_to_tsc(config->horizon_ns));
	q->ce_threshold = apic_timer_ns_to_tsc(config->ce_threshold_ns);
	WRITE_ONCE(q->handing, apic_timer_ns_to_tsc(config->offload ? config->ahead_ns :
						    config->doorbell_ns));
	WRITE_ONCE(q->near, apic_timer_ns_to_tsc(NEAR_NS));
}

/**
 * shaper_convert() - convert all times again, after the kernel has refined the rate of the TSC
 * @q:		the qdisc
 *
 * Classes and sockets follow with their next packets.
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_convert(struct shaper *q)
{
	convert(q, &q->config);
}

/* Apply a configuration, and compute the values that depend on it. */
static void apply(struct shaper *q, const struct shaper_config *config, u32 mode)
	__must_hold(&q->lock)
{
	struct net_device *dev = qdisc_dev(q->sch);
	const struct shaper_config *old = &q->config;

	convert(q, config);
	if (mode != q->mode || !q->lead_soft.max) {
		shaper_lead_init(&q->lead_hard, apic_timer_ns_to_tsc(4000),
				 apic_timer_ns_to_tsc(HARD_LEAST_NS), apic_timer_ns_to_tsc(8000),
				 HARD_WINDOW);
		if (mode == TC_APIC_MODE_THREAD)
			shaper_lead_init(&q->lead_soft, apic_timer_ns_to_tsc(15000),
					 0, apic_timer_ns_to_tsc(50000), SHAPER_LEAD_WINDOW);
		else
			shaper_lead_init(&q->lead_soft, apic_timer_ns_to_tsc(4000),
					 0, apic_timer_ns_to_tsc(20000), SHAPER_LEAD_WINDOW);
	}
	q->mode = mode;
	q->irqs_on = shaper_irqs_on(dev);
	q->placed = q->placed && config->cpu == old->cpu;
	q->sch->limit = config->limit;
	q->config = *config;
}

/**
 * shaper_configure() - set up a qdisc, or change one
 * @sch:	the qdisc
 * @options:	attributes, or NULL for none
 * @extack:	receives a reason if this fails
 *
 * Queued packets stay, and follow the new configuration.
 *
 * Context: Task context, RTNL.
 * Return: 0; a negative errno, and nothing has changed.
 */
int shaper_configure(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct task_struct *thread = NULL, *old_thread;
	struct shaper *q = qdisc_priv(sch);
	struct shaper_config config = q->config, old = q->config;
	unsigned long flags;
	int mode, err;
	bool moved;

	if (options) {
		err = parse(options, &config, extack);
		if (err)
			return err;
		err = check_rights(qdisc_dev(sch), &config, &q->config, extack);
		if (err)
			return err;
	}
	mode = choose_mode(qdisc_dev(sch), config.mode, extack);
	if (mode < 0)
		return mode;
	moved = config.cpu != q->config.cpu;
	if (mode == TC_APIC_MODE_THREAD && (!q->thread || moved)) {
		thread = shaper_thread_create(q, config.cpu);
		if (IS_ERR(thread)) {
			NL_SET_ERR_MSG(extack, "failed to create the thread");
			return PTR_ERR(thread);
		}
	} else if (mode == TC_APIC_MODE_THREAD) {
		thread = q->thread;
	}

	err = config.offload && !old.offload ? shaper_offload_on(sch, extack) : 0;
	if (err) {
		if (thread && thread != q->thread)
			kthread_stop(thread);
		return err;
	}

	sch_tree_lock(sch);
	raw_spin_lock_irqsave(&q->lock, flags);
	apply(q, &config, mode);
	old_thread = q->thread;
	q->thread = thread;
	/* Have it armed again, on the new CPU. A running handler waits for the lock. */
	if (moved)
		del_apic_timer(&q->timer);
	/* They are handed over by another @q->handing. */
	shaper_far_look_again(&q->far);
	q->asked = 0;
	shaper_arm(q);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	sch_tree_unlock(sch);
	if (thread != old_thread) {
		/* Not earlier: it binds itself to the CPU of the configuration in effect. */
		if (thread)
			wake_up_process(thread);
		if (old_thread)
			kthread_stop(old_thread);
	}
	if (old.offload && !config.offload)
		shaper_offload_off(sch, old.ahead_ns, false);
	return 0;
}

/**
 * shaper_dump() - show a qdisc's configuration
 * @sch:	the qdisc
 * @skb:	the message
 *
 * Context: Task context, RTNL.
 * Return: bytes in the message; -EMSGSIZE if they do not fit.
 */
int shaper_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct shaper *q = qdisc_priv(sch);
	const struct shaper_config *config = &q->config;
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, TCA_APIC_RATE64, config->rate, TCA_APIC_PAD) ||
	    nla_put_u32(skb, TCA_APIC_BURST, config->burst) ||
	    nla_put_s32(skb, TCA_APIC_OVERHEAD, config->overhead) ||
	    nla_put_u32(skb, TCA_APIC_MODE, config->mode) ||
	    nla_put_u32(skb, TCA_APIC_CPU, config->cpu) ||
	    nla_put_u32(skb, TCA_APIC_CLOCK, config->clock) ||
	    nla_put_u32(skb, TCA_APIC_LATE, config->late) ||
	    nla_put_u64_64bit(skb, TCA_APIC_LATE_NS, config->late_ns, TCA_APIC_PAD) ||
	    nla_put_u64_64bit(skb, TCA_APIC_HORIZON, config->horizon_ns, TCA_APIC_PAD) ||
	    nla_put_u8(skb, TCA_APIC_HORIZON_CAP, config->horizon_cap) ||
	    nla_put_u32(skb, TCA_APIC_LIMIT, config->limit) ||
	    nla_put_u32(skb, TCA_APIC_FLOW_LIMIT, config->flow_limit) ||
	    nla_put_u8(skb, TCA_APIC_FLOW_ORDER, config->flow_order) ||
	    nla_put_u8(skb, TCA_APIC_PACING, config->pacing) ||
	    nla_put_u64_64bit(skb, TCA_APIC_CE_THRESHOLD, config->ce_threshold_ns,
			      TCA_APIC_PAD) ||
	    nla_put_u8(skb, TCA_APIC_SPLIT_GSO, config->split_gso) ||
	    nla_put_u32(skb, TCA_APIC_MODE_NOW, q->mode) ||
	    nla_put_u8(skb, TCA_APIC_OFFLOAD, config->offload) ||
	    nla_put_u64_64bit(skb, TCA_APIC_AHEAD, config->ahead_ns, TCA_APIC_PAD) ||
	    nla_put_u64_64bit(skb, TCA_APIC_DOORBELL, config->doorbell_ns, TCA_APIC_PAD)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/**
 * shaper_dump_stats() - show a qdisc's statistics
 * @sch:	the qdisc
 * @dump:	the message
 *
 * Context: Task context, RTNL.
 * Return: 0; a negative errno if they do not fit.
 */
int shaper_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct shaper *q = qdisc_priv(sch);
	struct tc_apic_xstats stats;
	unsigned long flags;
	u64 waited;

	/* This lock protects the count of packets that are dropped before they are queued. */
	sch_tree_lock(sch);
	raw_spin_lock_irqsave(&q->lock, flags);
	stats = q->stats;
	waited = q->waited;
	stats.lead_hard = q->lead_hard.cycles;
	stats.lead_soft = q->lead_soft.cycles;
	stats.flows = q->flows.count;
	raw_spin_unlock_irqrestore(&q->lock, flags);
	sch_tree_unlock(sch);
	stats.waited_ns = apic_timer_tsc_to_ns(waited);
	stats.tsc_khz = apic_timer_ns_to_tsc(NSEC_PER_MSEC);
	stats.path = shaper_path();
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}
