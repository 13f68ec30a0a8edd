// SPDX-License-Identifier: GPL-2.0
/*
 * The map of a PTP clock, compared with a clock whose truth is known: a TSC of 2.596 GHz
 * unless a case has another, reads that take up to 300 cycles each way, eight of them every
 * 50 ms.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/prandom.h>

#include "phc_map.h"

#define TSC_HZ		2596146000ULL
#define READS		8
#define AHEAD_NS	(100 * NSEC_PER_MSEC)
/* Fractions of a ns: 64 bits hold the clock with its fraction. */
#define FINE		256
#define START_NS	1700000000000000000LL

/**
 * struct sim - the machine
 * @hz:		the TSC's frequency
 * @step:	step in which it counts, cycles
 * @grain:	step in which the clock counts, ns
 * @now:	TSC, in single cycles
 * @bus:	maximum time of a read each way, cycles
 * @ppb:	how much faster than by @hz the clock runs
 * @since:	TSC from which on it has run at that rate
 * @ref:	the clock's time then, ns times %FINE
 * @rnd:	random numbers
 */
static struct sim {
	u64 hz;
	u32 step;
	u32 grain;
	u64 now;
	u32 bus;
	s64 ppb;
	u64 since;
	s64 ref;
	struct rnd_state rnd;
} sim;

static struct apic_clock_phc_map map;

static s64 fine_at(u64 tsc)
{
	__int128 cycles = (__int128)tsc - sim.since;

	return sim.ref + (s64)(cycles * FINE * (s64)(NSEC_PER_SEC + sim.ppb) / (s64)sim.hz);
}

/* The first TSC at which the clock reads a value, by bisection, without the map. */
static u64 truth(s64 when)
{
	u64 low = 0, high = sim.now + 100 * sim.hz, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (fine_at(middle) >= when * FINE)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static s64 clock_now(void)
{
	s64 ns = fine_at(sim.now) / FINE;

	return ns - ns % sim.grain;
}

static u64 tsc_now(void)
{
	return sim.now - sim.now % sim.step;
}

static u64 nominal(void)
{
	return ((__int128)sim.hz << 32) / NSEC_PER_SEC;
}

static u32 below(u32 limit)
{
	return limit ? prandom_u32_state(&sim.rnd) % limit : 0;
}

static void change(s64 ppb, s64 step_ns)
{
	sim.ref = fine_at(sim.now) + step_ns * FINE;
	sim.since = sim.now;
	sim.ppb = ppb;
}

/* Read one burst, after a period. Return: as apic_clock_phc_map_use(). */
static bool burst(void)
{
	struct apic_clock_rate runs = apic_clock_phc_map_runs(&map);
	struct apic_clock_reading reading = {};
	unsigned int i;
	u64 before;
	s64 read;

	sim.now += sim.hz / 20;
	for (i = 0; i < READS; i++) {
		before = tsc_now();
		sim.now += 30 + below(sim.bus);
		read = clock_now();
		sim.now += 30 + below(sim.bus);
		apic_clock_reading_add(&reading, &runs, before, read, tsc_now());
	}
	return apic_clock_phc_map_use(&map, &reading);
}

/* Unknown error in cycles: the map assumes that both count one by one. */
static s64 steps(void)
{
	u64 grain = DIV_ROUND_UP_ULL((sim.grain - 1) * sim.hz, NSEC_PER_SEC);

	return grain + sim.step - 1;
}

/* Return the error of a prediction; it must be within the promised error. */
static s64 predict(struct kunit *test, s64 ahead)
{
	s64 when = clock_now() + ahead, off;
	u64 error;

	off = apic_clock_phc_line_tsc(&map.line, when, &error) - truth(when);
	KUNIT_EXPECT_LE(test, abs(off), (s64)min_t(u64, error, S64_MAX - steps()) + steps());
	return off;
}

static void begin(void)
{
	sim.now = 1ULL << 40;
	sim.since = sim.now;
	sim.ref = START_NS / 1024 * FINE;
	sim.ppb = 0;
	prandom_seed_state(&sim.rnd, 11);
	apic_clock_phc_map_init(&map, nominal());
}

static int phc_map_test_init(struct kunit *test)
{
	sim = (struct sim) { .hz = TSC_HZ, .step = 1, .grain = 1, .bus = 300 };
	begin();
	return 0;
}

static void predicts_100_ms_ahead(struct kunit *test)
{
	static const s64 rates[] = { 0, 100000, -100000, 62499999, -40000000 };
	s64 off, most = 0;
	unsigned int i, n;
	u64 error = 0, last;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		phc_map_test_init(test);
		change(rates[i], 0);
		for (n = 0; n < 400; n++) {
			burst();
			if (map.count < 2)
				continue;
			off = predict(test, AHEAD_NS);
			predict(test, 0);
			predict(test, 3600 * (s64)NSEC_PER_SEC / 100);
			predict(test, -(s64)NSEC_PER_SEC / 10);
			if (n < APIC_CLOCK_PHC_READINGS)
				continue;
			most = max_t(s64, most, abs(off));
			apic_clock_phc_line_tsc(&map.line, clock_now() + AHEAD_NS, &last);
			error = max(error, last);
		}
	}
	kunit_info(test, "100 ms ahead: off by %lld cycles at most, promised %llu", most, error);
	KUNIT_EXPECT_LE(test, most, 40LL);
	KUNIT_EXPECT_LE(test, error, 150ULL);
}

