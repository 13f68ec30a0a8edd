/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_BUCKET_H
#define _APIC_TIMER_DEVICE_BUCKET_H

#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct device_bucket - a token bucket in one number
 * @full:	TSC at which the bucket is full again, each token that is missing
 *		taking an interval
 *
 * Initialise with zeros: full. The caller sees to it that one CPU at a time uses it.
 */
struct device_bucket {
	u64 full;
};

/**
 * device_bucket_take() - take a token if there is one
 * @bucket:	the bucket
 * @now:	present TSC
 * @interval:	TSC cycles per token
 * @burst:	tokens that a full bucket has, at least 1
 *
 * Return: true if a token was taken.
 */
static inline bool device_bucket_take(struct device_bucket *bucket, u64 now,
				      u64 interval, u32 burst)
{
	u64 depth = interval * burst;
	u64 missing = bucket->full > now ? bucket->full - now : 0;

	/* The TSC has been set back, or the limits have been changed. */
	if (missing > depth)
		missing = depth;
	if (missing > depth - interval) {
		bucket->full = now + missing;
		return false;
	}
	bucket->full = now + missing + interval;
	return true;
}

/**
 * device_bucket_return() - return a token that has not been used
 * @bucket:	the bucket
 * @interval:	as for device_bucket_take()
 */
static inline void device_bucket_return(struct device_bucket *bucket, u64 interval)
{
	bucket->full -= min(bucket->full, interval);
}

#endif /* _APIC_TIMER_DEVICE_BUCKET_H */
