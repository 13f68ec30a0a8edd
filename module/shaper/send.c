// SPDX-License-Identifier: GPL-2.0
/*
 * Sending: by the handler of the timer, in hard interrupt, and by dequeue, in softirq.
 *
 * A sender takes the first packet out of the queue and drops q->lock while it waits and
 * calls the driver, so that nobody who queues a packet waits for it. Only one sends at a
 * time, which q->sender says: the other leaves it to him to arm the timer. Softirq drops
 * the root qdisc's lock as well, as sch_direct_xmit() does; the qdisc is "running" all
 * the time, and the core waits for the end of that before a device goes down or a qdisc
 * away. For the handler reset() waits.
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
 * A queue that is stopped is not waited for: nothing is armed, and who wakes the queue
 * schedules the qdisc. That must not be missed:
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
 * The handler holds q->lock from the look at the txq until q->stopped is set; a
 * dequeue that comes of waking the queue takes q->lock after that.
 *
 * reset() finds a sender on its way in two cases:
 *
 *	CPU0: softirq sends A		CPU1: reset(), root lock held
 *	(root lock not held)		q->lock
 *					  generation++
 *					  empties the queue
 *	root lock, q->lock		...
 *	  generation differs: A is no longer in the accounts; if the driver did not
 *	  take it, it is freed
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
#include <linux/errqueue.h>
#include <linux/lockdep.h>
#include <linux/netdevice.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <net/inet_ecn.h>
#include <net/sock.h>
#include <net/xfrm.h>
#include <asm/irq_regs.h>
#include <asm/msr.h>

#include <trace/events/sch_apic.h>

#include "cb.h"
#include "compat.h"
#include "offload.h"
#include "path.h"
#include "send.h"

/* Packets that one call of dequeue sends, as the core's dev_tx_weight. */
#define WEIGHT		64

/* How long interrupts leave the CPU to others that they have kept busy. */
#define BREAK_US	40

static u64 before(u64 tsc, u64 cycles)
{
	return tsc > cycles ? tsc - cycles : 0;
}

/* The first to leave. Most have no classes, and are not to pay for them. */
static struct sk_buff *head(struct shaper *q)
	__must_hold(&q->lock)
{
	if (likely(!shaper_edf_first(&q->classes.heads)))
		return shaper_edf_first(&q->edf);
	return shaper_classes_first(&q->classes, &q->edf, &q->plan);
}

static bool has_class(const struct sk_buff *skb)
{
	return SHAPER_CLASS(shaper_cb(skb)->flags);
}

/* When a packet wants to leave, whatever its class lets it. */
static u64 wanted(struct shaper *q, const struct sk_buff *skb)
	__must_hold(&q->lock)
{
	return has_class(skb) ? shaper_class_of(&q->classes, skb)->want : shaper_cb(skb)->want;
}

static u64 moment(const struct shaper *q, const struct sk_buff *skb)
{
	return shaper_plan_at(&q->plan, shaper_cb(skb)->want);
}

/* When what leaves at a moment is to be handed to the driver: ahead of it with offload. */
static u64 handing(const struct shaper *q, u64 at)
{
	return before(at, q->ahead);
}

/* Whether the kernel's own path has to send it. */
static bool for_stack(const struct shaper *q, const struct sk_buff *skb)
{
	return shaper_cb(skb)->flags & SHAPER_STACK ||
	       q->features != qdisc_dev(q->sch)->features;
}

/*
 * Whether the handler may send it. Taps' receivers take locks that may not be
 * taken there; and while the kernel may give a packet back, the accounts are its.
 */
static bool for_interrupt(const struct shaper *q, const struct sk_buff *skb)
{
	return q->mode == TC_APIC_MODE_HARD && !(shaper_cb(skb)->flags & SHAPER_SOFT) &&
	       !q->handed && !for_stack(q, skb) && shaper_is_root(q->sch) &&
	       !shaper_tapped(qdisc_dev(q->sch));
}

/* Whether it is to be dropped for being late. */
static bool too_late(struct shaper *q, const struct sk_buff *skb, u64 now)
	__must_hold(&q->lock)
{
	return q->config.late == TC_APIC_LATE_DROP && shaper_cb(skb)->flags & SHAPER_TXTIME &&
	       (s64)(now - wanted(q, skb)) > (s64)q->late;
}