/* TSCs and clocks of other machines: a network card counts by 125 or 25 MHz. */
static void takes_any_tsc_and_clock(struct kunit *test)
{
	static const struct {
		u64 hz;
		u32 step, grain;
	} machines[] = {
		{ 500000000, 1, 1 }, { 1000000000, 1, 8 }, { 2596146000, 26, 1 },
		{ 2596146000, 26, 8 }, { 3600000000, 36, 40 }, { 5000000000, 1, 40 },
		{ 5000000000, 50, 8 }, { 8000000000, 1, 1 }, { 8000000000, 80, 64 },
	};
	unsigned int i, n, set;
	s64 most, off;

	for (i = 0; i < ARRAY_SIZE(machines); i++) {
		sim.hz = machines[i].hz;
		sim.step = machines[i].step;
		sim.grain = machines[i].grain;
		/* The bus is as fast as before, but the TSC is not. */
		sim.bus = mul_u64_u64_div_u64(300, sim.hz, TSC_HZ);
		begin();
		change(20000, 0);
		for (n = 0, most = 0, set = 0; n < 200; n++) {
			set += burst();
			if (n < APIC_CLOCK_PHC_READINGS)
				continue;
			off = predict(test, AHEAD_NS);
			predict(test, -(s64)NSEC_PER_SEC / 10);
			most = max_t(s64, most, abs(off));
		}
		kunit_info(test, "%llu MHz by %u, clock by %u ns: off by %lld cycles at most",
			   div_u64(sim.hz, 1000000), sim.step, sim.grain, most);
		KUNIT_EXPECT_EQ(test, set, 1U);
		KUNIT_EXPECT_LE(test, most, (s64)mul_u64_u64_div_u64(40, sim.hz, TSC_HZ) + steps());
	}
}

static void follows_a_step(struct kunit *test)
{
	static const s64 steps[] = { 1000000, -1000000, 3600000000000, -3600000000000, 2000 };
	unsigned int i, n;

	for (n = 0; n < 60; n++)
		KUNIT_EXPECT_EQ(test, burst(), n == 0);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		change(sim.ppb, steps[i]);
		KUNIT_EXPECT_TRUE(test, burst());
		/* Its rate is known: the line is at once as good as a reading. */
		KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 250LL);
		for (n = 0; n < 60; n++)
			KUNIT_EXPECT_FALSE(test, burst());
		KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 40LL);
	}
}

