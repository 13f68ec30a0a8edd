// SPDX-License-Identifier: GPL-2.0
/*
 * Fit a line through readings of a PTP hardware clock: see phc_map.h.
 *
 * Unlike the counters in map.c, such a clock is steered all the time, so its rate of some
 * minutes ago is worthless.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "phc_map.h"

#define SHIFT		APIC_CLOCK_RATE_SHIFT
/* Maximum deviation of a clock's rate before it was read twice: 2^-3. Drivers allow 6 %. */
#define WIDE_SHIFT	3
/* Maximum change of the rate by steering during a burst of reads: 2^-10. */
#define BURST_SHIFT	10
/* Age beyond which readings say nothing about the present rate, ns. */
#define OLD_NS		(4ULL * NSEC_PER_SEC)
/* Error by which a driver rounds a steering frequency: 2^-8 of it, plus 2^-26, some 15 ppb. */
#define STEER_SHIFT	8
#define ROUND_SHIFT	26
/* Longest step in which a clock may count, ns; a longer step means that the clock was set. */
#define STEP_MAX	128
/* Minimum number of readings on a line: fewer agree with almost any step. */
#define FEW		8
/* 1.0 in units of scaled ppm. */
#define SCALED		(1000000LL << 16)

static const struct apic_clock_reading *reading_at(const struct apic_clock_phc_map *map,
						   unsigned int n)
{
	return &map->readings[(map->first + n) % APIC_CLOCK_PHC_READINGS];
}

static void drop_oldest(struct apic_clock_phc_map *map)
{
	map->first = (map->first + 1) % APIC_CLOCK_PHC_READINGS;
	map->count--;
}

static void keep_newest(struct apic_clock_phc_map *map)
{
	while (map->count > 1)
		drop_oldest(map);
}

static struct apic_clock_rate around(const struct apic_clock_rate *rate, u64 by)
{
	return (struct apic_clock_rate) {
		.low = rate->low > by ? rate->low - by : 0,
		.high = rate->high + by,
	};
}

static struct apic_clock_rate anything(const struct apic_clock_phc_map *map)
{
	const struct apic_clock_rate nominal = { .low = map->nominal, .high = map->nominal };

	return around(&nominal, map->nominal >> WIDE_SHIFT);
}

/**
 * apic_clock_phc_map_init() - begin without readings
 * @map:	the map
 * @nominal:	cycles per ns by the TSC's frequency, times 2^32
 *
 * Context: Any.
 */
void apic_clock_phc_map_init(struct apic_clock_phc_map *map, u64 nominal)
{
	*map = (struct apic_clock_phc_map) { .nominal = nominal, .step = 1 };
	map->prior = anything(map);
	map->rate = map->prior;
}

/**
 * apic_clock_phc_map_runs() - get bounds of the clock's rate during a burst of reads
 * @map:	the map
 *
 * Context: Any.
 * Return: the bounds, for apic_clock_reading_add().
 */
struct apic_clock_rate apic_clock_phc_map_runs(const struct apic_clock_phc_map *map)
{
	return around(&map->rate, map->nominal >> BURST_SHIFT);
}

static s64 cycles_in(s64 ns, u64 rate)
{
	return (__int128)ns * rate >> SHIFT;
}

/* Return: cycles by which the clock's steps lower the lower bound of a reading. */
static s64 behind(const struct apic_clock_phc_map *map)
{
	return cycles_in(map->step - 1, map->nominal);
}

/*
 * Possible error of a line through an old reading: crystals drift by 1 ppb each second, so it
 * is half of 10^-18 times the square of the reading's age, in ns.
 */
static u64 astray(const struct apic_clock_phc_map *map, u64 age)
{
	u64 ms = age >> 20;

	return (ms * ms * (map->nominal >> 16)) >> 37;
}

/**
 * struct fraction - cycles per ns
 * @cycles:	cycles
 * @ns:		ns, 0 if there is none yet
 */
struct fraction {
	u64 cycles;
	u64 ns;
};

static bool is_less(u64 cycles, u64 ns, const struct fraction *than)
{
	return (__int128)cycles * than->ns < (__int128)than->cycles * ns;
}

static u64 rate_of(const struct fraction *of)
{
	/* The quotient has to fit. */
	if (of->cycles >> SHIFT >= of->ns)
		return U64_MAX - 1;
	return mul_u64_u64_div_u64(of->cycles, BIT_ULL(SHIFT), of->ns);
}

