/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_PLAN_H
#define _SHAPER_PLAN_H

#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define SHAPER_RATE_MAX		BIT_ULL(40)	/* bit/s */
/* Bytes. With 2^33 cycles a second, the product of bits and cycles fits into 64 bits. */
#define SHAPER_LEN_MAX		BIT(27)

/**
 * struct shaper_plan - when packets may leave, at a rate
 * @rate:	bit/s; 0 means that they may leave at any time
 * @hz:		TSC cycles a second, at most 2^33
 * @next:	when the next packet may leave if no burst is allowed, absolute TSC
 * @rest:	fraction missing in @next, in units of 1/@rate cycles: less than @rate
 * @burst:	TSC cycles by which packets may leave before @next
 * @gap:	duration of the latest packet at @rate, TSC cycles; 0 if there was none
 * @overhead:	bytes to add to the length of each packet
 */
struct shaper_plan {
	u64 rate;
	u64 hz;
	u64 next;
	u64 rest;
	u64 burst;
	u64 gap;
	s32 overhead;
};

/**
 * shaper_plan_at() - compute when a packet may leave
 * @plan:	the plan
 * @want:	when it wants to leave, absolute TSC
 *
 * Context: Any; the caller serialises access to @plan.
 * Return: absolute TSC: @want or later.
 */
static inline u64 shaper_plan_at(const struct shaper_plan *plan, u64 want)
{
	u64 first = plan->next > plan->burst ? plan->next - plan->burst : 0;

	return plan->rate ? max(want, first) : want;
}

void shaper_plan_set(struct shaper_plan *plan, u64 hz, u64 rate, u32 burst, s32 overhead);
void shaper_plan_change(struct shaper_plan *plan, u64 now, u64 hz, u64 rate, u32 burst,
			s32 overhead);
u64 shaper_plan_takes(const struct shaper_plan *plan, u32 len);
void shaper_plan_sent(struct shaper_plan *plan, u64 at, u64 left, u32 len);
void shaper_plan_shift(struct shaper_plan *plan, s64 shift);

#endif /* _SHAPER_PLAN_H */
