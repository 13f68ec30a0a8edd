// SPDX-License-Identifier: GPL-2.0
/*
 * Update the timers of a PTP clock when it changes. If the clock is gone, its timers are
 * cancelled and their owners notified. If it was set, or the machine was suspended, they are
 * armed anew.
 *
 * The list has all timers that are FAR or NEAR. Other timers are left alone: the core expires
 * them as they were armed.
 */
#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>

#include "approach.h"
#include "leaving.h"
#include "list.h"
#include "phc_timers.h"

static bool is_of(const struct apic_clock_timer *timer, const void *clock)
{
	return READ_ONCE(timer->clock) == *(const clockid_t *)clock;
}

static unsigned int lose(struct apic_clock_timer *timer)
	__releases(&timer->lock)
{
	bool callback, report;
	bool pending = (timer->state == APIC_CLOCK_FAR || timer->state == APIC_CLOCK_NEAR) &&
		       apic_clock_is_gone(timer->clock) &&
		       apic_clock_timer_take_out(timer, APIC_CLOCK_IDLE, &callback) == 1;

	if (pending)
		atomic64_inc(&apic_clock_stats.lost);
	/* An owner whose module is being unloaded must not arm it anew: see unload.c. */
	report = pending && !apic_clock_timer_is_leaving(timer);
	apic_clock_timer_unlock_and_report(timer, report ? -ENODEV : 0);
	return pending;
}

/**
 * apic_clock_timers_lose() - cancel the timers of a clock that is gone
 * @clock:	the clock, which has no line any more
 *
 * Timers that expire within 50 microseconds are left alone.
 *
 * Context: Task. Sleeps.
 * Return: number of cancelled timers, whose owners have been notified, unless their module is
 * being unloaded.
 */
unsigned int apic_clock_timers_lose(clockid_t clock)
{
	const struct apic_clock_wanted wanted = {
		.is = is_of,
		.of = &clock,
		.locked = true,
		.use = lose,
	};

	return apic_clock_list_each(&wanted);
}

/* As check_again() in approach.c, but from any context. */
static unsigned int renew(struct apic_clock_timer *timer)
	__releases(&timer->lock)
{
	unsigned int state = timer->state;
	int ret = 0;

	if (state == APIC_CLOCK_FAR || state == APIC_CLOCK_NEAR) {
		WRITE_ONCE(timer->state, APIC_CLOCK_MOVING);
		/* Pairs with is_pending() in timer.c: a CPU that sees it deleted sees the state. */
		smp_wmb();
		if (state == APIC_CLOCK_FAR || del_apic_timer(&timer->timer) == 1) {
			ret = apic_clock_timer_advance_late(timer);
		} else {
			timer->state = APIC_CLOCK_LAST;
			hrtimer_try_to_cancel(&timer->check);
			apic_clock_timer_settle(timer);
		}
	}
	apic_clock_timer_unlock_and_report(timer, ret);
	return 0;
}

/**
 * apic_clock_timers_renew() - arm the timers of a clock anew after it was set
 * @clock:	the clock, approached by CLOCK_MONOTONIC
 *
 * Context: Task. Sleeps.
 */
void apic_clock_timers_renew(clockid_t clock)
{
	const struct apic_clock_wanted wanted = {
		.is = is_of,
		.of = &clock,
		.locked = true,
		.use = renew,
	};

	apic_clock_list_each(&wanted);
}