static void span_all(struct apic_clock_phc_map *map)
{
	const struct apic_clock_reading *last = reading_at(map, map->count - 1);
	const struct apic_clock_reading *reading;
	unsigned int n;
	u64 age, by;

	for (n = 0; n < map->count; n++) {
		reading = reading_at(map, n);
		age = last->ref - reading->ref;
		by = astray(map, age);
		map->spans[n] = (struct apic_clock_phc_span) {
			.age = age,
			.low = reading->low - last->low - by - behind(map),
			.high = reading->high - last->low + by,
		};
	}
}

/* Bound the rate by all pairs of readings. Return: false if no rate fits. */
static bool fit_rate(const struct apic_clock_phc_map *map, struct apic_clock_rate *rate)
{
	struct fraction least = {}, most = {};
	struct apic_clock_phc_span older, newer;
	unsigned int i, j;
	u64 ns;

	for (j = 1; j < map->count; j++) {
		newer = map->spans[j];
		for (i = 0; i < j; i++) {
			older = map->spans[i];
			ns = older.age - newer.age;
			if (newer.high <= older.low)
				return false;
			if (!most.ns || is_less(newer.high - older.low, ns, &most))
				most = (struct fraction) { newer.high - older.low, ns };
			if (newer.low <= older.high)
				continue;
			if (!least.ns || !is_less(newer.low - older.high, ns, &least))
				least = (struct fraction) { newer.low - older.high, ns };
		}
	}
	*rate = map->prior;
	if (most.ns)
		rate->high = min(rate->high, rate_of(&most) + 1);
	if (least.ns)
		rate->low = max(rate->low, rate_of(&least));
	return rate->low <= rate->high;
}

/* Compute the line. Return: false if no line fits all readings. */
static bool fit(struct apic_clock_phc_map *map)
{
	const struct apic_clock_reading *last = reading_at(map, map->count - 1);
	s64 low = S64_MIN, high = S64_MAX;
	struct apic_clock_rate rate;
	const struct apic_clock_phc_span *span;
	unsigned int i;

	span_all(map);
	if (!fit_rate(map, &rate))
		return false;
	for (i = 0; i < map->count; i++) {
		span = &map->spans[i];
		low = max(low, span->low + cycles_in(span->age, rate.low));
		high = min(high, span->high + cycles_in(span->age, rate.high) + 1);
	}
	if (low > high)
		return false;
	map->rate = rate;
	map->line = (struct apic_clock_phc_line) {
		.ref = last->ref,
		.tsc = last->low + low + (high - low) / 2,
		.rate = rate.low + (rate.high - rate.low) / 2,
		.error = (high - low) / 2 + 1,
		.drift = (rate.high - rate.low) / 2 + 1,
	};
	return true;
}

/* Lengthen the step if the reading needs it to agree with itself. Return: false if none fits. */
static bool is_possible(struct apic_clock_phc_map *map, const struct apic_clock_reading *reading)
{
	const unsigned int step = map->step;

	for (; map->step <= STEP_MAX; map->step *= 2) {
		if ((s64)(reading->high - reading->low) + behind(map) < 0)
			continue;
		if (map->step != step)
			map->since = 0;
		return true;
	}
	map->step = step;
	return false;
}

/* Lengthen the step until the readings agree. Return: false if they never do. */
static bool lengthen_step(struct apic_clock_phc_map *map)
{
	const unsigned int step = map->step;

	while (map->step < STEP_MAX) {
		map->step *= 2;
		if (fit(map)) {
			map->since = 0;
			return true;
		}
	}
	map->step = step;
	return false;
}

/* Halve the step if the readings agree with half of it. Return: true if they do. */
static bool halve_step(struct apic_clock_phc_map *map)
{
	map->step /= 2;
	if (fit(map))
		return true;
	map->step *= 2;
	fit(map);
	return false;
}

/* Try a shorter step once a full ring of readings agrees; a few readings prove nothing. */
static void shorten_step(struct apic_clock_phc_map *map)
{
	if (map->step == 1 || map->count < APIC_CLOCK_PHC_READINGS ||
	    ++map->since < APIC_CLOCK_PHC_READINGS)
		return;
	map->since = 0;
	halve_step(map);
}

