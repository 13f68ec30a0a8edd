/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_FENCE_H
#define _APIC_TIMER_FENCE_H

#include <linux/types.h>

/**
 * struct apic_timer_fence_state - a stretch of time that is kept free of kernel events
 * @from:	events of the kernel's due from this TSC on are deferred,
 * @until:	if they are due before this TSC; 0 when no fence stands
 * @max:	by this number of TSC cycles at most
 * @due:	when the present event of the kernel's was due, absolute TSC;
 *		%APIC_TIMER_NEVER if that is not deferred
 * @deferred:	absolute TSC to which an event was deferred since the kernel was
 *		last served; 0 if none was
 *
 * Nothing is deferred beyond @deferred until the kernel has been served. It may
 * program another event meanwhile, but whether that is for something new cannot
 * be seen: one that is overdue is programmed for a moment ahead.
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
