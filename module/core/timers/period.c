// SPDX-License-Identifier: GPL-2.0
/*
 * Periodic timers: the next moment of start + n * period that is still ahead.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "lib/refuse.h"
#include "timers/period.h"
#include "timers/state.h"
#include "tsc/tsc.h"

/*
 * Check whether the expiry of a timer can be advanced by @period. The queue is sorted
 * by the expiry of pending timers, which only mod_apic_timer() may change.
 */
static bool check(const struct apic_timer_list *timer, u64 period,
		  const void *caller)
{
	if (unlikely(!timer))
		return apic_timer_refuse(false, caller, "no timer to forward");
	if (unlikely(!period))
		return apic_timer_refuse(false, caller,
					 "timer of %ps forwarded by a period of 0",
					 timer->function);
	if (unlikely(READ_ONCE(timer->state) == APIC_TIMER_PENDING))
		return apic_timer_refuse(false, caller,
					 "timer of %ps forwarded while it is pending",
					 timer->function);
	return true;
}

/**
 * apic_timer_forward() - advance a timer's expiry by whole periods
 * @timer:	timer, not pending; @timer->expires is its present moment
 * @now:	TSC that the new expiry has to exceed, cycles
 * @period:	TSC cycles, not 0
 *
 * This is for a handler that arms its own timer again. After an overrun, moments that
 * have passed are skipped, and the handler is called once for all of them. If the
 * period is not a whole number of cycles, use apic_timer_forward_period().
 *
 * In mode mean, a handler may start before @timer->expires. If it passes its own @now,
 * that moment is still ahead, and the handler runs for it again. Pass max(now,
 * timer->expires) instead.
 *
 * Context: Any.
 * Return: number of periods by which the expiry was advanced: 0 if it is still ahead,
 * 1 if the call is in time, more after an overrun. @expires saturates at the largest
 * value, which is never reached. Also 0 if the call is refused: no timer, a pending
 * one, or a period of 0.
 */
u64 apic_timer_forward(struct apic_timer_list *timer, u64 now, u64 period)
{
	u64 n, distance;

	if (!check(timer, period, APIC_TIMER_CALLER) || timer->expires > now)
		return 0;

	n = div64_u64(now - timer->expires, period) + 1;
	if (check_mul_overflow(n, period, &distance))
		distance = U64_MAX;
	timer->expires = apic_timer_add_tsc(timer->expires, distance);
	return n;
}
EXPORT_SYMBOL_GPL(apic_timer_forward);

/**
 * apic_timer_period_moment() - moment n of a periodic timer
 * @period:	start and period
 * @n:		number of the moment
 * @khz:	TSC frequency, kHz
 *
 * If the TSC restarted in a sleep and the start was moved with it, the start may lie
 * before the TSC's zero, stored as 2^64 less the distance. Moments after the zero are
 * computed as usual. No TSC counts up to 2^63, which takes 97 years at 3 GHz.
 *
 * Return: absolute TSC, cycles, saturated: 0 for a moment before the TSC's zero.
 */
u64 apic_timer_period_moment(const struct apic_timer_period *period, u64 n,
			     u32 khz)
{
	u64 ns;

	if (period->start == APIC_TIMER_NEVER ||
	    check_mul_overflow(n, period->period_ns, &ns))
		return APIC_TIMER_NEVER;
	return apic_timer_tsc_shift(apic_timer_tsc_from_ns(ns, khz), period->start);
}

/**
 * apic_timer_forward_period() - advance a timer to the next moment of a period
 * @timer:	timer, not pending; @timer->expires is set
 * @period:	start, period in ns, and number of the present moment, which is
 *		advanced
 * @now:	TSC that the new expiry has to exceed, cycles
 *
 * Same as apic_timer_forward(), for periods in nanoseconds: moment n is always
 * computed from the start, so that errors from rounding to cycles do not accumulate.
 * In mode mean, pass max(now, timer->expires) as @now here as well.
 *
 * Context: Any.
 * Return: number of periods by which @period->n was advanced; 0 if the present moment
 * is still ahead. Also 0 if the call is refused: no timer, a pending one, no period, or
 * one of 0 ns.
 */
u64 apic_timer_forward_period(struct apic_timer_list *timer,
			      struct apic_timer_period *period, u64 now)
{
	u32 khz = apic_timer_tsc_khz();
	u64 n, moment;

	if (unlikely(!period))
		return apic_timer_refuse(0, APIC_TIMER_CALLER,
					 "no period to forward a timer by");
	if (!check(timer, period->period_ns, APIC_TIMER_CALLER))
		return 0;

	n = period->n;
	moment = apic_timer_period_moment(period, n, khz);
	if (moment <= now) {
		n = div64_u64(apic_timer_tsc_to_ns_at(now - period->start, khz),
			      period->period_ns);
		n = max(n, period->n);
		/*
		 * Because of rounding down twice, n may still be short by the periods of
		 * one cycle.
		 */
		do {
			moment = apic_timer_period_moment(period, ++n, khz);
		} while (moment <= now && moment != U64_MAX);
	}

	timer->expires = moment;
	swap(n, period->n);
	return period->n - n;
}
EXPORT_SYMBOL_GPL(apic_timer_forward_period);
