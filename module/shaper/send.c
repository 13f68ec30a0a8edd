// SPDX-License-Identifier: GPL-2.0
/*
 * Sending: by the handler of the timer, in hard interrupt, and by dequeue, in softirq.
 *
 * A sender removes the first packet from the queue, and drops q->lock while it waits and calls
 * the driver, so that code that queues a packet does not wait for it. Only one sender is active
 * at a time, as recorded in q->sender: the other leaves it to that one to arm the timer. Softirq
 * drops the root qdisc's lock as well, as sch_direct_xmit() does. The qdisc is "running" all the
 * time, and the core waits for the end of that before a device is closed or a qdisc destroyed.
 * reset() waits for the handler.
 *
 *	CPU0: handler			CPU1: softirq, root lock held
 *	q->lock
 *	  trylock of the txq
 *	  takes A, sender = INTERRUPT
 *	unlock				q->lock
 *	waits, sends A			  sender is INTERRUPT: returns NULL
 *	q->lock				unlock
 *	  sender = NOBODY
 *	  arms for B
 *	unlock
 *
 * Senders do not wait for a stopped queue: the driver that wakes the queue schedules the qdisc.
 * This must not be missed:
 *
 *	CPU0: softirq			CPU1: driver
 *	finds txq stopped
 *	(root lock not held)		netif_tx_wake_queue()
 *					  clears XOFF
 *					  __netif_schedule(): softirq finds that CPU0
 *					  runs the qdisc, and leaves it to that
 *	root lock, q->lock
 *	  stopped = true
 *	  sees XOFF cleared: tries again
 *
 * The handler holds q->lock from the check of the txq until q->stopped is set. A dequeue caused
 * by waking the queue takes q->lock after that.
 *
 * While another qdisc of the device is replaced, for example below mq, Linux 7 keeps the packets
 * of this one, but puts noop_qdisc in the place of its root. Scheduling that has no effect, even
 * if the driver does so to wake a queue. Therefore a kick tries again, and the handler does so
 * while a queue is stopped:
 *
 *	CPU0: RTNL			CPU1: handler
 *	root = noop, synchronize_net()
 *	activates all again		finds that its own qdisc is active
 *					  schedules noop
 *	root is back: nothing is scheduled
 *
 * reset() finds an active sender in two cases:
 *
 *	CPU0: softirq sends A		CPU1: reset(), root lock held
 *	(root lock not held)		q->lock
 *					  generation++
 *					  empties the queue
 *	root lock, q->lock		...
 *	  generation differs: A is no longer accounted for; if the driver did not take
 *	  it, it is freed
 *
 *	CPU0: handler sends A		CPU1: reset()
 *					q->lock
 *					  dead = true, generation++
 *					unlock
 *	q->lock				del_apic_timer_sync()
 *	  if the driver did not take	  waits
 *	  A, back into the queue: it	  ...
 *	  cannot be freed here
 *	  dead: arms nothing
 *	unlock				q->lock
 *					  empties the queue
 */
#include <linux/lockdep.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <net/inet_ecn.h>
#include <asm/msr.h>

#include <trace/events/sch_apic.h>

#include "arm.h"
#include "cb.h"
#include "offload.h"
#include "send.h"

/**
 * shaper_schedule() - have softirq run the root qdisc
 * @q:		the qdisc
 *
 * Linux 7 may leave this to a sender which is about to take the root's lock, and which does
 * nothing if the root was deactivated meanwhile. So check whether the root is scheduled.
 *
 * Context: Any but NMI.
 * Return: false if softirq may not run it: the caller must try again.
 */
bool shaper_schedule(struct shaper *q)
{
	bool scheduled = false;
	struct Qdisc *root;

	rcu_read_lock();
	root = qdisc_root(q->sch);
	if (likely(root != &noop_qdisc)) {
		__netif_schedule(root);
		scheduled = test_bit(__QDISC_STATE_SCHED, &root->state);
	}
	rcu_read_unlock();
	return scheduled;
}

/**
 * shaper_kick() - have softirq, or the thread, handle the first packet
 * @q:		the qdisc
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_kick(struct shaper *q)
{
	if (q->mode == TC_APIC_MODE_THREAD && q->thread) {
		WRITE_ONCE(q->woken, true);
		wake_up_process(q->thread);
		return;
	}
	if (unlikely(!shaper_schedule(q)))
		shaper_arm_at(q, apic_timer_add_tsc(rdtsc(), apic_timer_us_to_tsc(1000)));
}

/* Mark a packet, only once even if it is taken several times. */
static void mark(struct shaper *q, struct sk_buff *skb)
	__must_hold(&q->lock)
{
	struct shaper_cb *cb = shaper_cb(skb);

	if (!(cb->flags & SHAPER_MARKED) && INET_ECN_set_ce(skb)) {
		q->stats.ce_marked++;
		if (shaper_has_class(skb))
			shaper_class_of(&q->classes, skb)->stats.ce_marked++;
	}
	cb->flags |= SHAPER_MARKED;
}

