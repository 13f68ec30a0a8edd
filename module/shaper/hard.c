// SPDX-License-Identifier: GPL-2.0
/*
 * Send from hard interrupt: the handler of the timer.
 */
#include <linux/netdevice.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <asm/irq_regs.h>

#include "arm.h"
#include "compat.h"
#include "hard.h"
#include "send.h"
#include "txq.h"

/* Duration of a pause in which interrupts leave a CPU that they have kept busy to other code. */
#define BREAK_US	40

/* State of the CPU that this interrupt found. */
static enum shaper_lead_found interrupted(void)
{
	struct pt_regs *regs = get_irq_regs();

	if (is_idle_task(current))
		return SHAPER_LEAD_IDLE;
	return regs && user_mode(regs) ? SHAPER_LEAD_USER : SHAPER_LEAD_KERNEL;
}

/*
 * Leave the first packet to softirq. While its queue is stopped, the kernel may not call dequeue,
 * and nothing else would notice that the wake-up was lost.
 */
static void leave(struct shaper *q, const struct netdev_queue *txq)
	__must_hold(&q->lock)
{
	q->kicked = true;
	if (unlikely(shaper_txq_stopped(txq)))
		shaper_look_again(q);
	shaper_kick(q);
}

/**
 * shaper_handler() - send the first packet, or leave it to softirq: the timer has expired
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
	struct shaper_sending sending __uninitialized;
	struct sk_buff *skb;
	unsigned int busy;
	bool by_interrupt;
	u64 at, since;

	raw_spin_lock(&q->lock);
	since = q->since;
	q->asked = 0;
	q->stopped = false;
	/* The timer migrates when that CPU goes offline. The next arming returns it to the CPU. */
	if (q->config.cpu != TC_APIC_CPU_ANY)
		q->placed = smp_processor_id() == q->config.cpu;
	skb = shaper_first(q);
	if (unlikely((!skb && !q->far.count) || q->dead || q->sender != SHAPER_NOBODY))
		goto out;
	if (unlikely(test_bit(__QDISC_STATE_DEACTIVATED, &q->sch->state))) {
		/* A reset follows, or the device is activated again. */
		shaper_arm_at(q, apic_timer_add_tsc(now, apic_timer_us_to_tsc(1000)));
		goto out;
	}
	if (unlikely(!skb))
		goto arm;
	at = shaper_moment(q, skb);
	by_interrupt = shaper_for_interrupt(q, skb);
	busy = apic_timer_busy();
	/* The timer was armed for far packets, or for a packet that is gone. */
	if (shaper_before(shaper_handing(q, at), 2 * shaper_lead_when(q, by_interrupt, busy)) > now)
		goto arm;
	txq = skb_get_tx_queue(dev, skb);
	if (!by_interrupt || unlikely(shaper_too_late(q, skb, now))) {
		q->expired = since;
		leave(q, txq);
		goto out;
	}
	/*
	 * Pause before the core throttles all handlers, which would make packets later than this
	 * does. Softirq sends meanwhile, unless it waits for its thread.
	 */
	if (unlikely(busy > 1)) {
		q->stats.busy_cpu++;
		q->kicked = true;
		shaper_kick(q);
		shaper_arm_at(q, apic_timer_add_tsc(now, apic_timer_us_to_tsc(BREAK_US)));
		goto out;
	}

	if (unlikely(!shaper_txq_trylock(txq))) {
		q->stats.busy_lock++;
		leave(q, txq);
		goto out;
	}
	if (unlikely(shaper_txq_stopped(txq))) {
		__netif_tx_unlock(txq);
		q->stats.stopped++;
		q->stopped = true;
		goto arm;
	}
	shaper_take(q, skb, txq, at, &sending, SHAPER_INTERRUPT);
	raw_spin_unlock(&q->lock);

	shaper_give(&sending, TC_APIC_MODE_HARD);

	__netif_tx_unlock(txq);
	raw_spin_lock(&q->lock);
	shaper_finish(q, &sending);
	if (likely(sending.taken)) {
		shaper_learn(&q->lead_hard, &sending, since, interrupted());
		shaper_arm_next(q, busy);
	} else {
		q->stats.busy_driver++;
		leave(q, txq);
	}
	goto out;
arm:
	shaper_arm(q);
out:
	raw_spin_unlock(&q->lock);
}