/*
 * How much before it is to be handed over a packet is to be seen to, by the interrupt or not.
 * What interrupts wait for is taken from the rest of the system, which needs its turn.
 */
static u64 lead(const struct shaper *q, bool by_interrupt)
{
	u32 cycles = q->lead_soft.cycles;

	if (by_interrupt)
		cycles = likely(!apic_timer_busy()) ? q->lead_hard.cycles : q->lead_hard.usual;
	return shaper_path() + cycles;
}

static void start_timer(struct shaper *q, u64 expires)
	__must_hold(&q->lock)
{
	u64 now = rdtsc();
	int err = -EBUSY;

	q->asked = expires;
	/* It cannot expire sooner. */
	q->since = max(expires, now);
	if (!q->placed && q->config.cpu != TC_APIC_CPU_ANY) {
		q->placed = true;
		q->timer.expires = expires;
		err = add_apic_timer_on(&q->timer, q->config.cpu);
	}
	if (err)
		err = mod_apic_timer(&q->timer, expires);
	if (likely(err >= 0))
		return;

	/* This CPU is going offline, say. Softirq serves then, and asks again. */
	q->stats.no_timer++;
	qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns() +
				   apic_timer_tsc_to_ns(expires > now ? expires - now : 0));
}

/**
 * shaper_join() - put a packet into the queue
 * @q:		the qdisc
 * @skb:	the packet, which wants to leave now or soon; in the accounts
 *
 * Context: Interrupts off, @q->lock held.
 * Return: whether it is the first of the queue, or of its class.
 */
bool shaper_join(struct shaper *q, struct sk_buff *skb)
{
	if (unlikely(has_class(skb)))
		return shaper_class_insert(&q->classes, &q->plan, skb);
	return shaper_edf_insert(&q->edf, skb);
}

/* Packets that one call lets into the queue at most. */
#define JOIN		8

/* Let packets into the queue that have come near. */
static void come_near(struct shaper *q)
	__must_hold(&q->lock)
{
	unsigned int budget = JOIN;
	struct sk_buff *skb;
	u64 now = rdtsc();

	while (budget-- && (skb = shaper_far_pop(&q->far, now, q->near, q->ahead)))
		shaper_join(q, skb);
}

/**
 * shaper_arm() - arm the timer for the first packet
 * @q:		the qdisc
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_arm(struct shaper *q)
{
	u64 expires = U64_MAX;
	struct sk_buff *skb;

	lockdep_assert_held(&q->lock);
	if (q->dead || q->stopped || q->sender != SHAPER_NOBODY)
		return;
	if (unlikely(q->far.count)) {
		come_near(q);
		expires = shaper_far_look(&q->far);
	}
	skb = head(q);
	if (skb)
		expires = min(expires, before(handing(q, moment(q, skb)),
					      lead(q, for_interrupt(q, skb))));
	else if (!q->far.count)
		return;
	if (expires != q->asked || !apic_timer_pending(&q->timer))
		start_timer(q, expires);
}

/* Have softirq, or the thread, see to the first packet. */
static void kick(struct shaper *q)
	__must_hold(&q->lock)
{
	if (q->mode == TC_APIC_MODE_THREAD && q->thread) {
		WRITE_ONCE(q->woken, true);
		wake_up_process(q->thread);
		return;
	}
	rcu_read_lock();
	__netif_schedule(qdisc_root(q->sch));
	rcu_read_unlock();
}

/**
 * struct sending - a packet that a sender has taken, and what must be known of it later
 * @start:	for shaper_start(); with offload its moment is the one to be handed over at
 * @at:		its moment, absolute TSC
 * @flow:	its flow, or NULL
 * @class:	its class, or NULL; set when the sender is back, and valid while it holds q->lock
 * @len:	its length for the accounts, bytes
 * @segs:	packets on the wire
 * @generation:	of the qdisc when it was taken
 * @planned:	it had a moment, of its own or by the rate, that it can be late for
 * @taken:	the driver has it
 */
