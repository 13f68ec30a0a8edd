/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_CLOCK_H
#define _APIC_TIMER_LAPIC_CLOCK_H

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* The coarsest divider, 128, as a power of two. */
#define APIC_TIMER_LAPIC_DIVIDER_MAX	7

/**
 * struct apic_timer_lapic_clock - rate of a LAPIC one-shot counter
 * @mult:	ticks of the undivided counter per TSC cycle, times 2^32
 * @reach:	longest distance in TSC cycles that fits the counter at its
 *		coarsest divider
 * @near:	distances in TSC cycles below this are also given by
 *		apic_timer_lapic_clock_near()
 * @near_mult:	ticks of the undivided counter per TSC cycle, times
 * @near_shift:	2^this
 */
struct apic_timer_lapic_clock {
	u64 mult;
	u64 reach;
	u64 near;
	u32 near_mult;
	u8 near_shift;
};

/**
 * struct apic_timer_lapic_count - what a one-shot counter is programmed with
 * @count:	ticks of the divided counter, never 0 (0 would stop the timer)
 * @divider:	the divider is 2^divider; 0 to %APIC_TIMER_LAPIC_DIVIDER_MAX
 */
struct apic_timer_lapic_count {
	u32 count;
	u8 divider;
};

int apic_timer_lapic_clock_init(struct apic_timer_lapic_clock *clock,
				u64 ticks_per_sec, u64 cycles_per_sec);
/**
 * apic_timer_lapic_clock_count() - what to program for a distance
 * @clock:	the counter
 * @cycles:	distance in TSC cycles; what exceeds @clock->reach is cut off
 *
 * The finest divider that reaches @cycles. Undivided, the count is rounded up,
 * so that the shot isn't early by rounding; divided, it is rounded down, which
 * leaves a rest for a finer one.
 *
 * Return: count and divider.
 */
static __always_inline struct apic_timer_lapic_count
apic_timer_lapic_clock_count(const struct apic_timer_lapic_clock *clock,
			     u64 cycles)
{
	struct apic_timer_lapic_count count = {};
	u64 ticks;

	cycles = min(cycles, clock->reach);
	ticks = ((__uint128_t)cycles * clock->mult + U32_MAX) >> 32;

	if (unlikely(ticks >> 32))
		count.divider = min(fls64(ticks >> 32),
				    APIC_TIMER_LAPIC_DIVIDER_MAX);
	count.count = clamp(ticks >> count.divider, 1ULL, (u64)U32_MAX);
	return count;
}

/**
 * apic_timer_lapic_clock_near() - count for a short distance, in short
 * @clock:	the counter, undivided
 * @cycles:	distance in TSC cycles, less than @clock->near
 *
 * Return: a count that takes @cycles or a tick more, but for 1/2^29 of them.
 */
static __always_inline u32
apic_timer_lapic_clock_near(const struct apic_timer_lapic_clock *clock,
			    u64 cycles)
{
	return (cycles * clock->near_mult >> clock->near_shift) + 1;
}

#endif /* _APIC_TIMER_LAPIC_CLOCK_H */