/**
 * shaper_take() - remove a packet from the queue, to send it
 * @q:		the qdisc
 * @skb:	the first packet
 * @at:		its moment, absolute TSC
 * @sending:	set: the packet's data that are needed later
 * @sender:	the sender
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_take(struct shaper *q, struct sk_buff *skb, u64 at, struct shaper_sending *sending,
		 enum shaper_sender sender)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct shaper_cb *cb = shaper_cb(skb);

	/* Set fields one by one: those that shaper_start() sets need not be zeroed. */
	sending->start.skb = skb;
	sending->start.dev = dev;
	sending->start.txq = skb_get_tx_queue(dev, skb);
	sending->start.at = shaper_handing(q, at);
	sending->start.irqs_on = false;
	sending->at = at;
	sending->flow = cb->flow;
	sending->class = NULL;
	sending->len = qdisc_pkt_len(skb);
	sending->segs = shaper_pkt_segs(skb);
	sending->generation = q->generation;
	sending->mode = TC_APIC_MODE_AUTO;
	sending->planned = !(cb->flags & SHAPER_AT_ONCE) || at != cb->want;
	sending->launched = false;
	sending->taken = false;
	if (unlikely(q->ce_threshold && at - shaper_wanted(q, skb) > q->ce_threshold))
		mark(q, skb);
	q->sender = sender;
	if (unlikely(shaper_has_class(skb)))
		shaper_class_take(&q->classes, skb);
	else
		shaper_edf_erase(&q->edf, skb);
	skb->dev = dev;
	if (unlikely(q->ahead)) {
		shaper_offload_launch(skb, at);
		sending->launched = true;
		/* This has overwritten a deadline: a requeued packet has none any more. */
		if (cb->flags & SHAPER_DEADLINE)
			cb->flags &= ~(SHAPER_DEADLINE | SHAPER_TXTIME);
	}
}

/* Account for a packet that has left in its class, and advance to the next one. */
static void account_class(struct shaper *q, struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	struct shaper_class *class = q->classes.sending;

	sending->class = class;
	shaper_class_left(&q->classes, &q->plan, sending->start.left, sending->planned,
			  sending->len);
	_bstats_update(&class->bstats, sending->len, sending->segs);
}

/* Account for a packet that has left the queue. */
static void account(struct shaper *q, struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	const struct shaper_start *start = &sending->start;

	if (unlikely(q->classes.sending))
		account_class(q, sending);

	/* A packet that wanted to leave at once had no moment but the one it left at. */
	shaper_plan_sent(&q->plan, sending->planned ? sending->at : start->left, start->left,
			 sending->len);
	if (unlikely(q->classes.count && !sending->class))
		shaper_classes_rest_left(&q->classes, &q->plan);
	_bstats_update(&q->sch->bstats, sending->len, sending->segs);
	if (unlikely(sending->generation != q->generation))
		return;
	shaper_flow_leave(sending->flow);
	shaper_leave(q, 1, sending->len);
}

static void count_sent(struct tc_apic_xstats *stats, u32 mode)
{
	switch (mode) {
	case TC_APIC_MODE_HARD:
		stats->sent_hard++;
		return;
	case TC_APIC_MODE_SOFT:
		stats->sent_soft++;
		return;
	case TC_APIC_MODE_THREAD:
		stats->sent_thread++;
		return;
	default:
		stats->sent_stack++;
	}
}

static void count_error(const struct shaper *q, struct tc_apic_xstats *stats, s64 error)
{
	stats->errors[error <= 0 ? 0 : min(fls64(error), TC_APIC_ERRORS - 1)]++;
	if (error > (s64)q->late)
		stats->late++;
	if (error < 0)
		stats->early++;
}

/* Count a packet that has left, and its error. */
static void count(struct shaper *q, const struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	const struct shaper_start *start = &sending->start;
	/* Compare with the moment it was taken for: the configuration may have changed since. */
	s64 error = start->left - start->at;

	count_sent(&q->stats, sending->mode);
	if (unlikely(sending->class))
		count_sent(&sending->class->stats, sending->mode);
	if (!sending->planned)
		return;
	/* The device keeps the packet until its moment. */
	if (unlikely(sending->launched))
		error = max_t(s64, start->left - sending->at, 0);
	count_error(q, &q->stats, error);
	if (unlikely(sending->class))
		count_error(q, &sending->class->stats, error);
	q->waited += start->left - start->ready;
}

/**
 * shaper_finish() - finish a packet that was sent, or that the driver did not take
 * @q:		the qdisc
 * @sending:	the packet
 *
 * Context: Interrupts off, @q->lock held.
 * Return: a packet that the caller has to free, or NULL.
 */
struct sk_buff *shaper_finish(struct shaper *q, struct shaper_sending *sending)
{
	struct sk_buff *skb = sending->start.skb;
	bool by_interrupt = q->sender == SHAPER_INTERRUPT;

	q->sender = SHAPER_NOBODY;
	if (likely(sending->taken)) {
		account(q, sending);
		count(q, sending);
		return NULL;
	}
	if (sending->generation != q->generation && !by_interrupt)
		return skb;
	if (unlikely(q->classes.sending)) {
		q->classes.sending = NULL;
		shaper_edf_insert_again(&q->classes.heads, skb);
		return NULL;
	}
	/* If the packet had a class, that is gone. */
	shaper_cb(skb)->flags &= BIT(SHAPER_CLASS_SHIFT) - 1;
	shaper_edf_insert_again(&q->edf, skb);
	return NULL;
}

/* Do not dereference @start->skb: the driver may have freed it. */
static void trace(const struct shaper_start *start, unsigned int len, u32 mode)
{
	trace_sch_apic_send(start->dev, start->skb, len, start->at, start->left, start->ready,
			    mode, start->rc);
}

/**
 * shaper_give() - give a packet to the driver at its moment
 * @sending:	the packet
 * @mode:	TC_APIC_MODE_* by which it is sent
 *
 * Context: Interrupts off. The device's queue is locked and not stopped.
 */
void shaper_give(struct shaper_sending *sending, u32 mode)
{
	sending->mode = mode;
	shaper_start(&sending->start);
	sending->taken = dev_xmit_complete(sending->start.rc);
	trace(&sending->start, sending->len, mode);
}
