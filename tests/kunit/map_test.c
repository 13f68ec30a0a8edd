// SPDX-License-Identifier: GPL-2.0
/*
 * Common time, on the machine of the paper of 2011 unless a case chooses another: a TSC of
 * 1.667 GHz that counts in steps of 10, an HPET of 14.318 MHz that takes 1.4 us to read, and
 * SMIs.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/sort.h>

#include "map.h"

#define MS		(sim.hz / 1000)
#define READS		9
#define STOPS		1000

/**
 * struct kind - differences between machines
 * @hz:		the TSC's frequency
 * @step:	the TSC's step, cycles
 * @ref_hz:	the reference's frequency
 */
struct kind {
	u64 hz;
	u32 step;
	u32 ref_hz;
};

static const struct kind of_2011 = { 1667000000, 10, 14318180 };

/**
 * struct sim - the machine
 * @hz:		see struct kind
 * @step:	likewise
 * @ref_hz:	likewise
 * @now:	cycles that a TSC that never stops would have counted
 * @lost:	cycles for which the TSC stood still
 * @smi:	an SMI delays one access in this number, 0: none
 * @slower:	additional cycles of each access
 * @ppb:	deviation of the TSC's rate from @hz, 10^-9
 * @since:	@now when that deviation began
 * @ref:	ticks of the reference at @since
 * @rnd:	random numbers
 */
static struct sim {
	u64 hz;
	u32 step;
	u32 ref_hz;
	u64 now;
	u64 lost;
	unsigned int smi;
	u32 slower;
	s64 ppb;
	u64 since;
	u64 ref;
	struct rnd_state rnd;
} sim;

static struct apic_clock_scale scale;
static struct apic_clock_rate rate;

static u32 below(u32 limit)
{
	return prandom_u32_state(&sim.rnd) % limit;
}

/* The true rate, cycles per tick times 2^32. */
static u64 nominal(void)
{
	return ((__int128)sim.hz << 32) / sim.ref_hz;
}

static void begin(const struct kind *kind)
{
	sim = (struct sim) {
		.hz = kind->hz,
		.step = kind->step,
		.ref_hz = kind->ref_hz,
		.now = 1ULL << 40,
	};
	prandom_seed_state(&sim.rnd, 9);
	scale = (struct apic_clock_scale) { .rate = nominal(), .step = sim.step };
	rate = (struct apic_clock_rate) { .low = nominal(), .high = nominal() + 1 };
}

static int map_test_init(struct kunit *test)
{
	begin(&of_2011);
	return 0;
}

static u64 tsc(void)
{
	u64 value = sim.now - sim.lost;

	return value - value % sim.step;
}

static u64 ref(void)
{
	/* A tick has more cycles of a faster TSC. */
	return sim.ref + (__int128)(sim.now - sim.since) * sim.ref_hz /
			 (sim.hz + (s64)sim.hz * sim.ppb / 1000000000);
}

/* Change the TSC's rate from now on. */
static void run_at(s64 ppb)
{
	sim.ref = ref();
	sim.since = sim.now;
	sim.ppb = ppb;
}

/* An access takes about the same time each time, and occasionally much longer. */
static void access(void)
{
	u32 jitter = below(70);

	while (!below(2))
		jitter += below(100);
	sim.now += (1150 + sim.slower + jitter) * sim.hz / of_2011.hz;
	if (sim.smi && !below(sim.smi))
		sim.now += 100000 + below(400000);
}

static void read_one(struct apic_clock_reading *reading)
{
	u64 before = tsc(), found;

	access();
	found = ref();
	access();
	apic_clock_reading_add(reading, &rate, before, found, tsc());
}

static struct apic_clock_reading read_all(unsigned int reads)
{
	struct apic_clock_reading reading = {};

	while (reads--) {
		read_one(&reading);
		sim.now += below(200);
	}
	return reading;
}

static int compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

/**
 * struct stops - errors of a series of stops, in order
 * @common:	common time minus the truth. The time to read the counter is constant, and is no
 *		error: the mean is subtracted.
 * @found:	measured loss of one stop minus the truth: contains the errors of two readings
 */
struct stops {
	s64 common[STOPS];
	s64 found[STOPS];
};

static s64 percentile(const s64 *errors, unsigned int percent)
{
	return errors[STOPS * percent / 100];
}