/*
 * A servo ends lines before the ring is full. Take a shorter step when all lines that add up
 * to a full ring agree with it.
 */
static void end_line(struct apic_clock_phc_map *map)
{
	if (map->step == 1 || map->count < FEW || map->count == APIC_CLOCK_PHC_READINGS)
		return;
	if (!halve_step(map)) {
		map->since = 0;
		return;
	}
	map->since += map->count;
	if (map->since >= APIC_CLOCK_PHC_READINGS) {
		map->since = 0;
		return;
	}
	map->step *= 2;
	fit(map);
}

/* Of a clock that is steered beyond this no rate is accepted, nor would steer()'s quotients fit. */
static bool is_accepted(s64 frequency)
{
	return frequency >= -SCALED / 2 && frequency <= SCALED;
}

/**
 * apic_clock_phc_map_steer() - begin a new line, as the steering frequency has changed
 * @map:	the map
 * @frequency:	the new frequency, ppm times 2^16
 *
 * Earlier readings say nothing about the new line, except its rate, which has changed by a
 * known ratio; a driver rounds that.
 *
 * Context: Any.
 */
void apic_clock_phc_map_steer(struct apic_clock_phc_map *map, s64 frequency)
{
	s64 was = map->frequency, from, to;
	u64 by, rounded;

	map->frequency = frequency;
	map->before.reads = 0;
	if (!is_accepted(was) || !is_accepted(frequency)) {
		map->prior = anything(map);
		map->rate = map->prior;
		map->count = 0;
		return;
	}
	/* No rate is known. */
	if (!map->line.rate)
		return;
	from = SCALED + was;
	to = SCALED + frequency;
	by = mul_u64_u64_div_u64(map->nominal, from > to ? from - to : to - from, min(from, to));
	rounded = (by >> STEER_SHIFT) + (map->nominal >> ROUND_SHIFT);
	if (map->count) {
		end_line(map);
		map->before = *reading_at(map, map->count - 1);
	}
	map->changed = by + (by >> WIDE_SHIFT) + rounded;
	map->prior.low = mul_u64_u64_div_u64(map->rate.low, from, to);
	map->prior.high = mul_u64_u64_div_u64(map->rate.high, from, to);
	map->prior = around(&map->prior, rounded);
	map->rate = map->prior;
	map->count = 0;
}

/*
 * Learn the rate of a new line from its first reading. A servo may steer before each reading:
 * no line has two of them then, and each change makes the rate that is known from earlier lines
 * vaguer. The average rate since the last reading of the line before differs from the new rate
 * by less than what was changed, unless the clock was also set, by less than what is noticed.
 */
static void use_average(struct apic_clock_phc_map *map, const struct apic_clock_reading *reading)
{
	const struct apic_clock_reading *before = &map->before;
	u64 ns = reading->ref - before->ref;
	struct apic_clock_rate average;
	s64 low, high;

	if (!before->reads || !ns || ns > OLD_NS)
		return;
	low = reading->low - behind(map) - before->high;
	high = reading->high + behind(map) - before->low;
	if (low <= 0 || high <= 0)
		return;
	average.low = rate_of(&(struct fraction) { low, ns });
	average.high = rate_of(&(struct fraction) { high, ns }) + 1;
	average = around(&average, map->changed);
	if (average.low > map->prior.high || average.high < map->prior.low) {
		/*
		 * It was set, now or on an earlier line: both may be wrong. Until the next change
		 * or some readings later the rate is vague.
		 */
		map->prior.low = min(map->prior.low, average.low);
		map->prior.high = max(map->prior.high, average.high);
	} else if (average.high - average.low < map->prior.high - map->prior.low) {
		/* Not what they have in common: the next average would not widen a wrong one. */
		map->prior = average;
	}
}

/*
 * Check whether the clock was set since the line before: a steered clock continues, and deviates
 * by less than 2^-10 of half a second.
 */
static bool is_off(const struct apic_clock_phc_map *map, const struct apic_clock_reading *reading)
{
	u64 error, expected = apic_clock_phc_line_tsc(&map->line, reading->ref, &error);
	s64 width = reading->high - reading->low;

	if (error == U64_MAX)
		return true;
	return abs((s64)(reading->low + width / 2 - expected)) >
	       (s64)(error + abs(width) + cycles_in(NSEC_PER_MSEC / 2, map->nominal));
}

