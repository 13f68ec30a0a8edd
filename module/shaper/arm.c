// SPDX-License-Identifier: GPL-2.0
/*
 * Let packets into the queue, and arm the timer for the first one.
 */
#include <linux/apic_timer.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/timekeeping.h>
#include <net/pkt_sched.h>
#include <asm/msr.h>

#include "arm.h"
#include "shift.h"

/* Time until a queue that the device has stopped is checked, unless it is woken before. */
#define STOPPED_US	10000

/**
 * shaper_arm_at() - arm the timer
 * @q:		the qdisc
 * @expires:	absolute TSC
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_arm_at(struct shaper *q, u64 expires)
{
	u64 now = rdtsc();
	int err = -EBUSY;

	q->asked = expires;
	/* The timer cannot expire before now. */
	q->since = max(expires, now);
	/* mod_apic_timer() would leave it where it was. */
	if (!q->placed && !apic_timer_pending(&q->timer)) {
		q->timer.expires = expires;
		if (q->config.cpu == TC_APIC_CPU_ANY)
			err = add_apic_timer(&q->timer);
		else
			err = add_apic_timer_on(&q->timer, q->config.cpu);
		/* That CPU may be offline: use any CPU until it is back online. */
		q->placed = !err;
	}
	if (err)
		err = mod_apic_timer(&q->timer, expires);
	if (likely(err >= 0))
		return;

	/* For example, this CPU is going offline. Softirq then serves, and arms again. */
	q->stats.no_timer++;
	qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns() +
				   apic_timer_tsc_to_ns(expires > now ? expires - now : 0));
}

/**
 * shaper_join() - put a packet into the queue
 * @q:		the qdisc
 * @skb:	the packet, which wants to leave now or soon, and is accounted for already
 *
 * Context: Interrupts off, @q->lock held.
 * Return: whether the packet is the first of the queue, or of its class.
 */
bool shaper_join(struct shaper *q, struct sk_buff *skb)
{
	if (unlikely(shaper_has_class(skb)))
		return shaper_class_insert(&q->classes, &q->plan, skb);
	return shaper_edf_insert(&q->edf, skb);
}

/*
 * Maximum number of packets that one call lets into the queue. If the clocksource is not the TSC,
 * it is read twice for each packet, which takes microseconds with an HPET.
 */
#define JOIN		2

static inline void come_near(struct shaper *q)
	__must_hold(&q->lock)
{
	u64 now = rdtsc();
	unsigned int budget = JOIN;
	struct sk_buff *skb;

	while (budget-- && shaper_far_due(&q->far, now)) {
		skb = shaper_far_pop(&q->far, now, q->near, q->handing);
		if (!skb)
			return;
		shaper_join(q, skb);
	}
}

/**
 * shaper_come_near() - let packets that have come near into the queue
 * @q:		the qdisc
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_come_near(struct shaper *q)
{
	come_near(q);
}

/* Moment at which to begin with a packet. */
static __always_inline u64 preparation(const struct shaper *q, const struct sk_buff *skb, bool next,
				       unsigned int busy)
{
	u64 at = shaper_handing(q, shaper_moment(q, skb));

	if (next && likely(shaper_is_plain(q, skb)))
		return shaper_before(at, shaper_lead_when(q, true, busy));
	return shaper_before(at, shaper_lead_for(q, shaper_for_interrupt(q, skb)));
}

/**
 * shaper_look_again() - arm the timer for when the device's queue is stopped
 * @q:		the qdisc
 *
 * A wake-up of the device's queue raises softirq at once. This timer is for a lost wake-up.
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_look_again(struct shaper *q)
{
	u64 expires = apic_timer_add_tsc(rdtsc(), apic_timer_us_to_tsc(STOPPED_US));

	if (expires < q->asked || !apic_timer_pending(&q->timer))
		shaper_arm_at(q, expires);
}

static __always_inline void arm(struct shaper *q, bool next, unsigned int busy)
	__must_hold(&q->lock)
{
	u64 expires = U64_MAX;
	struct sk_buff *skb;

	lockdep_assert_held(&q->lock);
	if (q->dead || q->sender != SHAPER_NOBODY)
		return;
	if (unlikely(q->stopped)) {
		shaper_look_again(q);
		return;
	}
	if (unlikely(q->far.count)) {
		come_near(q);
		expires = shaper_far_look(&q->far);
	}
	skb = shaper_first(q);
	if (skb)
		expires = min(expires, preparation(q, skb, next, busy));
	else if (!q->far.count)
		return;
	if (expires != q->asked || !apic_timer_pending(&q->timer))
		shaper_arm_at(q, expires);
}

/**
 * shaper_arm() - arm the timer for the first packet
 * @q:		the qdisc
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_arm(struct shaper *q)
{
	arm(q, false, 0);
}

/**
 * shaper_arm_next() - arm the timer for the first packet, after the handler has sent one
 * @q:		the qdisc
 * @busy:	earlier result of apic_timer_busy()
 *
 * The conditions under which the handler may send (for example, no taps) have hardly changed, and
 * are not checked again here. If they have changed, the handler leaves the packet to softirq.
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_arm_next(struct shaper *q, unsigned int busy)
{
	arm(q, true, busy);
}
