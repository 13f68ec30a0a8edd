/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_COUNTER_H
#define _APIC_TIMER_COUNTER_H

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* log2 of the coarsest divider, 128. */
#define APIC_TIMER_COUNTER_DIVIDER_MAX	7

/**
 * struct apic_timer_counter - rate of a LAPIC one-shot counter
 * @mult:	ticks of the undivided counter per TSC cycle, times 2^32
 * @max_delta:	longest distance in TSC cycles that fits the counter at its
 *		coarsest divider
 * @near:	distances in TSC cycles below this can also be converted by
 *		apic_timer_counter_convert_near()
 * @near_mult:	ticks of the undivided counter per TSC cycle, times
 * @near_shift:	2^this
 */
struct apic_timer_counter {
	u64 mult;
	u64 max_delta;
	u64 near;
	u32 near_mult;
	u8 near_shift;
};

/**
 * struct apic_timer_counter_value - value to program a one-shot counter with
 * @count:	ticks of the divided counter, never 0 (0 would stop the timer)
 * @divider:	the divider is 2^divider; 0 to %APIC_TIMER_COUNTER_DIVIDER_MAX
 */
struct apic_timer_counter_value {
	u32 count;
	u8 divider;
};

int apic_timer_counter_init(struct apic_timer_counter *counter,
			    u64 ticks_per_sec, u64 cycles_per_sec);
/**
 * apic_timer_counter_convert() - convert a distance
 * @counter:	the counter
 * @cycles:	distance in TSC cycles; limited to @counter->max_delta
 *
 * Choose the finest divider that reaches @cycles. An undivided count is rounded
 * up, so that rounding does not make the interrupt early; a divided one is
 * rounded down, which leaves the rest to a finer divider.
 *
 * Return: count and divider.
 */
static __always_inline struct apic_timer_counter_value
apic_timer_counter_convert(const struct apic_timer_counter *counter,
			   u64 cycles)
{
	struct apic_timer_counter_value count = {};
	u64 ticks;

	cycles = min(cycles, counter->max_delta);
	ticks = ((__uint128_t)cycles * counter->mult + U32_MAX) >> 32;

	if (unlikely(ticks >> 32))
		count.divider = min(fls64(ticks >> 32),
				    APIC_TIMER_COUNTER_DIVIDER_MAX);
	count.count = clamp(ticks >> count.divider, 1ULL, (u64)U32_MAX);
	return count;
}

/**
 * apic_timer_counter_convert_near() - convert a short distance in fewer instructions
 * @counter:	the counter, undivided
 * @cycles:	distance in TSC cycles, less than @counter->near
 *
 * Return: a count that takes @cycles or up to a tick more, or less by up to
 * 1/2^29.
 */
static __always_inline u32
apic_timer_counter_convert_near(const struct apic_timer_counter *counter,
				u64 cycles)
{
	return (cycles * counter->near_mult >> counter->near_shift) + 1;
}

#endif /* _APIC_TIMER_COUNTER_H */
