// SPDX-License-Identifier: GPL-2.0
/*
 * Throttle: limit how long handlers may keep a CPU busy, and how long none runs
 * after that.
 */
#include <linux/time64.h>

#include <trace/events/apic_timer.h>

#include "lib/param.h"
#include "lib/stats.h"
#include "policy/throttle.h"
#include "tsc/tsc.h"

APIC_TIMER_PARAM(busy_us, 500, 10, 100000, "us",
		 "maximum time that handlers may keep a CPU busy before they are throttled for as long as they ran");

/* Maximum time that handlers are throttled */
#define THROTTLED_MAX_NS	(100 * NSEC_PER_MSEC)

u64 apic_timer_throttle_busy_max;
static u64 throttled_max; /* TSC cycles */

/**
 * apic_timer_throttle_until() - throttle handlers that have run for too long
 * @throttle:	of this CPU
 * @now:	TSC
 *
 * Return: TSC before which no handler must run.
 */
u64 apic_timer_throttle_until(const struct apic_timer_throttle *throttle, u64 now)
{
	u64 busy = now - throttle->start;
	u64 until = now + min(busy, throttled_max);

	apic_timer_stats_inc(THROTTLED);
	trace_apic_timer_throttle(busy, until);
	return until;
}

/**
 * apic_timer_throttle_init() - read the module parameter
 */
void apic_timer_throttle_init(void)
{
	apic_timer_throttle_busy_max = apic_timer_us_to_tsc(busy_us);
	throttled_max = apic_timer_ns_to_tsc(THROTTLED_MAX_NS);
}