static void follows_what_it_is_steered_by(struct kunit *test)
{
	static const s64 ppm[] = { 50, -50, 500, -500, 0 };
	unsigned int i, n;

	for (n = 0; n < 60; n++)
		burst();
	for (i = 0; i < ARRAY_SIZE(ppm); i++) {
		change(ppm[i] * 1000, 0);
		apic_clock_phc_map_steer(&map, ppm[i] * 65536);
		KUNIT_EXPECT_FALSE(test, burst());
		KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 600LL);
		for (n = 0; n < 60; n++) {
			KUNIT_EXPECT_FALSE(test, burst());
			predict(test, AHEAD_NS);
		}
	}
	/* Steered twice before it is read: the rate changes by both. */
	change(300000, 0);
	apic_clock_phc_map_steer(&map, 300 * 65536);
	change(-400000, 0);
	apic_clock_phc_map_steer(&map, -400 * 65536);
	KUNIT_EXPECT_FALSE(test, burst());
	KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 600LL);
	/* Steered and set at the same time. */
	change(10000, 5000000);
	apic_clock_phc_map_steer(&map, 10 * 65536);
	KUNIT_EXPECT_TRUE(test, burst());
	predict(test, AHEAD_NS);
}

/*
 * A servo steers a clock that counts by 40 ns, eight times a second. There are never enough
 * readings on one line to find the length of the step, except by contradictions.
 */
static void follows_a_servo_and_steps(struct kunit *test)
{
	s64 off, most = 0, sum = 0, ppm = 20;
	unsigned int i, n, set = 0;

	sim.hz = 5000000000;
	sim.grain = 40;
	sim.bus = 600;
	begin();
	change(ppm * 1000, 0);
	for (n = 0; n < 60; n++)
		set += burst();
	for (i = 0; i < 400; i++) {
		ppm += (s64)below(5) - 2;
		change(ppm * 1000, 0);
		apic_clock_phc_map_steer(&map, (ppm - 20) * 65536);
		for (n = 0; n < 3; n++)
			set += burst();
		off = abs(predict(test, AHEAD_NS));
		sum += off;
		most = max(most, off);
	}
	kunit_info(test, "off by %lld cycles on average, %lld at most; a step is %lld; seemed set %u times",
		   div_s64(sum, 400), most, steps(), set - 1);
	KUNIT_EXPECT_EQ(test, set, 1U);
	KUNIT_EXPECT_LE(test, most, 1500LL);
}

/*
 * A servo steers more often than the clock is read: no line has two readings, from which its
 * rate could be learnt. What is known of the rate must not vanish bit by bit.
 */
static void follows_a_servo_that_never_waits(struct kunit *test)
{
	s64 scaled = 0, ppb = 0;
	unsigned int n, set = 0;

	sim.hz = 5000000000;
	sim.bus = 600;
	begin();
	for (n = 0; n < 60; n++)
		set += burst();
	for (n = 0; n < 50000; n++) {
		ppb += 10 * ((s64)below(3) - 1);
		change(ppb, 0);
		scaled = div_s64(ppb * 65536, 1000);
		apic_clock_phc_map_steer(&map, scaled);
		set += burst();
		if (n % 100 == 0)
			predict(test, AHEAD_NS);
	}
	kunit_info(test, "the rate is known to %llu ppb",
		   mul_u64_u64_div_u64(map.line.drift, NSEC_PER_SEC, nominal()));
	KUNIT_EXPECT_EQ(test, set, 1U);
	KUNIT_EXPECT_LE(test, map.line.drift, div_u64(nominal(), 10000));
	KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 10000LL);

	/* Set a little, less than what is noticed: this spoils one line. */
	change(ppb, 100000);
	apic_clock_phc_map_steer(&map, scaled + 1);
	burst();
	predict(test, AHEAD_NS);
	apic_clock_phc_map_steer(&map, scaled);
	burst();
	predict(test, AHEAD_NS);
	KUNIT_EXPECT_LE(test, map.line.drift, div_u64(nominal(), 10000));
}