/* Stops of up to 10 ms each. */
static struct stops *stop_often(struct kunit *test, unsigned int reads,
				struct apic_clock_follow *follow)
{
	struct stops *errors = kunit_kzalloc(test, sizeof(*errors), GFP_KERNEL);
	struct apic_clock_reading reading = read_all(reads);
	u64 lost, before;
	unsigned int i;
	s64 sum = 0;

	KUNIT_ASSERT_NOT_NULL(test, errors);
	apic_clock_follow_use(follow, &scale, &rate, &reading);
	for (i = 0; i < STOPS; i++) {
		sim.now += below(5 * MS);
		lost = 1000 + below(10 * MS);
		sim.now += lost;
		sim.lost += lost;
		before = follow->lost;
		reading = read_all(reads);
		apic_clock_follow_use(follow, &scale, &rate, &reading);
		errors->found[i] = abs((s64)(follow->lost - before - lost));
		errors->common[i] = follow->offset - (s64)sim.lost;
		sum += errors->common[i];
	}
	for (i = 0; i < STOPS; i++)
		errors->common[i] = abs(errors->common[i] - div_s64(sum, STOPS));
	sort(errors->common, STOPS, sizeof(s64), compare, NULL);
	sort(errors->found, STOPS, sizeof(s64), compare, NULL);
	kunit_info(test, "%u reads, SMI in one of %u: off by p50 %lld, p99 %lld, max %lld; found p50 %lld, p99 %lld, max %lld",
		   reads, sim.smi, percentile(errors->common, 50), percentile(errors->common, 99),
		   errors->common[STOPS - 1], percentile(errors->found, 50),
		   percentile(errors->found, 99), errors->found[STOPS - 1]);
	return errors;
}

/*
 * Common time is right to a fraction of a tick after each of 1,000 stops, and so is the sum of the
 * measured losses, in spite of SMIs.
 */
static void stops_test(struct kunit *test)
{
	static const unsigned int smis[] = { 0, 2000, 100 };
	struct apic_clock_follow follow;
	struct stops *errors;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(smis); i++) {
		map_test_init(test);
		sim.smi = smis[i];
		follow = (struct apic_clock_follow) {};
		errors = stop_often(test, READS, &follow);
		KUNIT_EXPECT_LE(test, percentile(errors->common, 99), 50LL);
		KUNIT_EXPECT_LE(test, errors->common[STOPS - 1], 80LL);
		KUNIT_EXPECT_LE(test, percentile(errors->found, 99), 75LL);
		KUNIT_EXPECT_EQ(test, follow.stops, (u64)STOPS);
		KUNIT_EXPECT_LE(test, abs((s64)(follow.lost - sim.lost)), 110LL);
		KUNIT_EXPECT_EQ(test, follow.ahead, 0ULL);
		KUNIT_EXPECT_EQ(test, follow.rejected, 0ULL);

		/* The gain from twice the reads, and twice the time, after each idle state. */
		map_test_init(test);
		sim.smi = smis[i];
		follow = (struct apic_clock_follow) {};
		errors = stop_often(test, 2 * READS, &follow);
		KUNIT_EXPECT_LE(test, percentile(errors->common, 99), 40LL);
	}
	/* As in the paper: a single read, which is trusted even if it was interrupted. */
	map_test_init(test);
	sim.smi = 100;
	follow = (struct apic_clock_follow) {};
	errors = stop_often(test, 1, &follow);
	KUNIT_EXPECT_GT(test, percentile(errors->common, 99), 10000LL);
}

/* A running TSC is not found to have stopped, and its offset does not wander. */
static void runs_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_reading reading;
	unsigned int i;
	s64 base = 0;

	sim.smi = 100;
	for (i = 0; i < 10000; i++) {
		reading = read_all(READS);
		KUNIT_ASSERT_EQ(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 0LL);
		base = base ?: follow.offset;
		KUNIT_ASSERT_LE(test, abs(follow.offset - base), 100LL);
		sim.now += below(10 * MS);
	}
}

