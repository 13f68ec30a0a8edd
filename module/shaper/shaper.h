/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_H
#define _SHAPER_H

#include <linux/apic_timer.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <uapi/linux/sch_apic.h>

#include "class.h"
#include "edf.h"
#include "far.h"
#include "flows.h"
#include "lead.h"
#include "plan.h"

/**
 * struct shaper_config - the user's configuration, in the units of the interface
 * @rate:		bit/s; 0: not limited
 * @late_ns:		&enum tc_apic_attr explains these
 * @horizon_ns:		...
 * @ce_threshold_ns:	...
 * @burst:		bytes
 * @overhead:		bytes
 * @mode:		&enum tc_apic_mode
 * @cpu:		the CPU, or %TC_APIC_CPU_ANY
 * @clock:		clock of departure times that do not specify one
 * @late:		&enum tc_apic_late
 * @limit:		packets
 * @flow_limit:		packets; 0: not limited
 * @horizon_cap:	...
 * @flow_order:		...
 * @pacing:		...
 * @split_gso:		...
 * @offload:		...
 * @ahead_ns:		...
 * @doorbell_ns:	...
 */
struct shaper_config {
	u64 rate;
	u64 late_ns;
	u64 horizon_ns;
	u64 ce_threshold_ns;
	u32 burst;
	s32 overhead;
	u32 mode;
	u32 cpu;
	clockid_t clock;
	u32 late;
	u32 limit;
	u32 flow_limit;
	bool horizon_cap;
	bool flow_order;
	bool pacing;
	bool split_gso;
	bool offload;
	u64 ahead_ns;
	u64 doorbell_ns;
};

/**
 * enum shaper_sender - the sender that has taken a packet from the queue and is sending it
 * @SHAPER_NOBODY:	none
 * @SHAPER_INTERRUPT:	the handler of the timer
 * @SHAPER_SOFTIRQ:	the qdisc's dequeue
 */
enum shaper_sender {
	SHAPER_NOBODY,
	SHAPER_INTERRUPT,
	SHAPER_SOFTIRQ,
};

/**
 * struct shaper - a qdisc
 * @lock:	protects all fields except where noted. Innermost, except for the timer's own
 *		locks; the root qdisc's lock is taken before it. Enqueue reads some fields
 *		without it, by READ_ONCE()
 * @edf:	waiting packets, except those of classes
 * @far:	packets whose departure times are far
 * @classes:	the classes, and their packets
 * @plan:	when the first packet may leave
 * @timer:	expires some time before the first packet must leave
 * @asked:	TSC for which @timer was armed; 0 if it was not armed since it expired
 * @since:	the same, or when it was armed if that was later
 * @expired:	@since, if the handler has left a packet to softirq or thread; 0: it has not
 * @sender:	the active sender. There is only one at a time, which keeps packets in order
 * @epoch:	counts epochs of the TSC
 * @generation:	counts resets: a sender that was active during one changes no accounts
 * @queued:	number of packets in @edf, in @far, in @classes and with the sender
 * @mode:	the mode in effect, never %TC_APIC_MODE_AUTO
 * @irqs_on:	outside the handler the driver is called with interrupts on: see shaper_irqs_on()
 * @dead:	a reset is in progress
 * @stopped:	the device's queue is stopped for the first packet; waking it schedules us
 * @kicked:	the handler has left the first packet to the softirq
 * @woken:	@thread has work to do
 * @handed:	the kernel got a packet from dequeue, and may give it back: 2 until it calls
 *		again, maybe for more packets, 1 until it calls once more
 * @placed:	@timer is on the chosen CPU, or on any since the choice was given up
 * @launch:	packets get their moment as their time, for the device: with offload, and while that
 *		is being turned on or off
 * @features:	features of the device for which the latest packet was prepared
 * @prepared:	counts changes of @features: earlier packets were prepared for others
 * @late:	delay from which on a packet is late, TSC cycles
 * @horizon:	maximum distance of departure times, TSC cycles
 * @ce_threshold: TSC cycles; 0: none
 * @handing:	TSC cycles before its moment at which a packet is handed over: with offload as
 *		configured, else the time from the driver's first instruction until it starts the
 *		card
 * @near:	distance at which a converted departure time is good enough, TSC cycles
 * @lead_hard:	lead of the handler
 * @lead_soft:	lead of softirq or thread
 * @waited:	TSC cycles spent waiting
 * @config:	written under RTNL, the root qdisc's lock and @lock; read under any of them
 * @stats:	counters
 * @sch:	the qdisc that contains this
 * @watchdog:	the kernel's timer, used when ours cannot be armed
 * @thread:	thread of mode thread, otherwise NULL; written under RTNL and @lock
 * @gone:	dropped packets that are still in the accounts, here and in the parents: see
 *		shaper_tell_parents(); this and the next field are under the root qdisc's lock
 * @gone_len:	their bytes
 * @filters:	filters that choose the class of a packet; RCU
 * @block:	block of @filters; RTNL
 * @flows:	under the root qdisc's lock; &shaper_flow.queued also needs @lock
 * @node:	entry in the list of all qdiscs; under its lock
 * @offloads:	entry in the list of qdiscs with offload; RTNL
 */
struct shaper {
	raw_spinlock_t lock;
	struct shaper_edf edf;
	struct shaper_far far;
	struct shaper_plan plan;
	struct shaper_classes classes;
	struct apic_timer_list timer;
	u64 asked;
	u64 since;
	u64 expired;
	enum shaper_sender sender;
	u32 epoch;
	u32 generation;
	u32 queued;
	u32 mode;
	bool irqs_on;
	bool dead;
	bool stopped;
	bool kicked;
	bool woken;
	u8 handed;
	bool placed;
	bool launch;
	u8 prepared;
	netdev_features_t features;
	u64 late;
	u64 horizon;
	u64 ce_threshold;
	u64 handing;
	u64 near;
	struct shaper_lead lead_hard;
	struct shaper_lead lead_soft;
	u64 waited;
	struct shaper_config config;
	struct tc_apic_xstats stats;
	struct Qdisc *sch;
	struct qdisc_watchdog watchdog;
	struct task_struct *thread;
	u32 gone;
	u32 gone_len;
	struct tcf_proto __rcu *filters;
	struct tcf_block *block;
	struct shaper_flows flows;
	struct list_head node;
	struct list_head offloads;
};

/* Whether the core runs this qdisc for its queue; below another qdisc it runs that one. */
static inline bool shaper_is_root(const struct Qdisc *sch)
{
	return rcu_access_pointer(sch->dev_queue->qdisc_sleeping) == sch;
}

/* Subtract packets from what the kernel and the parents read. @sch: its &shaper.lock is held */
static inline void shaper_unaccount(struct Qdisc *sch, u32 packets, u32 bytes)
{
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - packets);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - bytes);
}

/* Account for packets that have left the queue, sent or not; flows have their own accounts. */
static inline void shaper_leave(struct shaper *q, u32 packets, u32 bytes)
	__must_hold(&q->lock)
{
	WRITE_ONCE(q->queued, q->queued - packets);
	shaper_unaccount(q->sch, packets, bytes);
}

#endif /* _SHAPER_H */
