/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_FENCE_H
#define _APIC_TIMER_FENCE_H

#include <linux/types.h>

/**
 * struct apic_timer_fence_state - a period of time that is kept free of kernel events
 * @from:	kernel events due from this TSC on are deferred,
 * @until:	if they are due before this TSC; 0 when no fence stands
 * @max:	by at most this number of TSC cycles
 * @due:	when the present kernel event was due, absolute TSC;
 *		%APIC_TIMER_NEVER if it is not deferred
 * @deferred:	absolute TSC to which an event was deferred since the kernel was
 *		last served; 0 for none
 *
 * Until the kernel has been served, nothing is deferred beyond @deferred. The
 * kernel may program another event meanwhile, but it is unknown whether that is
 * a new event: the kernel programs an overdue event for a moment ahead.
 */
struct apic_timer_fence_state {
	u64 from;
	u64 until;
	u64 max;
	u64 due;
	u64 deferred;
};

void apic_timer_fence_add(struct apic_timer_fence_state *fence, u64 until, u64 max, u64 now);
void apic_timer_fence_reset(struct apic_timer_fence_state *fence);
u64 apic_timer_fence_defer(struct apic_timer_fence_state *fence, u64 tsc, u64 now);

#endif /* _APIC_TIMER_FENCE_H */
