// SPDX-License-Identifier: GPL-2.0
/*
 * Compute the next departure from the rate, exact to a fraction of a TSC cycle, without drift.
 *
 * A packet of n bits takes n * hz / rate cycles. The remainder of the division is kept and added
 * to the next packet's. After any number of packets, the departure is therefore the same as by a
 * single division of all their bits.
 */
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "plan.h"
#include "shift.h"

/* Compute the cycles of @bytes, and keep the remainder. */
static u64 duration(const struct shaper_plan *plan, u64 bytes, u64 *rest)
{
	return div64_u64_rem(bytes * BITS_PER_BYTE * plan->hz + *rest, plan->rate, rest);
}

/**
 * shaper_plan_set() - set or change a rate
 * @plan:	the plan; zeroed at first
 * @hz:		TSC cycles a second, at most 2^33
 * @rate:	bit/s, at most %SHAPER_RATE_MAX; 0 for no limit
 * @burst:	bytes that may leave at once after a pause, at most %SHAPER_LEN_MAX
 * @overhead:	bytes to add to the length of each packet
 *
 * The next packet leaves when it would have left at the old rate. This is for plans that set the
 * moments of packets before these are queued: those of waiting packets do not change.
 *
 * Context: Any; the caller serialises access to @plan.
 */
void shaper_plan_set(struct shaper_plan *plan, u64 hz, u64 rate, u32 burst, s32 overhead)
{
	u64 rest = 0;

	WRITE_ONCE(plan->hz, hz);
	plan->rate = rate;
	plan->overhead = overhead;
	plan->rest = 0;
	plan->gap = 0;
	plan->burst = rate ? duration(plan, min_t(u64, burst, SHAPER_LEN_MAX), &rest) : 0;
}

/* Convert a wait at a rate to one at another. Without a rate, before or after, none waits. */
static u64 rescaled(u64 cycles, u64 old, u64 rate)
{
	u64 product;

	if (!old || !rate)
		return 0;
	/* Bits and cycles, as in duration(). */
	if (check_mul_overflow(cycles, old, &product))
		product = U64_MAX;
	return div64_u64(product, rate);
}

/**
 * shaper_plan_change() - change a rate, also for the packets that wait already
 * @plan:	the plan
 * @now:	moment of a packet that leaves now, absolute TSC
 * @hz:		as for shaper_plan_set()
 * @rate:	...
 * @burst:	...
 * @overhead:	...
 *
 * What earlier packets have used up, and is not paid for yet, stays the same number of bits.
 *
 * Context: Any; the caller serialises access to @plan.
 */
void shaper_plan_change(struct shaper_plan *plan, u64 now, u64 hz, u64 rate, u32 burst,
			s32 overhead)
{
	if (plan->next > now)
		plan->next = shaper_later(now, rescaled(plan->next - now, plan->rate, rate));
	shaper_plan_set(plan, hz, rate, burst, overhead);
}

static u64 bytes_of(const struct shaper_plan *plan, u32 len)
{
	return clamp_t(s64, (s64)len + plan->overhead, 1, SHAPER_LEN_MAX);
}

/**
 * shaper_plan_takes() - compute how long a packet takes
 * @plan:	the plan, which has a rate
 * @len:	length of the packet in bytes
 *
 * Context: Any; the caller serialises access to @plan.
 * Return: TSC cycles, rounded down.
 */
u64 shaper_plan_takes(const struct shaper_plan *plan, u32 len)
{
	u64 rest = 0;

	return duration(plan, bytes_of(plan, len), &rest);
}

/**
 * shaper_plan_sent() - account for a packet that has left
 * @plan:	the plan
 * @at:		when it should have left, as returned by shaper_plan_at()
 * @left:	when it did leave
 * @len:	its length in bytes
 *
 * Small delays do not add up, because the next packet is planned from @at. After a longer
 * delay, for example of a stopped queue, the waiting packets must not leave in one burst; they
 * are planned from @left.
 *
 * Context: Any; the caller serialises access to @plan.
 */
void shaper_plan_sent(struct shaper_plan *plan, u64 at, u64 left, u32 len)
{
	if (!plan->rate)
		return;
	if (at > plan->next) {
		plan->next = at;
		plan->rest = 0;
	}
	if (plan->gap && left > plan->next && left - plan->next > max(plan->burst, plan->gap)) {
		plan->next = left;
		plan->rest = 0;
	}
	plan->gap = duration(plan, bytes_of(plan, len), &plan->rest);
	plan->next = shaper_later(plan->next, plan->gap);
}

/**
 * shaper_plan_shift() - follow the TSC into a new epoch
 * @plan:	the plan
 * @shift:	cycles to add to TSC values of the old one
 *
 * Context: Any; the caller serialises access to @plan.
 */
void shaper_plan_shift(struct shaper_plan *plan, s64 shift)
{
	plan->next = shaper_shifted(plan->next, shift);
}
