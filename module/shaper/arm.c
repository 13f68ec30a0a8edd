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
 * shaper_come_near() - let packets that have come near into the queue
 * @q:		the qdisc
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_come_near(struct shaper *q)
{
	shaper_let_in(q);
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

/**
 * shaper_arm() - arm the timer for the first packet
 * @q:		the qdisc
 *
 * Context: Interrupts off, @q->lock held.
 */
void shaper_arm(struct shaper *q)
{
	shaper_arm_when(q, false, 0);
}
