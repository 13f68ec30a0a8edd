// SPDX-License-Identifier: GPL-2.0
/*
 * Convert moments of the clocks that the device supports to TSC values.
 */
#include <linux/apic_struct.h>
#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/time.h>
#include <linux/time64.h>

#include "clock.h"
#include "moment.h"
#include "page.h"

/* NTP may steer a clock: convert a moment again at least this long before it. */
#define LEG_LAST_NS	NSEC_PER_MSEC
/* Longest time between conversions: someone may set CLOCK_TAI. */
#define LEG_MAX_NS	NSEC_PER_SEC

/**
 * device_moment_clock() - check whether a clock is supported
 * @clock:	APIC_TIMER_CLOCK_* from a user
 *
 * Context: Any.
 * Return: true if the device supports the clock.
 */
bool device_moment_clock(u32 clock)
{
	return clock <= APIC_TIMER_CLOCK_TAI;
}

/**
 * device_moment_of_caller() - take a moment from a user
 * @clock:	its clock
 * @expires:	the moment, in the caller's time namespace
 *
 * Context: Task.
 * Return: the moment as all other functions expect it.
 */
u64 device_moment_of_caller(u32 clock, u64 expires)
{
	return clock == APIC_TIMER_CLOCK_MONOTONIC ? apic_struct_mono(expires) : expires;
}

/**
 * device_moment_tsc() - convert a moment to a TSC value
 * @clock:	its clock
 * @expires:	the moment
 *
 * Context: Any but NMI.
 * Return: the first TSC value at which the clock shows the moment, or a later one. For a
 * moment far ahead it may be an earlier one, see device_moment_leg(). Where the kernel's
 * clocks do not run on the TSC, the result is later by the conversion's possible error.
 */
u64 device_moment_tsc(u32 clock, u64 expires)
{
	struct apic_timer_page page;
	u64 tsc, error;

	if (clock == APIC_TIMER_CLOCK_TSC)
		return expires;
	device_page_read(&page);
	if (clock == APIC_TIMER_CLOCK_TAI)
		expires -= min(expires, page.tai);
	if (page.flags & APIC_TIMER_TSC_IS_CLOCK)
		return device_clock_tsc(&page, expires);
	tsc = apic_timer_clock_to_tsc(CLOCK_MONOTONIC, min_t(u64, expires, KTIME_MAX), &error);
	return apic_timer_add_tsc(tsc, error);
}

/**
 * device_moment_now() - read a clock
 * @clock:	the clock
 * @tsc:	TSC, just read
 *
 * Context: Any but NMI.
 * Return: the clock's time at @tsc, or now.
 */
u64 device_moment_now(u32 clock, u64 tsc)
{
	struct apic_timer_page page;
	ktime_t earliest, mono;

	if (clock == APIC_TIMER_CLOCK_TSC)
		return tsc;
	device_page_read(&page);
	/* Not ktime_get(): with an HPET it may return a time before @tsc. */
	if (page.flags & APIC_TIMER_TSC_IS_CLOCK)
		mono = device_clock_mono(&page, tsc);
	else
		apic_timer_clock_now(CLOCK_MONOTONIC, &earliest, &mono);
	return clock == APIC_TIMER_CLOCK_TAI ? mono + page.tai : mono;
}

/**
 * device_moment_tick_between() - check whether a kernel tick is due between two TSC values
 * @from:	start, exclusive
 * @to:		end, inclusive
 *
 * The kernel's ticks are due at multiples of their period on CLOCK_MONOTONIC. The offset that
 * skew_tick= adds on each CPU does not change when the kernel updates its clocks.
 *
 * Context: Any but NMI.
 * Return: true if a tick is due; false also where TSC values can't be converted.
 */
bool device_moment_tick_between(u64 from, u64 to)
{
	struct apic_timer_page page;

	device_page_read(&page);
	if (!(page.flags & APIC_TIMER_TSC_IS_CLOCK))
		return false;
	return div_u64(device_clock_mono(&page, from), TICK_NSEC) !=
	       div_u64(device_clock_mono(&page, to), TICK_NSEC);
}

/**
 * device_moment_leg() - choose the TSC value to arm a timer for next
 * @clock:	the clock that @tsc was converted from
 * @tsc:	the final TSC value
 * @now:	the present TSC
 *
 * Context: Any but NMI.
 * Return: @tsc, or an earlier TSC value at which the caller must convert the moment again.
 */
u64 device_moment_leg(u32 clock, u64 tsc, u64 now)
{
	u64 distance;

	if (clock == APIC_TIMER_CLOCK_TSC || tsc <= now)
		return tsc;
	distance = tsc - now;
	if (distance <= apic_timer_ns_to_tsc(LEG_LAST_NS))
		return tsc;
	return now + min(distance - distance / 16,
			 apic_timer_ns_to_tsc(LEG_MAX_NS));
}

/**
 * device_moment_arm() - arm a timer on this CPU, or on another if this one accepts none
 * @timer:	the timer, not pending
 *
 * A CPU that is going offline stops accepting timers while threads and handlers still
 * run there.
 *
 * Context: Any but NMI.
 * Return: as add_apic_timer().
 */
int device_moment_arm(struct apic_timer_list *timer)
{
	int ret = add_apic_timer(timer), cpu;

	if (likely(ret != -ENODEV))
		return ret;
	for_each_online_cpu(cpu) {
		ret = add_apic_timer_on(timer, cpu);
		if (ret != -ENODEV)
			break;
	}
	return ret;
}
