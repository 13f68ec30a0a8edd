// SPDX-License-Identifier: GPL-2.0
/*
 * Sending from softirq, or from the thread, by dequeue.
 */
#include <linux/errqueue.h>
#include <linux/lockdep.h>
#include <linux/netdevice.h>
#include <net/pkt_sched.h>
#include <asm/msr.h>

#include "arm.h"
#include "cb.h"
#include "compat.h"
#include "epoch.h"
#include "path.h"
#include "report.h"
#include "send.h"
#include "soft.h"
#include "txq.h"

/* Maximum number of packets that one call of dequeue sends or drops, like the core's weight. */
#define WEIGHT		64

/*
 * A new epoch of the TSC has begun while a packet was being sent: all its data are of the previous
 * epoch, except its class, which was moved. The packet leaves now, or wants to.
 */
static void resume(struct shaper *q, struct shaper_sending *sending)
	__must_hold(&q->lock)
{
	u64 now = rdtsc();

	sending->at = now;
	sending->start.at = now;
	sending->start.ready = now;
	sending->start.left = now;
	sending->want = now;
}

/* Learn from a packet how long before its moment the timer must expire. @expired: see there */
static void learn(struct shaper *q, const struct shaper_sending *sending, u64 expired)
	__must_hold(&q->lock)
{
	if (sending->taken)
		shaper_learn(&q->lead_soft, sending, expired, SHAPER_LEAD_KERNEL);
}

/*
 * Send the first packet from softirq. The lock of the qdisc, which is the root, is dropped
 * meanwhile, as is q->lock.
 *
 * Return: true to continue with the next packet.
 */
static bool send(struct shaper *q, struct sk_buff *skb, unsigned long *flags, bool *again)
	__must_hold(&q->lock) __must_hold(qdisc_lock(q->sch))
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct netdev_queue *txq = skb_get_tx_queue(dev, skb);
	bool thread = q->thread && current == q->thread;
	bool stopped, busy = false, irqs_on = q->irqs_on;
	struct shaper_sending sending __uninitialized;
	u64 expired = q->expired;
	struct sk_buff *gone;
	u32 epoch = q->epoch;

	lockdep_assert_held(qdisc_lock(q->sch));
	q->expired = 0;
	shaper_take(q, skb, txq, shaper_moment(q, skb), &sending, SHAPER_SOFTIRQ);
	raw_spin_unlock_irqrestore(&q->lock, *flags);
	spin_unlock(qdisc_lock(q->sch));

	HARD_TX_LOCK(dev, txq, smp_processor_id());
	stopped = shaper_txq_stopped(txq);
	if (!stopped) {
		if (shaper_tapped(dev))
			dev_queue_xmit_nit(skb, dev);
		local_irq_save(*flags);
		if (shaper_epoch_is_over(q, epoch))
			sending.start.at = rdtsc();
		sending.start.irqs_on = irqs_on && !irqs_disabled_flags(*flags);
		shaper_give(&sending, thread ? TC_APIC_MODE_THREAD : TC_APIC_MODE_SOFT);
		/* Otherwise shaper_start() has enabled interrupts for the driver. */
		if (!sending.start.irqs_on)
			local_irq_restore(*flags);
		busy = !sending.taken;
	}
	HARD_TX_UNLOCK(dev, txq);

	spin_lock(qdisc_lock(q->sch));
	raw_spin_lock_irqsave(&q->lock, *flags);
	if (shaper_epoch_is_over(q, epoch)) {
		resume(q, &sending);
		expired = 0;
	}
	gone = shaper_finish(q, &sending);
	learn(q, &sending, expired);
	if (busy) {
		q->stats.busy_driver++;
		*again = true;
	}
	if (stopped && !gone) {
		q->stats.stopped++;
		q->stopped = true;
		/* Pairs with the atomic operation by which the driver wakes its queue. */
		smp_mb();
		if (!shaper_txq_stopped(txq)) {
			q->stopped = false;
			*again = true;
		}
	}
	if (unlikely(gone)) {
		raw_spin_unlock_irqrestore(&q->lock, *flags);
		kfree_skb(gone);
		raw_spin_lock_irqsave(&q->lock, *flags);
	}
	return sending.taken;
}

/* Hand the first packet to the kernel at its moment. The root qdisc's lock stays held. */
static struct sk_buff *hand_over(struct shaper *q, struct sk_buff *skb)
	__must_hold(&q->lock)
{
	struct netdev_queue *txq = skb_get_tx_queue(qdisc_dev(q->sch), skb);
	struct shaper_sending sending __uninitialized;
	u64 expired = q->expired;

	q->expired = 0;
	shaper_take(q, skb, txq, shaper_moment(q, skb), &sending, SHAPER_SOFTIRQ);
	raw_spin_unlock(&q->lock);

	sending.start.ready = rdtsc();
	sending.start.left = shaper_wait(sending.start.at);

	raw_spin_lock(&q->lock);
	sending.taken = true;
	shaper_finish(q, &sending);
	learn(q, &sending, expired);
	q->handed = 2;
	return skb;
}

