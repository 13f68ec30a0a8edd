/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_THROTTLE_H
#define _APIC_TIMER_THROTTLE_H

#include <linux/minmax.h>
#include <linux/types.h>

/* A burst of handlers is forgiven after 1/8 of its length outside the interrupt. */
#define APIC_TIMER_THROTTLE_RECOVERY	8
/*
 * From 1/4 of busy_us on (level 1), expiries do not spin if that is avoidable. From 1/2
 * on (level 2), they never spin when the rest of the system could use the time.
 */
#define APIC_TIMER_THROTTLE_LONG	4
#define APIC_TIMER_THROTTLE_VERY_LONG	2

/**
 * struct apic_timer_throttle - for how long handlers have kept a CPU busy
 * @start:	TSC at which the present burst would have begun if it had no
 *		gaps
 * @level:	0; 1: it is long; 2: it is very long
 * @end:	TSC at which the last interrupt with handlers ended
 *
 * Interrupts in quick succession form one burst, depending on the time that the rest
 * of the system gets in between. Accessed by its own CPU only, interrupts off.
 */
struct apic_timer_throttle {
	u64 start;
	unsigned int level;
	u64 end;
};

/**
 * struct apic_timer_throttle_debt - time that handlers have taken, and were not throttled for
 * @until:	TSC at which the last throttle ends
 * @owed:	TSC cycles: sum of these times, less what the rest of the system has had
 *		between throttles since
 * @max:	longest next throttle while some are owed, TSC cycles
 *
 * Accessed by its own CPU only, interrupts off.
 */
struct apic_timer_throttle_debt {
	u64 until;
	u64 owed;
	u64 max;
};

/* busy_us in TSC cycles */
extern u64 apic_timer_throttle_busy_max;

/**
 * apic_timer_throttle_reset() - forget the last burst
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
 * apic_timer_throttle_begin() - begin to run handlers, in an interrupt
 * @throttle:	of this CPU
 * @entry:	TSC at the beginning of the interrupt
 * @programmed_for: TSC that the hardware was programmed for, 0 if for no expiry
 * @latency:	average latency of an interrupt like this one, TSC cycles
 *
 * The burst continues, less a multiple of the time that the rest of the system has
 * had since the last interrupt. Leaving that interrupt and entering this one took
 * about one latency each: if the hardware fired before the last interrupt was left,
 * the rest of the system had no time. apic_timer_throttle_end() has to be called at
 * the end.
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
 * apic_timer_throttle_measure() - update the level
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
 * apic_timer_throttle_end() - end an interrupt in which handlers have run
 * @throttle:	of this CPU
 * @now:	TSC
 */
static inline void apic_timer_throttle_end(struct apic_timer_throttle *throttle,
					   u64 now)
{
	throttle->end = now;
}

/**
 * apic_timer_throttle_level_at() - get the level at a later time
 * @throttle:	of this CPU, not in its interrupt
 * @tsc:	TSC, after the end of the last interrupt
 *
 * Return: the present level; 0 if the burst is forgiven by then.
 */
static inline unsigned int
apic_timer_throttle_level_at(const struct apic_timer_throttle *throttle, u64 tsc)
{
	s64 since = tsc - throttle->end;
	s64 share = apic_timer_throttle_busy_max / APIC_TIMER_THROTTLE_RECOVERY;

	return since > share ? 0 : throttle->level;
}

/**
 * apic_timer_throttle_forgive() - forget for what handlers were not throttled
 * @debt:	of this CPU
 */
static inline void apic_timer_throttle_forgive(struct apic_timer_throttle_debt *debt)
{
	*debt = (struct apic_timer_throttle_debt) {};
}

u64 apic_timer_throttle_until(const struct apic_timer_throttle *throttle,
			      struct apic_timer_throttle_debt *debt, u64 now);
void apic_timer_throttle_init(void);

#endif /* _APIC_TIMER_THROTTLE_H */
