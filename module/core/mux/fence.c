// SPDX-License-Identifier: GPL-2.0
/*
 * Fences: defer kernel events that are due shortly before a moment which a user
 * of the timers wants for itself.
 *
 * A CPU has one fence. Fences that have not ended when another one is added count
 * as one, from the beginning of the first to the end of the last, so an event
 * between two of them is deferred, too; still, none is deferred by more than the
 * limit.
 */
#include <linux/minmax.h>

#include "mux/fence.h"
#include "tsc/tsc.h"

/**
 * apic_timer_fence_add() - keep kernel events away until a moment
 * @fence:	of this CPU
 * @until:	the moment, absolute TSC, later than @now
 * @max:	TSC cycles by which an event may be deferred, not 0
 * @now:	the present TSC
 */
void apic_timer_fence_add(struct apic_timer_fence_state *fence, u64 until, u64 max, u64 now)
{
	u64 from = until - min(until, max);

	if (now < fence->until) {
		from = min(from, fence->from);
		until = max(until, fence->until);
	}
	fence->from = from;
	fence->until = until;
	fence->max = max;
}

/**
 * apic_timer_fence_reset() - remove the fence, and forget deferred events
 * @fence:	of this CPU
 */
void apic_timer_fence_reset(struct apic_timer_fence_state *fence)
{
	*fence = (struct apic_timer_fence_state) { .due = APIC_TIMER_NEVER };
}

/**
 * apic_timer_fence_defer() - compute when a kernel event is served
 * @fence:	of this CPU
 * @tsc:	when the event is due, absolute TSC; %APIC_TIMER_NEVER for none
 * @now:	the present TSC
 *
 * The event replaces the previous one.
 *
 * Return: absolute TSC, @tsc unless the event is deferred.
 */
u64 apic_timer_fence_defer(struct apic_timer_fence_state *fence, u64 tsc, u64 now)
{
	u64 limit;

	/* The event is deferred already. */
	if (fence->due != APIC_TIMER_NEVER && tsc >= fence->due && tsc < fence->deferred)
		return fence->deferred;

	fence->due = APIC_TIMER_NEVER;
	if (tsc == APIC_TIMER_NEVER) {
		fence->deferred = 0;
		return tsc;
	}
	if (now >= fence->until || tsc < fence->from || tsc >= fence->until)
		return tsc;
	/* An earlier one, which was due later, may have been deferred further. */
	limit = min(apic_timer_add_tsc(tsc, fence->max), fence->until);
	fence->deferred = min(fence->deferred ?: limit, limit);
	if (tsc >= fence->deferred)
		return tsc;
	fence->due = tsc;
	return fence->deferred;
}