/**
 * apic_clock_phc_map_use() - use a reading
 * @map:	the map
 * @reading:	a reading of at least one read
 *
 * If the reading contradicts earlier knowledge, forget first the rate, then the clock's step,
 * then the oldest readings. If it does not even agree with the last two, the clock was set.
 * (With a single one there is always a rate that fits.)
 *
 * Context: Any. The caller keeps other code from @map.
 * Return: true if the clock was set, or this is the first reading.
 */
bool apic_clock_phc_map_use(struct apic_clock_phc_map *map,
			    const struct apic_clock_reading *reading)
{
	const struct apic_clock_rate before = map->rate, wide = anything(map);
	bool had = map->line.rate && map->count > 1;
	bool first = !map->line.rate, steered = !map->count, was_set = true;

	/* The clock was set during the burst: wait for the next burst. */
	if (!is_possible(map, reading)) {
		map->count = 0;
		map->before.reads = 0;
		return false;
	}
	if (map->count == APIC_CLOCK_PHC_READINGS) {
		drop_oldest(map);
		/* By now the readings bound the rate better. */
		map->prior = wide;
	}
	if (map->count &&
	    (s64)(reading->ref - reading_at(map, map->count - 1)->ref) <= 0)
		map->count = 0;
	while (map->count && reading->ref - reading_at(map, 0)->ref > OLD_NS)
		drop_oldest(map);
	/* A first reading contradicts nothing: compare it with the line before. */
	if (steered && !first) {
		was_set = is_off(map, reading);
		if (!was_set)
			use_average(map, reading);
	}
	map->before.reads = 0;
	map->readings[(map->first + map->count) % APIC_CLOCK_PHC_READINGS] = *reading;
	map->count++;
	while (!fit(map)) {
		if (map->prior.low != wide.low || map->prior.high != wide.high)
			map->prior = wide;
		else if (lengthen_step(map))
			break;
		else if (map->count > 3)
			drop_oldest(map);
		else
			keep_newest(map);
	}
	if (map->count > 1) {
		shorten_step(map);
		return false;
	}
	/* It was set: assume the same rate, unless later readings contradict that. */
	if (had) {
		map->prior = around(&before, map->nominal >> ROUND_SHIFT);
		fit(map);
	}
	return was_set;
}

/**
 * apic_clock_phc_line_tsc() - convert a clock's time to TSC
 * @line:	the clock's line
 * @when:	the time, ns
 * @error:	set to the result's possible error in cycles, U64_MAX if nothing is known
 *
 * Context: Any.
 * Return: TSC; 0 if that was before the TSC started, U64_MAX if it does not fit.
 */
u64 apic_clock_phc_line_tsc(const struct apic_clock_phc_line *line, s64 when, u64 *error)
{
	__int128 ns = (__int128)when - line->ref, tsc, off;

	*error = U64_MAX;
	if (!line->rate)
		return U64_MAX;
	tsc = ((ns * line->rate) >> SHIFT) + line->tsc;
	off = (((ns < 0 ? -ns : ns) * line->drift) >> SHIFT) + line->error + 1;
	if (off < U64_MAX)
		*error = off;
	if (tsc < 0)
		return 0;
	return tsc > U64_MAX ? U64_MAX : (u64)tsc;
}

/**
 * apic_clock_phc_line_read() - compute a clock's time
 * @line:	the clock's line
 * @tsc:	the moment, TSC
 *
 * Context: Any.
 * Return: ns, within -KTIME_MAX to KTIME_MAX; KTIME_MAX if nothing is known.
 */
s64 apic_clock_phc_line_read(const struct apic_clock_phc_line *line, u64 tsc)
{
	bool before = tsc < line->tsc;
	u64 cycles = before ? line->tsc - tsc : tsc - line->tsc, ns;
	s64 sum;

	if (!line->rate)
		return KTIME_MAX;
	/* The quotient has to fit. */
	ns = cycles >> SHIFT < line->rate ?
	     mul_u64_u64_div_u64(cycles, BIT_ULL(SHIFT), line->rate) : U64_MAX;
	if (ns > S64_MAX || check_add_overflow(line->ref, before ? -(s64)ns : (s64)ns, &sum))
		return before ? -KTIME_MAX : KTIME_MAX;
	return sum;
}