struct sending {
	struct shaper_start start;
	u64 at;
	struct shaper_flow *flow;
	struct shaper_class *class;
	unsigned int len;
	unsigned int segs;
	u32 generation;
	bool planned;
	bool taken;
};

/* Mark a packet once, however often it is taken. */
static void mark(struct shaper *q, struct sk_buff *skb)
	__must_hold(&q->lock)
{
	struct shaper_cb *cb = shaper_cb(skb);

	if (!(cb->flags & SHAPER_MARKED) && INET_ECN_set_ce(skb)) {
		q->stats.ce_marked++;
		if (has_class(skb))
			shaper_class_of(&q->classes, skb)->stats.ce_marked++;
	}
	cb->flags |= SHAPER_MARKED;
}

static void take(struct shaper *q, struct sk_buff *skb, u64 at, struct sending *sending,
		 enum shaper_sender sender)
	__must_hold(&q->lock)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct shaper_cb *cb = shaper_cb(skb);

	*sending = (struct sending) {
		.start = { .skb = skb, .dev = dev, .txq = skb_get_tx_queue(dev, skb),
			   .at = handing(q, at) },
		.at = at,
		.flow = cb->flow,
		.len = qdisc_pkt_len(skb),
		.segs = shaper_pkt_segs(skb),
		.generation = q->generation,
		.planned = !(cb->flags & SHAPER_AT_ONCE) || at != cb->want,
	};
	if (unlikely(q->ce_threshold && at - wanted(q, skb) > q->ce_threshold))
		mark(q, skb);
	q->sender = sender;
	if (unlikely(has_class(skb)))
		shaper_class_take(&q->classes, skb);
	else
		shaper_edf_erase(&q->edf, skb);
	skb->dev = dev;
	if (unlikely(q->ahead))
		shaper_offload_launch(skb, at);
}

/* The next packet of the class follows the one that has left. */
static void account_class(struct shaper *q, struct sending *sending)
	__must_hold(&q->lock)
{
	struct shaper_class *class = q->classes.sending;

	sending->class = class;
	shaper_class_left(&q->classes, &q->plan, sending->start.left, sending->planned,
			  sending->len);
	_bstats_update(&class->bstats, sending->len, sending->segs);
}

/* A packet has left the queue. */
static void account(struct shaper *q, struct sending *sending)
	__must_hold(&q->lock)
{
	const struct shaper_start *start = &sending->start;
	struct Qdisc *sch = q->sch;

	if (unlikely(q->classes.sending))
		account_class(q, sending);

	/* One that wanted to leave at once has left when it did. */
	shaper_plan_sent(&q->plan, sending->planned ? sending->at : start->left, start->left,
			 sending->len);
	if (unlikely(q->classes.count && !sending->class))
		shaper_classes_rest_left(&q->classes, &q->plan);
	_bstats_update(&sch->bstats, sending->len, sending->segs);
	if (unlikely(sending->generation != q->generation))
		return;
	if (sending->flow)
		WRITE_ONCE(sending->flow->queued, sending->flow->queued - 1);
	WRITE_ONCE(q->queued, q->queued - 1);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - sending->len);
}

static void count_error(const struct shaper *q, struct tc_apic_xstats *stats, s64 error)
{
	stats->errors[error <= 0 ? 0 : min(fls64(error), TC_APIC_ERRORS - 1)]++;
	if (error > (s64)q->late)
		stats->late++;
	if (error < 0)
		stats->early++;
}

static void count(struct shaper *q, const struct sending *sending)
	__must_hold(&q->lock)
{
	const struct shaper_start *start = &sending->start;
	s64 error = start->left - sending->at;

	if (!sending->planned)
		return;
	/* The device keeps it until its moment. */
	if (q->ahead && error < 0)
		error = 0;
	count_error(q, &q->stats, error);
	if (unlikely(sending->class))
		count_error(q, &sending->class->stats, error);
	q->waited += start->left - start->ready;
}

/*
 * A sender is back from the driver.
 *
 * Return: a packet that the caller has to free, or NULL.
 */
