/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_CLOCK_H
#define _APIC_TIMER_LAPIC_CLOCK_H

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* log2 of the coarsest divider, 128. */
#define APIC_TIMER_LAPIC_DIVIDER_MAX	7

/**
 * struct apic_timer_lapic_clock - rate of a LAPIC one-shot counter
 * @mult:	ticks of the undivided counter per TSC cycle, times 2^32
 * @reach:	longest distance in TSC cycles that fits the counter at its
 *		coarsest divider
 * @near:	distances in TSC cycles below this can be converted by
 *		apic_timer_lapic_clock_near(), too
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
 * struct apic_timer_lapic_count - value to program a one-shot counter with
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
 * apic_timer_lapic_clock_count() - convert a distance
 * @clock:	the counter
 * @cycles:	distance in TSC cycles; limited to @clock->reach
 *
 * Choose the finest divider that reaches @cycles. An undivided count is rounded
 * up, so that rounding does not make the interrupt early; a divided one is
 * rounded down, which leaves the rest to a finer divider.
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
 * apic_timer_lapic_clock_near() - convert a short distance in fewer instructions
 * @clock:	the counter, undivided
 * @cycles:	distance in TSC cycles, less than @clock->near
 *
 * Return: a count that takes @cycles, or up to a tick more; up to 1/2^29 less.
 */
static __always_inline u32
apic_timer_lapic_clock_near(const struct apic_timer_lapic_clock *clock,
			    u64 cycles)
{
	return (cycles * clock->near_mult >> clock->near_shift) + 1;
}

#endif /* _APIC_TIMER_LAPIC_CLOCK_H */
