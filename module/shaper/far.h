/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_FAR_H
#define _SHAPER_FAR_H

#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/types.h>

#include "edf.h"

#define SHAPER_CLOCKS	3

/* Number of senders of one clock whose packets are kept in order: see shaper_far_in_order(). */
#define SHAPER_SENDERS	4

/**
 * struct shaper_far_last - a packet of a clock that later ones may have to wait for
 * @time:	its departure time in that clock
 * @at:		when it leaves, absolute TSC
 */
struct shaper_far_last {
	ktime_t time;
	u64 at;
};

/**
 * struct shaper_far - packets whose departure times are far
 * @edf:	by clock: the packets; &shaper_cb.want is in nanoseconds of that clock
 * @at:		by clock: converted moment of the first packet, absolute TSC
 * @look:	by clock: latest TSC at which to convert it again
 * @last:	by clock: the near packet that leaves last, and the last of those before it
 * @clocks:	clocks that have packets, one bit each
 * @count:	number of packets
 * @cursor:	next packet that shaper_far_find() will check, or NULL
 * @cursor_clock: index of its clock
 */
struct shaper_far {
	struct shaper_edf edf[SHAPER_CLOCKS];
	u64 at[SHAPER_CLOCKS];
	u64 look[SHAPER_CLOCKS];
	struct shaper_far_last last[SHAPER_CLOCKS][SHAPER_SENDERS];
	u32 clocks;
	u32 count;
	struct sk_buff *cursor;
	unsigned int cursor_clock;
};

/**
 * shaper_far_due() - check whether shaper_far_pop() has to check a packet
 * @far:	packets
 * @now:	TSC
 * @limit:	absolute TSC before which packets are near
 *
 * Context: Any; the caller serialises access to @far.
 */
static inline bool shaper_far_due(const struct shaper_far *far, u64 now, u64 limit)
{
	u32 left;

	for (left = far->clocks; left; left &= left - 1)
		if (far->look[__ffs(left)] <= now || far->at[__ffs(left)] <= limit)
			return true;
	return false;
}

void shaper_far_init(struct shaper_far *far);
u64 shaper_far_to_tsc(clockid_t clock, ktime_t time, u64 near, bool *is_far);
bool shaper_far_precedes(const struct shaper_far *far, clockid_t clock, ktime_t time);
u64 shaper_far_in_order(struct shaper_far *far, clockid_t clock, ktime_t time, u64 at);
u64 shaper_far_behind(struct shaper_far *far, clockid_t clock, ktime_t time, u64 now);
bool shaper_far_insert(struct shaper_far *far, struct sk_buff *skb, clockid_t clock);
u64 shaper_far_look(const struct shaper_far *far);
struct sk_buff *shaper_far_pop(struct shaper_far *far, u64 now, u64 near, u64 ahead);
void shaper_far_rewind(struct shaper_far *far);
struct sk_buff *shaper_far_find(struct shaper_far *far, u32 class, unsigned int *budget);
void shaper_far_look_again(struct shaper_far *far);
void shaper_far_shift(struct shaper_far *far, s64 shift);

#endif /* _SHAPER_FAR_H */
