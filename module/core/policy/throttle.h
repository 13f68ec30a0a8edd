/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_THROTTLE_H
#define _APIC_TIMER_THROTTLE_H

#include <linux/minmax.h>
#include <linux/types.h>

/* A stretch is made up for by this part of it outside our interrupt. */
#define APIC_TIMER_THROTTLE_RECOVERY	8
/* Past this part of the longest stretch no expiry is waited for needlessly, */
#define APIC_TIMER_THROTTLE_LONG	4
/* and past this one none where others have something of the time. */
#define APIC_TIMER_THROTTLE_VERY_LONG	2

/**
 * struct apic_timer_throttle - how long handlers have had a CPU for themselves
 * @start:	TSC at which the present stretch of handlers began, if it had
 *		been one
 * @level:	that stretch is 1: getting long, 2: very long
 * @end:	TSC at which the last interrupt with handlers ended
 *
 * Interrupts in quick succession are one stretch: what counts is what the rest
 * of the machine has had between them. Touched by its own CPU only, interrupts
 * off.
 */
struct apic_timer_throttle {
	u64 start;
	unsigned int level;
	u64 end;
};

/* Handlers run no longer than this at a stretch, TSC cycles. */
extern u64 apic_timer_throttle_busy_max;

/**
 * apic_timer_throttle_reset() - all that was is made up for
 * @throttle:	of this CPU
 * @now:	TSC
 */
static inline void apic_timer_throttle_reset(struct apic_timer_throttle *throttle,
					     u64 now)
{
	throttle->start = now;
	throttle->level = 0;
	throttle->end = now;
}

/**
 * apic_timer_throttle_begin() - handlers run again
 * @throttle:	of this CPU
 * @entry:	TSC at the beginning of the interrupt
 * @programmed_for:	TSC that its hardware was armed for, 0 if for none
 * @latency:	of an interrupt like this one on average, TSC cycles
 *
 * The present stretch is what handlers have taken, less what the rest of the
 * machine has had since, several times over. It takes about the latency to
 * leave one interrupt, and then to enter the other: others get nothing where
 * the hardware fires before we have left. Needs apic_timer_throttle_end() at the
 * end of the interrupt.
 */
static inline void apic_timer_throttle_begin(struct apic_timer_throttle *throttle,
					     u64 entry, u64 programmed_for, u64 latency)
{
	u64 busy = throttle->end - throttle->start;
	u64 since = entry - throttle->end, enter = latency, others;

	if (programmed_for && entry >= programmed_for)
		enter = min(enter, entry - programmed_for);
	others = since - min(since, latency + enter);

	throttle->start = entry;
	if (others < busy / APIC_TIMER_THROTTLE_RECOVERY)
		throttle->start -= busy - others * APIC_TIMER_THROTTLE_RECOVERY;
}

/**
 * apic_timer_throttle_measure() - how long has all else waited?
 * @throttle:	of this CPU
 * @now:	TSC
 */
static inline void apic_timer_throttle_measure(struct apic_timer_throttle *throttle,
					       u64 now)
{
	u64 busy = now - throttle->start;

	throttle->level =
		(busy > apic_timer_throttle_busy_max / APIC_TIMER_THROTTLE_LONG) +
		(busy > apic_timer_throttle_busy_max / APIC_TIMER_THROTTLE_VERY_LONG);
}

/**
 * apic_timer_throttle_end() - the interrupt ends, in which handlers have run
 * @throttle:	of this CPU
 * @now:	TSC
 */
static inline void apic_timer_throttle_end(struct apic_timer_throttle *throttle,
					   u64 now)
{
	throttle->end = now;
}

/**
 * apic_timer_throttle_level_at() - how long will all else have waited?
 * @throttle:	of this CPU, not within an interrupt of ours
 * @tsc:	when, after the end of the last
 *
 * Return: the strain of the stretch, 0 if it is made up for by then.
 */
static inline unsigned int
apic_timer_throttle_level_at(const struct apic_timer_throttle *throttle, u64 tsc)
{
	s64 since = tsc - throttle->end;
	s64 share = apic_timer_throttle_busy_max / APIC_TIMER_THROTTLE_RECOVERY;

	return since > share ? 0 : throttle->level;
}

u64 apic_timer_throttle_until(const struct apic_timer_throttle *throttle, u64 now);
void apic_timer_throttle_init(void);

#endif /* _APIC_TIMER_THROTTLE_H */