/* The widest ranges of drivers (i40e: 999,999,999 ppb) leave next to nothing of the rate. */
static void survives_any_frequency(struct kunit *test)
{
	static const s64 scaled[] = {
		-65535999935, -65535999999, -65536000000, -65536000001, 65535999935, S64_MIN,
		S64_MAX,
	};
	unsigned int i, n;

	sim.hz = 5000000000;
	sim.bus = 600;
	begin();
	for (i = 0; i < ARRAY_SIZE(scaled); i++) {
		for (n = 0; n < 60; n++)
			burst();
		apic_clock_phc_map_steer(&map, scaled[i]);
		burst();
		apic_clock_phc_map_steer(&map, 0);
		burst();
	}
	for (n = 0; n < 60; n++)
		KUNIT_EXPECT_FALSE(test, burst());
	KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 80LL);
}

/*
 * A clock that is corrected once a second never fills the ring on one line. The map forgets a
 * step that one reading has made long, but not the clock's own step.
 */
static void shortens_its_step_between_corrections(struct kunit *test)
{
	static const u32 grains[] = { 1, 40 };
	unsigned int i, n, second, set;
	s64 ppm;

	sim.bus = 20;
	for (i = 0; i < ARRAY_SIZE(grains); i++) {
		sim.grain = grains[i];
		begin();
		for (n = 0, set = 0; n < 60; n++)
			set += burst();
		map.step = 128;
		map.since = 0;
		for (second = 0, ppm = 0; second < 60; second++) {
			ppm += (s64)below(5) - 2;
			change(ppm * 1000, 0);
			apic_clock_phc_map_steer(&map, ppm * 65536);
			for (n = 0; n < 20; n++)
				set += burst();
			predict(test, AHEAD_NS);
		}
		kunit_info(test, "clock by %u ns: step %u", sim.grain, map.step);
		KUNIT_EXPECT_EQ(test, set, 1U);
		KUNIT_EXPECT_LT(test, map.step, 2 * sim.grain);
		/* The duration of reads covers the rest of the step. */
		KUNIT_EXPECT_GE(test, 4 * map.step, sim.grain);
	}
}

/* A hypervisor takes the CPU away for 100 ms in each read, which widens the bounds. */
static void takes_reads_that_last_long(struct kunit *test)
{
	unsigned int n;
	u64 error;

	for (n = 0; n < 60; n++)
		burst();
	sim.bus = sim.hz / 10;
	KUNIT_EXPECT_FALSE(test, burst());
	KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 40LL);
	for (n = 0; n < 60; n++) {
		KUNIT_EXPECT_FALSE(test, burst());
		predict(test, AHEAD_NS);
	}
	apic_clock_phc_line_tsc(&map.line, clock_now(), &error);
	KUNIT_EXPECT_GT(test, error, sim.hz / 1000);
	sim.bus = 300;
	KUNIT_EXPECT_FALSE(test, burst());
	KUNIT_EXPECT_LE(test, abs(predict(test, 0)), 300LL);
	for (n = 0; n < 60; n++)
		KUNIT_EXPECT_FALSE(test, burst());
	KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 40LL);
}

/* The driver changes the rate without reporting it: at first that looks like a step. */
static void finds_another_rate(struct kunit *test)
{
	unsigned int n, set = 0;

	for (n = 0; n < 60; n++)
		burst();
	change(20000, 0);
	for (n = 0; n < 60; n++)
		set += burst();
	KUNIT_EXPECT_LE(test, set, 2U);
	for (n = 0; n < 60; n++) {
		burst();
		KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 40LL);
	}
}

