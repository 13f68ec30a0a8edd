/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_FAR_H
#define _SHAPER_FAR_H

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
 * struct shaper_far_clock - the far packets of one clock; &shaper_cb.want is in its nanoseconds
 * @id:		the clock
 * @bit:	its bit in &shaper_far.clocks
 * @first:	list of packets that were queued in the order of their times, linked by
 *		&sk_buff.next and &sk_buff.prev
 * @last:	its last packet
 * @latest:	latest time of all packets that were appended to the list since it was empty
 * @edf:	packets with earlier times than one that was queued before them
 * @look:	latest TSC at which to convert the first packet's time again
 * @due:	TSC from which on the first packet is near, or @look if that is earlier
 * @before:	the near packet that leaves last, and the last of those before it
 */
struct shaper_far_clock {
	clockid_t id;
	u32 bit;
	struct sk_buff *first;
	struct sk_buff *last;
	u64 latest;
	struct shaper_edf edf;
	u64 look;
	u64 due;
	struct shaper_far_last before[SHAPER_SENDERS];
};

/**
 * struct shaper_far - packets whose departure times are far
 * @clock:	the packets, by clock
 * @look:	earliest &shaper_far_clock.look of the clocks that have packets; U64_MAX: none has
 * @due:	earliest &shaper_far_clock.due of these clocks
 * @next:	the clock that this is of
 * @clocks:	clocks that have packets, one bit each
 * @count:	number of packets
 * @rate:	TSC cycles in 2^%SHAPER_FAR_SHIFT ns
 * @cursor:	next packet that shaper_far_find() will check, or NULL
 * @cursor_clock: index of its clock
 * @cursor_listed: it is in the list of its clock
 */
struct shaper_far {
	struct shaper_far_clock clock[SHAPER_CLOCKS];
	u64 look;
	u64 due;
	struct shaper_far_clock *next;
	u32 clocks;
	u32 count;
	u64 rate;
	struct sk_buff *cursor;
	unsigned int cursor_clock;
	bool cursor_listed;
};

#define SHAPER_FAR_SHIFT	24

/**
 * shaper_far_due() - check whether shaper_far_pop() has to check a packet
 * @far:	packets
 * @now:	TSC
 *
 * Context: Any; the caller serialises access to @far.
 */
static inline bool shaper_far_due(const struct shaper_far *far, u64 now)
{
	return now >= far->due;
}

/**
 * shaper_far_look() - find when to call shaper_far_pop()
 * @far:	packets
 *
 * Context: Any; the caller serialises access to @far.
 * Return: latest TSC at which to call it; U64_MAX if there is no packet.
 */
static inline u64 shaper_far_look(const struct shaper_far *far)
{
	return far->look;
}

void shaper_far_init(struct shaper_far *far);
u64 shaper_far_to_tsc(clockid_t clock, ktime_t time, u64 near, bool *is_far);
bool shaper_far_precedes(const struct shaper_far *far, clockid_t clock, ktime_t time);
u64 shaper_far_in_order(struct shaper_far *far, clockid_t clock, ktime_t time, u64 at);
u64 shaper_far_behind(struct shaper_far *far, clockid_t clock, ktime_t time, u64 now);
bool shaper_far_insert(struct shaper_far *far, struct sk_buff *skb, clockid_t clock);
struct sk_buff *shaper_far_pop(struct shaper_far *far, u64 now, u64 near, u64 ahead);
void shaper_far_rewind(struct shaper_far *far);
struct sk_buff *shaper_far_find(struct shaper_far *far, u32 class, unsigned int *budget);
void shaper_far_look_again(struct shaper_far *far);
void shaper_far_shift(struct shaper_far *far, s64 shift);

#endif /* _SHAPER_FAR_H */
