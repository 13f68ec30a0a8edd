// SPDX-License-Identifier: GPL-2.0
/*
 * Throttle: limit how long handlers may keep a CPU busy, and how long none runs
 * after that.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include <trace/events/apic_timer.h>

#include "lib/param.h"
#include "lib/stats.h"
#include "policy/throttle.h"
#include "tsc/tsc.h"

APIC_TIMER_PARAM(busy_us, 500, 10, 100000, "us",
		 "maximum time that handlers may keep a CPU busy before they are throttled");

/* Maximum time that handlers are throttled */
#define THROTTLED_MAX_NS	(100 * NSEC_PER_MSEC)

u64 apic_timer_throttle_busy_max;
static u64 throttled_max; /* TSC cycles */

/*
 * Pay for what handlers were not throttled. Between the last throttle and this burst other
 * bursts may have been forgiven. After each, the rest of the system had an eighth of its
 * length, so a ninth of all that time is certain.
 */
static void pay(const struct apic_timer_throttle *throttle,
		struct apic_timer_throttle_debt *debt)
{
	u64 others = 0;

	if (throttle->start > debt->until)
		others = div_u64(throttle->start - debt->until, APIC_TIMER_THROTTLE_RECOVERY + 1);
	debt->owed -= min(debt->owed, others);
	if (!debt->owed)
		debt->max = apic_timer_throttle_busy_max;
}

/**
 * apic_timer_throttle_until() - throttle handlers that have run for too long
 * @throttle:	of this CPU
 * @debt:	of this CPU
 * @now:	TSC
 *
 * An SMI, or a hypervisor that runs something else, also takes the time of a handler. It
 * does not come back at once, and no handler is to blame for it, so the first throttle is
 * short. The rest is owed. If the rest of the system does not get that before handlers are
 * throttled again, the next throttle may last twice as long, until throttles last as long
 * as handlers take.
 *
 * Return: TSC before which no handler must run.
 */
u64 apic_timer_throttle_until(const struct apic_timer_throttle *throttle,
			      struct apic_timer_throttle_debt *debt, u64 now)
{
	u64 busy = now - throttle->start;
	u64 wanted = min(busy, throttled_max), length;

	pay(throttle, debt);
	length = min(wanted, debt->max);
	debt->owed += wanted - length;
	debt->max = min(2 * debt->max, throttled_max);
	debt->until = now + length;

	apic_timer_stats_inc(THROTTLED);
	trace_apic_timer_throttle(busy, debt->until);
	return debt->until;
}

/**
 * apic_timer_throttle_init() - read the module parameter
 */
void apic_timer_throttle_init(void)
{
	apic_timer_throttle_busy_max = apic_timer_us_to_tsc(busy_us);
	throttled_max = apic_timer_ns_to_tsc(THROTTLED_MAX_NS);
}