/* The TSC restarts in a suspend, or the clock stands still. */
static void survives_nonsense(struct kunit *test)
{
	struct apic_clock_reading reading = {};
	unsigned int n;

	for (n = 0; n < 60; n++)
		burst();
	change(sim.ppb, 0);
	sim.ref = fine_at(sim.now);
	sim.now = 1ULL << 30;
	sim.since = sim.now;
	KUNIT_EXPECT_TRUE(test, burst());
	for (n = 0; n < 60; n++)
		KUNIT_EXPECT_FALSE(test, burst());
	predict(test, AHEAD_NS);

	for (n = 0; n < 3; n++) {
		reading = (struct apic_clock_reading) {
			.ref = clock_now(), .low = sim.now, .high = sim.now + 10, .reads = 1,
		};
		apic_clock_phc_map_use(&map, &reading);
		sim.now += sim.hz / 20;
	}
	/* A reading that is impossible with any step of the clock. */
	reading.high = reading.low - sim.hz / USEC_PER_SEC;
	KUNIT_EXPECT_FALSE(test, apic_clock_phc_map_use(&map, &reading));
	for (n = 0; n < 60; n++)
		burst();
	KUNIT_EXPECT_LE(test, abs(predict(test, AHEAD_NS)), 40LL);
	/* Two readings at one moment. */
	reading = (struct apic_clock_reading) {
		.ref = clock_now() + 1, .low = sim.now, .high = sim.now + 1, .reads = 1,
	};
	apic_clock_phc_map_use(&map, &reading);
	KUNIT_EXPECT_GT(test, map.line.rate, 0ULL);
}

static void converts_far_away(struct kunit *test)
{
	struct apic_clock_phc_line line = { .ref = START_NS, .tsc = 1ULL << 40, .rate = nominal(),
					    .error = 5, .drift = 10 };
	u64 error, tsc;
	s64 back;

	tsc = apic_clock_phc_line_tsc(&line, START_NS + 1000, &error);
	KUNIT_EXPECT_EQ(test, tsc, (1ULL << 40) + 2596);
	KUNIT_EXPECT_EQ(test, error, 6ULL);
	back = apic_clock_phc_line_read(&line, tsc);
	KUNIT_EXPECT_LE(test, abs(back - START_NS - 1000), 1LL);
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_tsc(&line, S64_MIN, &error), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_tsc(&line, 0, &error), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_tsc(&line, KTIME_MAX, &error), U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_read(&line, U64_MAX), START_NS +
			(s64)mul_u64_u64_div_u64(U64_MAX - line.tsc, BIT_ULL(32), nominal()));
	KUNIT_EXPECT_LT(test, apic_clock_phc_line_read(&line, 0), START_NS);
	/* A slow TSC: its last value is later than any clock reads. */
	line.rate = 1ULL << 25;
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_read(&line, U64_MAX), KTIME_MAX);
	/* Nothing is known. */
	line.rate = 0;
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_tsc(&line, START_NS, &error), U64_MAX);
	KUNIT_EXPECT_EQ(test, error, U64_MAX);
	KUNIT_EXPECT_EQ(test, apic_clock_phc_line_read(&line, 0), KTIME_MAX);
}

static struct kunit_case phc_map_test_cases[] = {
	KUNIT_CASE(predicts_100_ms_ahead),
	KUNIT_CASE(takes_any_tsc_and_clock),
	KUNIT_CASE(follows_a_step),
	KUNIT_CASE(follows_what_it_is_steered_by),
	KUNIT_CASE(follows_a_servo_and_steps),
	KUNIT_CASE(follows_a_servo_that_never_waits),
	KUNIT_CASE(survives_any_frequency),
	KUNIT_CASE(shortens_its_step_between_corrections),
	KUNIT_CASE(takes_reads_that_last_long),
	KUNIT_CASE(finds_another_rate),
	KUNIT_CASE(survives_nonsense),
	KUNIT_CASE(converts_far_away),
	{}
};

static struct kunit_suite phc_map_test_suite = {
	.name = "apic_timer_phc_map",
	.init = phc_map_test_init,
	.test_cases = phc_map_test_cases,
};

kunit_test_suite(phc_map_test_suite);

MODULE_LICENSE("GPL");