static struct sk_buff *finish(struct shaper *q, struct sending *sending)
	__must_hold(&q->lock)
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
	/* If it had a class, that is gone. */
	shaper_cb(skb)->flags &= BIT(SHAPER_CLASS_SHIFT) - 1;
	shaper_edf_insert_again(&q->edf, skb);
	return NULL;
}

/* @start->skb is not looked into: the driver may have freed it. */
static void trace(const struct shaper_start *start, unsigned int len, u32 mode)
{
	trace_sch_apic_send(start->dev, start->skb, len, start->at, start->left, start->ready,
			    mode, start->rc);
}

/* Give it to the driver, whose queue is locked and not stopped. */
static void start(struct sending *sending, u32 mode)
{
	shaper_start(&sending->start);
	sending->taken = dev_xmit_complete(sending->start.rc);
	trace(&sending->start, sending->len, mode);
}

/* What this interrupt has interrupted. */
static enum shaper_lead_found interrupted(void)
{
	struct pt_regs *regs = get_irq_regs();

	if (is_idle_task(current))
		return SHAPER_LEAD_IDLE;
	return regs && user_mode(regs) ? SHAPER_LEAD_USER : SHAPER_LEAD_KERNEL;
}

/**
 * shaper_handler() - the timer has expired: see to the first packet
 * @now:	TSC
 * @data:	the &struct shaper
 *
 * Context: Hard interrupt, of the apic_timer.
 */
void shaper_handler(unsigned long long now, unsigned long data)
{
	struct shaper *q = (struct shaper *)data;
	struct net_device *dev = qdisc_dev(q->sch);
	struct netdev_queue *txq;
	struct sending sending;
	struct sk_buff *skb;
	bool by_interrupt;
	u64 at, since;

	raw_spin_lock(&q->lock);
	since = q->since;
	q->asked = 0;
	skb = head(q);
	if (unlikely((!skb && !q->far.count) || q->dead || q->sender != SHAPER_NOBODY))
		goto out;
	if (unlikely(test_bit(__QDISC_STATE_DEACTIVATED, &q->sch->state))) {
		/* A reset follows, or the device is activated again. */
		start_timer(q, apic_timer_add_tsc(now, apic_timer_us_to_tsc(1000)));
		goto out;
	}
	if (unlikely(!skb))
		goto arm;
	at = moment(q, skb);
	by_interrupt = for_interrupt(q, skb);
	/* It was for packets that are far, or for one that is gone. */
	if (before(handing(q, at), 2 * lead(q, by_interrupt)) > now)
		goto arm;
	if (!by_interrupt || unlikely(too_late(q, skb, now))) {
		q->kicked = true;
		q->expired = since;
		kick(q);
		goto out;
	}
	/*
	 * Before the core throttles all handlers, which would make packets later than this.
	 * Softirq sends meanwhile, unless that waits for its thread.
	 */
	if (unlikely(apic_timer_busy() > 1)) {
		q->stats.busy_cpu++;
		q->kicked = true;
		kick(q);
		start_timer(q, apic_timer_add_tsc(now, apic_timer_us_to_tsc(BREAK_US)));
		goto out;
	}

	txq = skb_get_tx_queue(dev, skb);
	if (unlikely(!__netif_tx_trylock(txq))) {
		q->stats.busy_lock++;
		q->kicked = true;
		kick(q);
		goto out;
	}
	if (unlikely(netif_xmit_frozen_or_stopped(txq))) {
		__netif_tx_unlock(txq);
		q->stats.stopped++;
		q->stopped = true;
		goto out;
	}
	take(q, skb, at, &sending, SHAPER_INTERRUPT);
	raw_spin_unlock(&q->lock);

	start(&sending, TC_APIC_MODE_HARD);

	__netif_tx_unlock(txq);
	raw_spin_lock(&q->lock);
	finish(q, &sending);
	if (likely(sending.taken)) {
		q->stats.sent_hard++;
		if (unlikely(sending.class))
			sending.class->stats.sent_hard++;
		shaper_lead_learn(&q->lead_hard, sending.start.ready - since, interrupted());
	} else {
		q->stats.busy_driver++;
		q->kicked = true;
		kick(q);
		goto out;
	}
arm:
	shaper_arm(q);
out:
	raw_spin_unlock(&q->lock);
}