/* The same on other machines, with an HPET or the ACPI PM timer; stops are found there as well. */
static void other_machines_test(struct kunit *test)
{
	static const struct kind kinds[] = {
		{ 500000000, 1, 3579545 }, { 1000000000, 1, 100000000 },
		{ 2600000000, 26, 100000000 }, { 3600000000, 36, 14318180 },
		{ 5000000000, 1, 3579545 }, { 5000000000, 50, 24000000 },
		{ 8000000000, 80, 100000000 },
	};
	struct apic_clock_follow follow;
	struct apic_clock_reading reading;
	s64 base, most, lost, tick;
	unsigned int i, n;

	for (n = 0; n < ARRAY_SIZE(kinds); n++) {
		begin(&kinds[n]);
		follow = (struct apic_clock_follow) {};
		tick = div_u64(sim.hz, sim.ref_hz) + sim.step;
		for (i = 0, base = 0, most = 0; i < 2000; i++) {
			reading = read_all(READS);
			apic_clock_follow_use(&follow, &scale, &rate, &reading);
			base = base ?: follow.offset;
			most = max_t(s64, most, abs(follow.offset - base));
			sim.now += below(10 * MS);
		}
		kunit_info(test, "%llu MHz by %u, reference of %u kHz: stops %llu, ahead %llu; offset moves by %lld",
			   div_u64(sim.hz, 1000000), sim.step, sim.ref_hz / 1000, follow.stops,
			   follow.ahead, most);
		KUNIT_EXPECT_EQ(test, follow.stops, 0ULL);
		KUNIT_EXPECT_EQ(test, follow.ahead, 0ULL);
		KUNIT_EXPECT_LE(test, most, tick);
		sim.now += MS;
		sim.lost += MS;
		reading = read_all(READS);
		lost = apic_clock_follow_use(&follow, &scale, &rate, &reading);
		KUNIT_EXPECT_LE(test, abs(lost - (s64)MS), 2 * tick);
		KUNIT_EXPECT_EQ(test, follow.proven, 1ULL);
	}
}

/* A TSC that was set ahead is noticed; a stop during the reads yields no result. */
static void other_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_reading reading = read_all(READS);
	s64 base;

	apic_clock_follow_use(&follow, &scale, &rate, &reading);
	base = follow.offset;
	sim.lost -= 5000;
	reading = read_all(READS);
	KUNIT_EXPECT_LT(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), -4800LL);
	KUNIT_EXPECT_EQ(test, follow.ahead, 1ULL);
	KUNIT_EXPECT_EQ(test, follow.stops, 0ULL);
	KUNIT_EXPECT_EQ(test, follow.proven, 1ULL);
	KUNIT_EXPECT_LE(test, abs(follow.offset - (base - 5000)), 110LL);

	reading = (struct apic_clock_reading) {};
	read_one(&reading);
	sim.now += 100000;
	sim.lost += 100000;
	read_one(&reading);
	KUNIT_EXPECT_EQ(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 0LL);
	KUNIT_EXPECT_EQ(test, follow.rejected, 1ULL);
	KUNIT_EXPECT_LE(test, abs(follow.offset - (base - 5000)), 110LL);
	reading = read_all(READS);
	KUNIT_EXPECT_GT(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 99800LL);
	KUNIT_EXPECT_EQ(test, follow.proven, 2ULL);
}

/* A stop that is shorter than a read of the reference is found, but is no proof. */
static void short_stop_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_reading reading = read_all(READS);

	apic_clock_follow_use(&follow, &scale, &rate, &reading);
	sim.now += 1000;
	sim.lost += 1000;
	reading = read_all(READS);
	KUNIT_EXPECT_GT(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 800LL);
	KUNIT_EXPECT_EQ(test, follow.stops, 1ULL);
	KUNIT_EXPECT_EQ(test, follow.proven, 0ULL);

	/* An SMI in the only read of a comparison is no proof either. */
	reading = (struct apic_clock_reading) {};
	sim.smi = 1;
	read_one(&reading);
	apic_clock_follow_use(&follow, &scale, &rate, &reading);
	sim.smi = 0;
	reading = read_all(READS);
	apic_clock_follow_use(&follow, &scale, &rate, &reading);
	KUNIT_EXPECT_EQ(test, follow.proven, 0ULL);
}

/*
 * A delay of all reads of a comparison may hide a stop. Such a stop is neither counted nor
 * believed before undelayed reads show it.
 */
