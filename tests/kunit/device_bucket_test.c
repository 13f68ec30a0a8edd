// SPDX-License-Identifier: GPL-2.0
/*
 * device/bucket.h: up to N wake-ups a second, and up to M at once.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/prandom.h>

#include "device/bucket.h"

#define INTERVAL	1000ULL
#define BURST		4U
#define TIMERS		20U

static unsigned int take(struct device_bucket *bucket, u64 now, unsigned int tries)
{
	unsigned int taken = 0;

	while (tries--)
		taken += device_bucket_take(bucket, now, INTERVAL, BURST, 0);
	return taken;
}

/* A new bucket is full, even if the TSC has only just started. */
static void burst_test(struct kunit *test)
{
	struct device_bucket bucket = {}, early = {};

	KUNIT_EXPECT_EQ(test, take(&bucket, 1000000, 100), BURST);
	KUNIT_EXPECT_EQ(test, take(&early, 0, 100), BURST);
}

/* A bucket fills by one token an interval, up to the burst. */
static void refill_test(struct kunit *test)
{
	struct device_bucket bucket = {};
	u64 now = 1000000;

	take(&bucket, now, 100);
	KUNIT_EXPECT_EQ(test, take(&bucket, now + INTERVAL - 1, 100), 0U);
	KUNIT_EXPECT_EQ(test, take(&bucket, now + INTERVAL, 100), 1U);
	KUNIT_EXPECT_EQ(test, take(&bucket, now + 3 * INTERVAL, 100), 2U);
	KUNIT_EXPECT_EQ(test, take(&bucket, now + 1000 * INTERVAL, 100), BURST);
}

/* No window has more tokens than the burst plus one for each interval in it. */
static void bound_test(struct kunit *test)
{
	struct device_bucket bucket = {};
	struct rnd_state rnd;
	u64 now = 5000, began = now;
	unsigned int taken = 0, i;

	prandom_seed_state(&rnd, 1997);
	for (i = 0; i < 100000; i++) {
		now += prandom_u32_state(&rnd) % (i & 1024 ? 100 : 3000);
		taken += take(&bucket, now, 1);
		KUNIT_ASSERT_LE(test, (u64)taken, BURST + (now - began) / INTERVAL);
	}
	/* And no fewer if there are enough requests. */
	now += INTERVAL * BURST;
	began = now;
	for (taken = 0; now < began + 100 * INTERVAL; now += 10)
		taken += take(&bucket, now, 1);
	KUNIT_EXPECT_GE(test, taken, 100 + BURST - 1);
}

/* A rejected request costs nothing. */
static void refused_test(struct kunit *test)
{
	struct device_bucket bucket = {};
	u64 now = 1000000;

	take(&bucket, now, 100000);
	KUNIT_EXPECT_EQ(test, take(&bucket, now + INTERVAL, 100), 1U);
}

/* Unused tokens are returned, and a full bucket does not get fuller. */
static void return_test(struct kunit *test)
{
	struct device_bucket bucket = {}, full = {};
	u64 now = 1000000;
	unsigned int i;

	take(&bucket, now, 100);
	device_bucket_return(&bucket, INTERVAL);
	KUNIT_EXPECT_EQ(test, take(&bucket, now, 100), 1U);
	for (i = 0; i < 100; i++)
		device_bucket_return(&full, INTERVAL);
	KUNIT_EXPECT_EQ(test, take(&full, now, 100), BURST);
}

/* A TSC that was set back does not close the bucket for the time that it had counted. */
static void set_back_test(struct kunit *test)
{
	struct device_bucket bucket = {};

	take(&bucket, 1ULL << 50, 100);
	KUNIT_EXPECT_EQ(test, take(&bucket, 5000, 100), 0U);
	KUNIT_EXPECT_EQ(test, take(&bucket, 5000 + BURST * INTERVAL, 100), BURST);
}