/**
 * shaper_report() - report a packet in the error queue of its socket
 * @skb:	the packet
 * @error:	errno
 * @code:	SO_EE_CODE_TXTIME_*
 *
 * Only sockets with SO_TXTIME that asked for it get a report.
 *
 * Context: Softirqs off, not in hard interrupt.
 */
void shaper_report(struct sk_buff *skb, u32 error, u8 code)
{
	struct sock_exterr_skb *report;
	struct sock *sk = skb->sk;
	struct sk_buff *clone;

	if (!sk || !sk_fullsock(sk) || !sk->sk_txtime_report_errors)
		return;
	clone = skb_clone(skb, GFP_ATOMIC);
	if (!clone)
		return;
	report = SKB_EXT_ERR(clone);
	memset(report, 0, sizeof(*report));
	report->ee.ee_errno = error;
	report->ee.ee_origin = SO_EE_ORIGIN_TXTIME;
	report->ee.ee_code = code;
	report->ee.ee_data = upper_32_bits(ktime_to_ns(skb->tstamp));
	report->ee.ee_info = lower_32_bits(ktime_to_ns(skb->tstamp));
	if (sock_queue_err_skb(sk, clone))
		kfree_skb(clone);
}

/*
 * Send the first packet from softirq. The lock of the qdisc, which is the root, is
 * dropped meanwhile, and so is q->lock.
 *
 * Return: whether to go on with the next packet.
 */