/**
 * shaper_tell_parents() - remove dropped packets from the accounts, also of parent qdiscs
 * @q:		the qdisc
 *
 * A parent makes a child idle when it hears that the child has become empty. Some do not expect
 * that while they dequeue, so a packet that was the last one stays in the accounts until the next
 * one is queued. Even then it waits for the next dequeue: parents count a packet only after their
 * child has, so one of them would become empty once more, and its own parent would make it idle
 * although it has found it busy and does not make it active again.
 *
 * It stays in the accounts of the child as well, because these must agree: a parent that replaces
 * its child subtracts what it finds there, and one that finds an active child empty makes it
 * active a second time, as drr of older kernels does.
 *
 * A root has no parents, and no packet stays.
 *
 * Context: Softirqs off, the lock of the root qdisc held, @q->lock not held.
 */
void shaper_tell_parents(struct shaper *q)
{
	u32 gone = q->gone, len = q->gone_len;
	struct Qdisc *sch = q->sch;
	unsigned long flags;
	bool alone;

	raw_spin_lock_irqsave(&q->lock, flags);
	/* The kernel may hold one for which a parent has only asked: see qdisc_peek_dequeued(). */
	alone = sch->q.qlen == gone && !shaper_is_root(sch);
	if (!alone)
		shaper_unaccount(sch, gone, len);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	if (alone)
		return;
	q->gone = 0;
	q->gone_len = 0;
	qdisc_tree_reduce_backlog(sch, gone, len);
}

/* Drop the first packet. It does not count for the rate. */
static void drop_late(struct shaper *q, struct sk_buff *skb, unsigned long *flags)
	__must_hold(&q->lock)
{
	struct Qdisc *sch = q->sch;

	/* The time that drops take is no preparation of the packet that follows them. */
	q->expired = 0;
	if (shaper_has_class(skb)) {
		shaper_class_of(&q->classes, skb)->stats.dropped_late++;
		shaper_class_drop(&q->classes, &q->plan, skb, qdisc_pkt_len(skb));
	} else {
		shaper_edf_erase(&q->edf, skb);
	}
	skb->dev = qdisc_dev(sch);
	shaper_flow_leave(shaper_cb(skb)->flow);
	WRITE_ONCE(q->queued, q->queued - 1);
	qdisc_qstats_drop(sch);
	qdisc_qstats_overlimit(sch);
	q->stats.dropped_late++;
	raw_spin_unlock_irqrestore(&q->lock, *flags);

	q->gone++;
	q->gone_len += qdisc_pkt_len(skb);
	shaper_tell_parents(q);
	shaper_report(skb, ECANCELED, SO_EE_CODE_TXTIME_MISSED);
	kfree_skb(skb);

	raw_spin_lock_irqsave(&q->lock, *flags);
}

/*
 * Check whether dequeue may send the first packet now.
 * @kicked:	the handler has left it to us
 * @handed:	the kernel may still hold a packet that it got earlier
 */
static bool due(const struct shaper *q, const struct sk_buff *skb, u64 now, bool kicked,
		bool handed)
{
	u64 early = q->lead_soft.cycles + shaper_path_longest;

	/* The earlier packet must not wait for this one; or the handler will send this one. */
	if (handed || (shaper_for_interrupt(q, skb) && !kicked))
		early = 0;
	return shaper_before(shaper_handing(q, shaper_moment(q, skb)), early) <= now;
}

/**
 * shaper_dequeue() - send what is due
 * @sch:	the qdisc
 *
 * Wait for the moment of the first packet if it is near, and give the packet to the driver.
 * Below another qdisc the locks belong to that one, and the kernel has to send the packet. It
 * also has to send packets with IPsec or TLS offload, and those that were prepared for other
 * features of the device. Such a packet is returned at its moment.
 *
 * The kernel may call this function again while it still holds that packet, to send several
 * at once. Then it gets only a packet whose moment has arrived, and none is sent from here: that
 * one would overtake those that the kernel holds.
 *
 * Context: Softirqs off, the lock of the root qdisc held.
 * Return: a packet that the kernel has to send now, or NULL.
 */
struct sk_buff *shaper_dequeue(struct Qdisc *sch)
{
	struct shaper *q = qdisc_priv(sch);
	bool kicked, handed, late, again = false;
	unsigned int budget = WEIGHT;
	struct sk_buff *skb, *found = NULL;
	unsigned long flags;
	u64 now;

	if (unlikely(q->gone))
		shaper_tell_parents(q);
	raw_spin_lock_irqsave(&q->lock, flags);
	kicked = q->kicked;
	/* After a call without a packet, the kernel sends those that it holds, or keeps them. */
	handed = q->handed > 1;
	if (q->handed)
		q->handed--;
	q->kicked = false;
	q->stopped = false;
	if (unlikely(q->far.count))
		shaper_come_near(q);
	while (q->sender == SHAPER_NOBODY) {
		skb = shaper_first(q);
		now = rdtsc();
		if (!skb)
			break;
		late = shaper_too_late(q, skb, now);
		if (!late && !due(q, skb, now, kicked, handed))
			break;
		if (!budget--) {
			again = true;
			break;
		}
		if (late) {
			drop_late(q, skb, &flags);
			continue;
		}
		if (!shaper_is_root(sch) || shaper_for_stack(q, skb)) {
			found = hand_over(q, skb);
			break;
		}
		/* It would overtake a packet that the kernel holds: try again once that is gone. */
		if (handed) {
			again = true;
			break;
		}
		if (!send(q, skb, &flags, &again))
			break;
		kicked = false;
	}
	shaper_arm(q);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	/* If that fails, the timer that was armed above tries again. */
	if (again)
		shaper_schedule(q);
	return found;
}