/* Timers that are all due at once get their turns, an interval apart, and none gets more. */
static void reserve_test(struct kunit *test)
{
	u64 at[TIMERS] = {}, now = 1000000, began = now;
	struct device_bucket bucket = {};
	unsigned int expired = 0, i;

	for (i = 0; i < TIMERS; i++)
		at[i] = now;
	for (; now < began + 1000 * INTERVAL; now += 7) {
		for (i = 0; i < TIMERS; i++) {
			if (at[i] > now)
				continue;
			at[i] = device_bucket_reserve(&bucket, now, INTERVAL, BURST, TIMERS);
			KUNIT_ASSERT_GE(test, at[i], now);
			KUNIT_ASSERT_LE(test, at[i], now + (TIMERS + 1) * INTERVAL);
			expired++;
			KUNIT_ASSERT_LE(test, (u64)expired,
					TIMERS + BURST + (now - began) / INTERVAL);
		}
	}
	/* Each timer had its share. */
	KUNIT_EXPECT_GE(test, expired, 1000U - TIMERS);
	/* Debts are paid before a token can be taken again. */
	KUNIT_EXPECT_FALSE(test, device_bucket_take(&bucket, now, INTERVAL, BURST, TIMERS));
	now += (TIMERS + 1) * INTERVAL;
	KUNIT_EXPECT_TRUE(test, device_bucket_take(&bucket, now, INTERVAL, BURST, TIMERS));
}

/* Stopping timers before they expire gains no tokens, however they were paid for. */
static void stopped_test(struct kunit *test)
{
	u64 at[TIMERS] = {}, now = 1000000, began = now;
	struct device_bucket bucket = {};
	unsigned int expired = 0, i;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 2001);
	for (; now < began + 1000 * INTERVAL; now += prandom_u32_state(&rnd) % 20) {
		i = prandom_u32_state(&rnd) % TIMERS;
		if (at[i] && at[i] <= now) {
			expired++;
			/* Periodic ones. */
			at[i] = i & 1 ? device_bucket_reserve(&bucket, now, INTERVAL, BURST,
							      TIMERS) : 0;
			KUNIT_ASSERT_LE(test, (u64)expired,
					TIMERS + BURST + (now - began) / INTERVAL);
		} else if (at[i]) {
			if (prandom_u32_state(&rnd) % 64)
				continue;
			device_bucket_return(&bucket, INTERVAL);
			at[i] = 0;
		} else if (device_bucket_take(&bucket, now, INTERVAL, BURST, TIMERS)) {
			at[i] = now + prandom_u32_state(&rnd) % (30 * INTERVAL);
		}
	}
	/* They lose no tokens either. */
	KUNIT_EXPECT_GE(test, expired, 500U);
}

/* A TSC that was set back cancels debts, except for the maximum that may be owed. */
static void owed_set_back_test(struct kunit *test)
{
	struct device_bucket bucket = {};
	u64 at = 0;
	unsigned int i;

	for (i = 0; i < 2 * TIMERS; i++)
		at = device_bucket_reserve(&bucket, 1ULL << 50, INTERVAL, BURST, TIMERS);
	KUNIT_EXPECT_LE(test, at, (1ULL << 50) + (TIMERS + 1) * INTERVAL);
	at = device_bucket_reserve(&bucket, 5000, INTERVAL, BURST, TIMERS);
	KUNIT_EXPECT_LE(test, at, 5000 + (TIMERS + 1) * INTERVAL);
}

/* The limits are changed while the bucket is in use. */
static void changed_test(struct kunit *test)
{
	struct device_bucket bucket = {};
	u64 now = 1000000;
	unsigned int i, taken = 0;

	for (i = 0; i < 10; i++)
		device_bucket_take(&bucket, now, 1000 * INTERVAL, 10, 0);
	/* It is not closed for the time of these 10,000 intervals. */
	now += 2 * INTERVAL;
	for (i = 0; i < 10; i++)
		taken += device_bucket_take(&bucket, now, INTERVAL, 2, 0);
	now += 2 * INTERVAL;
	for (i = 0; i < 10; i++)
		taken += device_bucket_take(&bucket, now, INTERVAL, 2, 0);
	KUNIT_EXPECT_EQ(test, taken, 2U);
}

static struct kunit_case device_bucket_test_cases[] = {
	KUNIT_CASE(burst_test),
	KUNIT_CASE(refill_test),
	KUNIT_CASE(bound_test),
	KUNIT_CASE(refused_test),
	KUNIT_CASE(return_test),
	KUNIT_CASE(set_back_test),
	KUNIT_CASE(reserve_test),
	KUNIT_CASE(stopped_test),
	KUNIT_CASE(owed_set_back_test),
	KUNIT_CASE(changed_test),
	{}
};

static struct kunit_suite device_bucket_test_suite = {
	.name = "apic_timer_device_bucket",
	.test_cases = device_bucket_test_cases,
};

kunit_test_suite(device_bucket_test_suite);
