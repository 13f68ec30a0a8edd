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
 *	  dead: does not arm for B; may
 *	  arm to look again, for A
 *	unlock				  deletes that as well
 *					q->lock
 *					  empties the queue
 */
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <net/inet_ecn.h>
#include <asm/msr.h>

#include "arm.h"
#include "cb.h"
#include "offload.h"
#include "send.h"

DEFINE_PER_CPU(u64, shaper_waited_until);

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
 * shaper_take_specially() - take a packet with a class, a mark, or for offload
 * @q:		the qdisc
 * @skb:	the packet
 * @sending:	its data
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_take_specially(struct shaper *q, struct sk_buff *skb, struct shaper_sending *sending)
{
	if (q->ce_threshold && sending->at - shaper_wanted(q, skb) > q->ce_threshold)
		mark(q, skb);
	if (shaper_has_class(skb))
		shaper_class_take(&q->classes, skb);
	else
		shaper_edf_erase(&q->edf, skb);
	if (!q->launch)
		return;
	shaper_offload_launch(skb, sending->at);
	sending->launched = true;
}

/**
 * shaper_account_class() - account for a packet that has left in its class
 * @q:		the qdisc; one of its classes is sending
 * @sending:	the packet
 *
 * Advances to the class's next packet.
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_account_class(struct shaper *q, struct shaper_sending *sending)
{
	struct shaper_class *class = q->classes.sending;

	sending->class = class;
	shaper_class_left(&q->classes, &q->plan, sending->start.left, sending->planned,
			  sending->len);
	_bstats_update(&class->bstats, sending->len, sending->segs);
}

/*
 * Set again what we have in a packet that was with the driver. hv_netvsc puts its own data into the
 * control block, and veth clears the time for the other side, before they find that they have no
 * room. With offload we have replaced the time ourselves, and the packet's deadline with it.
 */
static void restore(const struct shaper_sending *sending)
{
	struct sk_buff *skb = sending->start.skb;
	struct shaper_cb *cb = shaper_cb(skb);

	cb->want = sending->want;
	cb->flow = sending->flow;
	cb->flags = sending->flags;
	shaper_set_pkt_len(skb, sending->len, sending->segs);
	skb_set_delivery_time(skb, sending->tstamp, sending->tstamp_type);
	skb->dev = sending->start.dev;
}

/**
 * shaper_put_back() - put a packet that the driver did not take back into the queue
 * @q:		the qdisc
 * @sending:	the packet
 * @by_interrupt: the sender was the handler
 *
 * Context: Interrupts off, @q->lock held.
 * Return: as shaper_finish().
 */
struct sk_buff *shaper_put_back(struct shaper *q, struct shaper_sending *sending,
				bool by_interrupt)
{
	struct sk_buff *skb = sending->start.skb;

	restore(sending);
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