static void held_up_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_reading reading;
	unsigned int i;
	s64 base = 0;

	for (i = 0; i < 2000; i++) {
		sim.smi = i % 4 == 3;
		reading = read_all(READS);
		KUNIT_ASSERT_EQ(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 0LL);
		base = base ?: follow.offset;
		KUNIT_ASSERT_LE(test, abs(follow.offset - base), 100LL);
		sim.now += below(10 * MS);
	}
	/* Ten delays in a row, which hide a short stop, and then none. */
	sim.now += 5000;
	sim.lost += 5000;
	sim.smi = 1;
	for (i = 0; i < 10; i++) {
		reading = read_all(READS);
		KUNIT_EXPECT_EQ(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 0LL);
	}
	sim.smi = 0;
	reading = read_all(READS);
	KUNIT_EXPECT_GT(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 4800LL);
	KUNIT_EXPECT_EQ(test, follow.stops, 1ULL);

	/* A long stop is found at once, with a large error; its correction is no new fault. */
	sim.now += 20 * MS;
	sim.lost += 20 * MS;
	sim.smi = 1;
	reading = read_all(READS);
	KUNIT_EXPECT_GT(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 0LL);
	sim.smi = 0;
	reading = read_all(READS);
	KUNIT_EXPECT_EQ(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 0LL);
	KUNIT_EXPECT_LE(test, abs(follow.offset - (base + 5000 + 20 * (s64)MS)), 100LL);
	KUNIT_EXPECT_EQ(test, follow.stops, 2ULL);
	KUNIT_EXPECT_EQ(test, follow.ahead, 0ULL);
}

/* A permanently slow bus does not count as a delay: short stops are found as before. */
static void slower_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_reading reading;
	unsigned int i;

	for (i = 0; i < 5000; i++) {
		sim.slower = i < 100 ? 0 : 1000;
		reading = read_all(READS);
		apic_clock_follow_use(&follow, &scale, &rate, &reading);
		sim.now += below(10 * MS);
	}
	KUNIT_EXPECT_EQ(test, follow.stops, 0ULL);
	KUNIT_EXPECT_EQ(test, follow.ahead, 0ULL);
	sim.lost += 500;
	reading = read_all(READS);
	KUNIT_EXPECT_GT(test, apic_clock_follow_use(&follow, &scale, &rate, &reading), 300LL);
	KUNIT_EXPECT_EQ(test, follow.stops, 1ULL);
}

/* The TSC's true rate, times 2^32. */
static u64 truth(void)
{
	return (__int128)(sim.hz + (s64)sim.hz * sim.ppb / 1000000000) * (1ULL << 32) /
	       sim.ref_hz;
}

/* Compare every 100 ms for that time. Return: how often the rate was reported to have moved. */
static unsigned int fit_for(struct kunit *test, struct apic_clock_fit *fit, unsigned int seconds)
{
	unsigned int i, moved = 0;
	struct apic_clock_reading reading;

	for (i = 0; i < 10 * seconds; i++) {
		rate = fit->rate;
		reading = read_all(READS);
		KUNIT_ASSERT_LE(test, (s64)(reading.low - reading.high), 0LL);
		moved += apic_clock_fit_use(fit, &reading, sim.ref_hz);
		sim.now += 100 * MS;
	}
	return moved;
}

/* The truth is within the bounds, which become narrow, and the kernel is 20 ppm off. */
static void rate_test(struct kunit *test)
{
	struct apic_clock_fit fit = {};
	static const unsigned int smis[] = { 0, 20 };
	static const struct {
		unsigned int seconds;
		u64 ppb;
	} within[] = { { 1, 2000 }, { 9, 150 }, { 90, 90 } };
	unsigned int i, n, seconds;

	for (n = 0; n < ARRAY_SIZE(smis); n++) {
		map_test_init(test);
		sim.smi = smis[n];
		sim.ppb = -20000;
		seconds = 0;
		apic_clock_fit_init(&fit, nominal());
		for (i = 0; i < ARRAY_SIZE(within); i++) {
			KUNIT_EXPECT_EQ(test, fit_for(test, &fit, within[i].seconds), 0U);
			KUNIT_EXPECT_LE(test, fit.rate.low, truth());
			KUNIT_EXPECT_GE(test, fit.rate.high, truth());
			KUNIT_EXPECT_LE(test, apic_clock_fit_error_ppb(&fit), within[i].ppb);
			seconds += within[i].seconds;
			kunit_info(test, "rate after %u s, SMI in one of %u: within %llu ppb",
				   seconds, sim.smi, apic_clock_fit_error_ppb(&fit));
		}
		KUNIT_EXPECT_TRUE(test, fit.fitted);
		kunit_info(test, "SMI in one of %u: %lld ppb, within %llu", sim.smi,
			   apic_clock_fit_ppb(&fit, apic_clock_rate_middle(&fit.rate)),
			   apic_clock_fit_error_ppb(&fit));
	}
}

/*
 * Compare every @ms for @seconds, as resync.c does: follow, break, fit, bend.
 * Return: how often the rate was reported to have moved.
 */
