/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_BUCKET_H
#define _APIC_TIMER_DEVICE_BUCKET_H

#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct device_bucket - a token bucket in one number
 * @full:	TSC at which the bucket is full again: it takes one interval for each token
 *		that is missing or owed
 *
 * A bucket of zeros is full. The caller makes sure that only one CPU at a time uses it.
 */
struct device_bucket {
	u64 full;
};

/* TSC cycles until the bucket is full. */
static inline u64 device_bucket_missing(const struct device_bucket *bucket, u64 now,
					u64 interval, u32 burst, u32 owed_max)
{
	u64 missing = bucket->full > now ? bucket->full - now : 0;

	/* It may exceed that if the TSC was set back, or the limits were changed. */
	return min(missing, interval * ((u64)burst + owed_max));
}

/**
 * device_bucket_take() - take a token if there is one
 * @bucket:	the bucket
 * @now:	present TSC
 * @interval:	TSC cycles per token
 * @burst:	tokens in a full bucket, at least 1
 * @owed_max:	maximum number of tokens owed at a time, see device_bucket_reserve()
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
 * @burst:	tokens in a full bucket, at least 1
 * @owed_max:	maximum number of tokens owed at a time: a caller whose token is not
 *		available yet reserves no other
 *
 * Return: TSC from which the token is available.
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
 * device_bucket_return() - return an unused token
 * @bucket:	the bucket
 * @interval:	as for device_bucket_take()
 */
static inline void device_bucket_return(struct device_bucket *bucket, u64 interval)
{
	bucket->full -= min(bucket->full, interval);
}

#endif /* _APIC_TIMER_DEVICE_BUCKET_H */