static bool send(struct shaper *q, struct sk_buff *skb, unsigned long *flags, bool *again)
	__must_hold(&q->lock) __must_hold(qdisc_lock(q->sch))
{
	struct net_device *dev = qdisc_dev(q->sch);
	bool thread = q->thread && current == q->thread;
	bool stopped, busy = false;
	struct sending sending;
	u64 expired = q->expired;
	struct sk_buff *gone;

	lockdep_assert_held(qdisc_lock(q->sch));
	q->expired = 0;
	take(q, skb, moment(q, skb), &sending, SHAPER_SOFTIRQ);
	raw_spin_unlock_irqrestore(&q->lock, *flags);
	spin_unlock(qdisc_lock(q->sch));

	HARD_TX_LOCK(dev, sending.start.txq, smp_processor_id());
	stopped = netif_xmit_frozen_or_stopped(sending.start.txq);
	if (!stopped) {
		if (shaper_tapped(dev))
			dev_queue_xmit_nit(skb, dev);
		local_irq_save(*flags);
		sending.start.irqs_on = q->irqs_on && !irqs_disabled_flags(*flags);
		start(&sending, thread ? TC_APIC_MODE_THREAD : TC_APIC_MODE_SOFT);
		local_irq_restore(*flags);
		busy = !sending.taken;
	}
	HARD_TX_UNLOCK(dev, sending.start.txq);

	spin_lock(qdisc_lock(q->sch));
	raw_spin_lock_irqsave(&q->lock, *flags);
	gone = finish(q, &sending);
	if (sending.taken) {
		if (thread)
			q->stats.sent_thread++;
		else
			q->stats.sent_soft++;
		if (sending.class && thread)
			sending.class->stats.sent_thread++;
		else if (sending.class)
			sending.class->stats.sent_soft++;
		if (expired)
			shaper_lead_learn(&q->lead_soft, sending.start.ready - expired,
					  SHAPER_LEAD_KERNEL);
	}
	if (busy) {
		q->stats.busy_driver++;
		*again = true;
	}
	if (stopped && !gone) {
		q->stats.stopped++;
		q->stopped = true;
		/* Pairs with the atomic operation by which the driver starts its queue. */
		smp_mb();
		if (!netif_xmit_frozen_or_stopped(sending.start.txq)) {
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
	struct sending sending;

	take(q, skb, moment(q, skb), &sending, SHAPER_SOFTIRQ);
	raw_spin_unlock(&q->lock);

	sending.start.ready = rdtsc();
	sending.start.left = shaper_wait(sending.start.at);

	raw_spin_lock(&q->lock);
	q->sender = SHAPER_NOBODY;
	account(q, &sending);
	count(q, &sending);
	q->stats.sent_stack++;
	if (sending.class)
		sending.class->stats.sent_stack++;
	q->handed = true;
	return skb;
}

/* Drop the first packet. It uses up nothing of the rate. */
static void drop_late(struct shaper *q, struct sk_buff *skb, unsigned long *flags)
	__must_hold(&q->lock)
{
	struct shaper_flow *flow = shaper_cb(skb)->flow;
	struct Qdisc *sch = q->sch;

	if (has_class(skb)) {
		shaper_class_of(&q->classes, skb)->stats.dropped_late++;
		shaper_class_drop(&q->classes, &q->plan, skb, qdisc_pkt_len(skb));
	} else {
		shaper_edf_erase(&q->edf, skb);
	}
	skb->dev = qdisc_dev(sch);
	if (flow)
		WRITE_ONCE(flow->queued, flow->queued - 1);
	WRITE_ONCE(q->queued, q->queued - 1);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - qdisc_pkt_len(skb));
	qdisc_qstats_drop(sch);
	qdisc_qstats_overlimit(sch);
	q->stats.dropped_late++;
	raw_spin_unlock_irqrestore(&q->lock, *flags);

	q->gone++;
	q->gone_len += qdisc_pkt_len(skb);
	shaper_report(skb, ECANCELED, SO_EE_CODE_TXTIME_MISSED);
	kfree_skb(skb);

	raw_spin_lock_irqsave(&q->lock, *flags);
}

/*
 * What dequeue may do with the first packet now.
 * @kicked:	the handler has left it to us
 * @handed:	the kernel may have a packet in its hands that it got before
 */
static bool due(const struct shaper *q, const struct sk_buff *skb, u64 now, bool kicked,
		bool handed)
{
	u64 early = q->lead_soft.cycles + shaper_path();

	/* That packet must not wait for this one; or the handler will come. */
	if ((handed && (for_stack(q, skb) || !shaper_is_root(q->sch))) ||
	    (for_interrupt(q, skb) && !kicked))
		early = 0;
	return before(handing(q, moment(q, skb)), early) <= now;
}

/**
 * shaper_dequeue() - send what is due
 * @sch:	the qdisc
 *
 * Waits for the moment of the first packet if it is near, and gives the packet to the
 * driver. Below another qdisc the locks are that one's, and it is the kernel which has
 * to send, as it has packets with IPsec offload and those that were prepared for
 * other features of the device: then the packet is returned at its moment.
 *
 * The kernel may call this function again with that packet still in its hands, to
 * send several at once. Then it gets no other but one whose moment has come.
 *
 * Context: Softirqs off, the lock of the root qdisc held.
 * Return: a packet that the kernel has to send now, or NULL.
 */
struct sk_buff *shaper_dequeue(struct Qdisc *sch)
{
	struct shaper *q = qdisc_priv(sch);
	bool kicked, handed, again = false;
	unsigned int budget = WEIGHT;
	struct sk_buff *skb, *found = NULL;
	unsigned long flags;
	u64 now;

	raw_spin_lock_irqsave(&q->lock, flags);
	kicked = q->kicked;
	handed = q->handed;
	q->kicked = false;
	q->handed = false;
	q->stopped = false;
	if (unlikely(q->far.count))
		come_near(q);
	while (q->sender == SHAPER_NOBODY) {
		skb = head(q);
		now = rdtsc();
		if (!skb)
			break;
		if (too_late(q, skb, now)) {
			drop_late(q, skb, &flags);
			continue;
		}
		if (!due(q, skb, now, kicked, handed))
			break;
		if (!shaper_is_root(sch) || for_stack(q, skb)) {
			found = hand_over(q, skb);
			break;
		}
		if (!budget--) {
			again = true;
			break;
		}
		if (!send(q, skb, &flags, &again))
			break;
		kicked = false;
	}
	shaper_arm(q);
	raw_spin_unlock_irqrestore(&q->lock, flags);
	if (again)
		__netif_schedule(sch);
	/* Not when it is empty: some parents cannot stand that in dequeue. */
	if (q->gone && sch->q.qlen) {
		qdisc_tree_reduce_backlog(sch, q->gone, q->gone_len);
		q->gone = 0;
		q->gone_len = 0;
	}
	return found;
}
