/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_BUCKET_H
#define _APIC_TIMER_DEVICE_BUCKET_H

#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct device_bucket - a token bucket in one number
 * @full:	TSC at which the bucket is full again, each token that is missing
 *		taking an interval; also one that is owed
 *
 * Initialise with zeros: full. The caller sees to it that one CPU at a time uses it.
 */
struct device_bucket {
	u64 full;
};

/* TSC cycles that it takes until the bucket is full. */
static inline u64 device_bucket_missing(const struct device_bucket *bucket, u64 now,
					u64 interval, u32 burst, u32 owed_max)
{
	u64 missing = bucket->full > now ? bucket->full - now : 0;

	/* More, if the TSC has been set back, or the limits have been changed. */
	return min(missing, interval * ((u64)burst + owed_max));
}

/**
 * device_bucket_take() - take a token if there is one
 * @bucket:	the bucket
 * @now:	present TSC
 * @interval:	TSC cycles per token
 * @burst:	tokens that a full bucket has, at least 1
 * @owed_max:	tokens that may be owed, by device_bucket_reserve(), at a time
 *
 * Return: true if a token was taken.
 */
static inline bool device_bucket_take(struct device_bucket *bucket, u64 now,
				      u64 interval, u32 burst, u32 owed_max)
{
	u64 missing = device_bucket_missing(bucket, now, interval, burst, owed_max);

	if (missing > interval * (burst - 1)) {
		bucket->full = now + missing;
		return false;
	}
	bucket->full = now + missing + interval;
	return true;
}

/**
 * device_bucket_reserve() - take a token, or owe the bucket one
 * @bucket:	the bucket
 * @now:	present TSC
 * @interval:	TSC cycles per token
 * @burst:	tokens that a full bucket has, at least 1
 * @owed_max:	tokens that may be owed at a time: who has one that is not there yet
 *		reserves no other
 *
 * Return: TSC from which the token is there.
 */
static inline u64 device_bucket_reserve(struct device_bucket *bucket, u64 now,
					u64 interval, u32 burst, u32 owed_max)
{
	u64 missing = device_bucket_missing(bucket, now, interval, burst, owed_max);
	u64 most = interval * (burst - 1);

	bucket->full = now + missing + interval;
	return missing > most ? now + missing - most : now;
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