static unsigned int compare_for(struct kunit *test, struct apic_clock_fit *fit,
				struct apic_clock_follow *follow, bool may_stop, unsigned int ms,
				unsigned int seconds)
{
	unsigned int i, moved = 0;
	struct apic_clock_reading reading;
	struct apic_clock_rate runs;
	u64 breaks;

	for (i = 0; i < 1000 * seconds / ms; i++) {
		sim.now += ms * MS;
		rate = fit->rate;
		runs = apic_clock_fit_runs(fit, may_stop);
		reading = read_all(READS);
		breaks = follow->stops + follow->ahead;
		apic_clock_follow_use(follow, &scale, &runs, &reading);
		if (follow->stops + follow->ahead != breaks)
			apic_clock_fit_break(fit);
		moved += apic_clock_fit_use(fit, &reading, sim.ref_hz);
		scale.common = apic_clock_scale_at(&scale, reading.ref);
		scale.ref = reading.ref;
		scale.rate = apic_clock_rate_middle(&fit->rate);
	}
	return moved;
}

static void expect_truth(struct kunit *test, const struct apic_clock_fit *fit,
			 const struct apic_clock_follow *follow)
{
	kunit_info(test, "%+lld ppb: %+lld within %llu, moved %u; stops %llu, lost %llu, ahead %llu",
		   sim.ppb, apic_clock_fit_ppb(fit, apic_clock_rate_middle(&fit->rate)),
		   apic_clock_fit_error_ppb(fit), fit->moved, follow->stops, follow->lost,
		   follow->ahead);
	KUNIT_EXPECT_LE(test, fit->rate.low, truth());
	KUNIT_EXPECT_GE(test, fit->rate.high, truth());
}

/* A change of the rate is reported once; the drift of crystals that warm up is not. */
static void guard_test(struct kunit *test)
{
	/* The kernel's watchdog sees 400 ppm and more. */
	static const s64 changes[] = { 4000, -5000, 400000, -400000 };
	struct apic_clock_follow follow = {};
	struct apic_clock_fit fit = {};
	unsigned int i;

	apic_clock_fit_init(&fit, nominal());
	KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 10000, 100), 0U);
	/* 1 ppm in an hour. */
	for (i = 0; i < 360; i++) {
		run_at(sim.ppb + 3);
		KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 10000, 10), 0U);
	}
	expect_truth(test, &fit, &follow);
	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		run_at(sim.ppb + changes[i]);
		KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 10000, 30), 1U);
		expect_truth(test, &fit, &follow);
		KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 10000, 100), 0U);
	}
	KUNIT_EXPECT_EQ(test, fit.moved, (unsigned int)ARRAY_SIZE(changes));

	/* After a sleep the fit begins anew, but the TSC is no better than before. */
	apic_clock_fit_init(&fit, nominal());
	KUNIT_EXPECT_FALSE(test, fit.fitted);
	KUNIT_EXPECT_EQ(test, fit.moved, (unsigned int)ARRAY_SIZE(changes));
	KUNIT_EXPECT_EQ(test, follow.stops, 0ULL);
	KUNIT_EXPECT_EQ(test, follow.ahead, 0ULL);
}

/* A stop, or setting the TSC by a little or by much, is no change of the rate. */
static void stopped_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_fit fit = {};

	apic_clock_fit_init(&fit, nominal());
	compare_for(test, &fit, &follow, true, 1000, 100);
	sim.now += 5 * MS;
	sim.lost += 5 * MS;
	KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, true, 1000, 100), 0U);
	KUNIT_EXPECT_EQ(test, follow.stops, 1ULL);
	KUNIT_EXPECT_LE(test, abs((s64)(follow.lost - sim.lost)), (s64)MS / 100);
	expect_truth(test, &fit, &follow);

	/* A TSC that never stops. */
	map_test_init(test);
	follow = (struct apic_clock_follow) {};
	apic_clock_fit_init(&fit, nominal());
	compare_for(test, &fit, &follow, false, 1000, 100);
	sim.lost -= MS;
	KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 1000, 100), 0U);
	expect_truth(test, &fit, &follow);
	sim.lost -= 100 * MS;
	KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 1000, 100), 0U);
	KUNIT_EXPECT_EQ(test, follow.ahead, 1ULL);
	KUNIT_EXPECT_EQ(test, follow.stops, 0ULL);
	expect_truth(test, &fit, &follow);
}

