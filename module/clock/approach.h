/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_APPROACH_H
#define _APIC_CLOCK_APPROACH_H

#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/types.h>

/**
 * enum apic_clock_state - the states of a timer, in comments without their prefix
 * @APIC_CLOCK_IDLE:	neither FAR nor NEAR; its last check may be over
 * @APIC_CLOCK_FAR:	its approach is pending, or its check if CLOCK_MONOTONIC approaches it
 * @APIC_CLOCK_NEAR:	the CPU's timer is armed, and its check is pending
 * @APIC_CLOCK_MOVING:	the CPU's timer is being armed, or deleted to be armed anew unless it
 *			expires first
 * @APIC_CLOCK_LAST:	the CPU's timer was armed, and nothing else will happen
 *
 * See approach.c for the transitions. The values are unlikely to occur by chance, so that a
 * timer that was never initialised is recognised.
 */
enum apic_clock_state {
	APIC_CLOCK_IDLE = 0x41430001,
	APIC_CLOCK_FAR,
	APIC_CLOCK_NEAR,
	APIC_CLOCK_MOVING,
	APIC_CLOCK_LAST,
};

/**
 * struct apic_clock_stats - counters of the timers of clocks
 * @approached:	moments for which the CPU's timer was armed
 * @checked:	moments that were converted again shortly before
 * @moved:	those of @checked whose TSC value had changed
 * @stepped:	those of @checked that a step of the clock has moved far away
 * @lost:	timers that no CPU would accept, or whose clock is gone
 */
struct apic_clock_stats {
	atomic64_t approached;
	atomic64_t checked;
	atomic64_t moved;
	atomic64_t stepped;
	atomic64_t lost;
};

extern struct apic_clock_stats apic_clock_stats;

void apic_clock_timer_setup(struct apic_clock_timer *timer);
int apic_clock_timer_set_clock(struct apic_clock_timer *timer, clockid_t clock)
	__must_hold(&timer->lock);
int apic_clock_timer_advance(struct apic_clock_timer *timer)
	__must_hold(&timer->lock);
int apic_clock_timer_advance_late(struct apic_clock_timer *timer)
	__must_hold(&timer->lock);
int apic_clock_timer_take_out(struct apic_clock_timer *timer, unsigned int to, bool *callback)
	__must_hold(&timer->lock);
void apic_clock_timer_settle(struct apic_clock_timer *timer);
void apic_clock_timer_unlock_and_report(struct apic_clock_timer *timer, int ret)
	__releases(&timer->lock);
bool apic_clock_timer_is_reported(const struct apic_clock_timer *timer);
bool apic_clock_is_gone(clockid_t clock);

#endif /* _APIC_CLOCK_APPROACH_H */
