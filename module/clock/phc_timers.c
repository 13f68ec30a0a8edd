// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to the timers of a PTP clock that changes under them: when it is gone they are
 * cancelled, and their owners notified; when it was set, or the machine has slept, they are
 * armed anew.
 *
 * They are found by the list, which has those that are FAR and NEAR. Others are left alone: the
 * core expires them as they were armed.
 */
#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>

#include "approach.h"
#include "list.h"
#include "phc_timers.h"

static bool is_of(const struct apic_clock_timer *timer, const void *clock)
{
	return READ_ONCE(timer->clock) == *(const clockid_t *)clock;
}

static unsigned int lose(struct apic_clock_timer *timer)
	__releases(&timer->lock)
{
	bool callback;
	bool pending = (timer->state == APIC_CLOCK_FAR || timer->state == APIC_CLOCK_NEAR) &&
		       apic_clock_is_gone(timer->clock) &&
		       apic_clock_timer_take_out(timer, &callback) == 1;

	if (pending)
		atomic64_inc(&apic_clock_stats.lost);
	apic_clock_timer_unlock_and_report(timer, pending ? -ENODEV : 0);
	return pending;
}

/**
 * apic_clock_timers_lose() - cancel the timers of a clock that is gone
 * @clock:	the clock, which has no line any more
 *
 * Those that expire within 50 microseconds are left alone.
 *
 * Context: Task. Sleeps.
 * Return: how many were cancelled, whose owners have been notified.
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

/* As check_again() of approach.c, from anywhere. */
static unsigned int renew(struct apic_clock_timer *timer)
	__releases(&timer->lock)
{
	unsigned int state = timer->state;
	int ret = 0;

	if (state == APIC_CLOCK_FAR || state == APIC_CLOCK_NEAR) {
		WRITE_ONCE(timer->state, APIC_CLOCK_MOVING);
		/* Pairs with is_pending() of timer.c: who sees it taken out sees the state, too. */
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
 * apic_clock_timers_renew() - arm the timers of a clock anew, as it was set
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