/* Common time minus the time of the reference, at the TSC's true rate. */
static s64 common_off(void)
{
	u64 now = ref();

	return apic_clock_scale_at(&scale, now) - (u64)(((__int128)now * nominal()) >> 32);
}

/*
 * Common time does not follow a rate that a single reading suggests. It follows a rate that lasts,
 * even if it takes many readings to recognise it.
 */
static void doubted_test(struct kunit *test)
{
	static const unsigned int every[] = { 100, 1000, 10000 };
	struct apic_clock_follow follow;
	struct apic_clock_fit fit = {};
	unsigned int i, n;
	s64 off;

	for (i = 0; i < 2 * ARRAY_SIZE(every); i++) {
		map_test_init(test);
		follow = (struct apic_clock_follow) {};
		apic_clock_fit_init(&fit, nominal());
		compare_for(test, &fit, &follow, false, every[i / 2], 100);
		off = common_off();
		/* The TSC is set ahead by 15 ms, or the reference stands still for as long. */
		if (i % 2)
			sim.since += 15 * MS;
		else
			sim.lost -= 15 * MS;
		for (n = 0; n < 10; n++) {
			KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, every[i / 2],
							  10), 0U);
			KUNIT_EXPECT_LE(test, abs(common_off() - off), (s64)MS / 10);
		}
		expect_truth(test, &fit, &follow);

		run_at(4000);
		KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, every[i / 2], 100),
				1U);
		expect_truth(test, &fit, &follow);
	}
}

/* A stop also ends a doubt: a new window begins, of which nothing is known. */
static void break_test(struct kunit *test)
{
	struct apic_clock_follow follow = {};
	struct apic_clock_fit fit = {};
	s64 off;

	apic_clock_fit_init(&fit, nominal());
	compare_for(test, &fit, &follow, false, 10000, 100);
	off = common_off();
	sim.lost -= 15 * MS;
	compare_for(test, &fit, &follow, false, 10000, 10);
	apic_clock_fit_break(&fit);
	compare_for(test, &fit, &follow, false, 10000, 10);
	sim.lost -= 15 * MS;
	KUNIT_EXPECT_EQ(test, compare_for(test, &fit, &follow, false, 10000, 100), 0U);
	KUNIT_EXPECT_LE(test, abs(common_off() - off), (s64)MS / 10);
	expect_truth(test, &fit, &follow);
}

static void extend_test(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i, bits;
	u64 value, off;
	u32 raw;

	prandom_seed_state(&rnd, 10);
	for (i = 0; i < 100000; i++) {
		bits = i % 2 ? 24 : 32;
		value = (u64)prandom_u32_state(&rnd) << 20 | prandom_u32_state(&rnd) % (1 << 20);
		off = prandom_u32_state(&rnd) >> (32 - (bits - 1));
		raw = value & GENMASK_ULL(bits - 1, 0);
		KUNIT_ASSERT_EQ(test, apic_clock_extend(value + off, raw, bits), value);
		KUNIT_ASSERT_EQ(test, apic_clock_extend(value - off, raw, bits), value);
	}
}

/* On a CPU whose clock is behind, the estimate is a few ticks less, not rounds of the counter. */
static void expect_test(struct kunit *test)
{
	const u64 ref = 123456789012ULL;

	KUNIT_EXPECT_EQ(test, apic_clock_expect(ref, 0, 14318180), ref);
	KUNIT_EXPECT_EQ(test, apic_clock_expect(ref, 10000000000LL, 14318180), ref + 143181800);
	KUNIT_EXPECT_EQ(test, apic_clock_expect(ref, -100000, 14318180), ref - 1431);
	KUNIT_EXPECT_EQ(test, apic_clock_expect(ref, -4000000, 3579545), ref - 14318);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(stops_test),
	KUNIT_CASE(runs_test),
	KUNIT_CASE(other_machines_test),
	KUNIT_CASE(other_test),
	KUNIT_CASE(short_stop_test),
	KUNIT_CASE(held_up_test),
	KUNIT_CASE(slower_test),
	KUNIT_CASE(rate_test),
	KUNIT_CASE(guard_test),
	KUNIT_CASE(stopped_test),
	KUNIT_CASE(doubted_test),
	KUNIT_CASE(break_test),
	KUNIT_CASE(extend_test),
	KUNIT_CASE(expect_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_clock_map",
	.init = map_test_init,
	.test_cases = cases,
};

kunit_test_suite(suite);
