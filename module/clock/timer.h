/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_TIMER_H
#define _APIC_CLOCK_TIMER_H

#include <linux/atomic.h>
#include <linux/types.h>

/**
 * struct apic_clock_stats - what has happened to timers of clocks
 * @approached:	moments that came near, so that the CPU's timer was armed for them
 * @checked:	moments that were converted again shortly before
 * @moved:	those of @checked whose TSC value was another
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

unsigned int apic_clock_timers_lose(clockid_t clock);
void apic_clock_timers_renew(clockid_t clock);

#endif /* _APIC_CLOCK_TIMER_H */
