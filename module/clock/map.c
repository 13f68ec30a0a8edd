// SPDX-License-Identifier: GPL-2.0
/*
 * Compute common time from reads of a reference counter: see map.h.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "map.h"

#define SHIFT		APIC_CLOCK_RATE_SHIFT
/* log2 of the inverse of the maximum error of the kernel's TSC frequency: 2^-10. */
#define NOMINAL_SHIFT	10
/* Time until a rate is known, and maximum length of a window that it is measured over, s. */
#define FIT_S		10
#define WINDOW_S	64
/* log2 of the inverse of the maximum drift of a rate in a second: 2^-30, about 1 ppb. */
#define DRIFT_SHIFT	30
/* Maximum plausible rate, cycles per tick. */
#define RATE_MAX	BIT_ULL(20)
/*
 * Measurements that differ by a tick of the reference, a step of the TSC and 2^-6 of what the
 * reads leave open are no evidence of a stop: the speed of a bus varies.
 */
#define NOISE_SHIFT	6
/* log2 of the inverse of the part of a difference that the offset follows without a stop. */
#define FILTER_SHIFT	3
/*
 * log2 of the number of readings after which the minimum uncertainty of a reading is adapted
 * to a bus that has become slower permanently.
 */
#define LEAST_SHIFT	10

/* Cycles in which the reference counts that number of ticks. */
static s64 cycles(s64 ticks, u64 rate)
{
	return (__int128)ticks * rate >> SHIFT;
}

/**
 * apic_clock_fit_init() - begin with the kernel's frequency
 * @fit:	the fit; all zero, or one to begin anew
 * @nominal:	cycles per tick by that frequency, times 2^32
 *
 * Keeps the count of times that the rate has moved.
 *
 * Context: Any.
 */
void apic_clock_fit_init(struct apic_clock_fit *fit, u64 nominal)
{
	*fit = (struct apic_clock_fit) { .nominal = nominal, .moved = fit->moved };
	fit->rate = apic_clock_fit_runs(fit, false);
}

/**
 * apic_clock_fit_runs() - get the rates at which a TSC may be found to run
 * @fit:	the fit
 * @may_stop:	the TSC may stop
 *
 * A TSC that stops for a short time looks like one that runs slower, and a changed rate looks
 * like a series of stops. If a TSC may stop, any loss against the known rate is therefore taken
 * for a stop. If it never stops, only a loss that no rate explains is taken for one: the TSC was
 * written to, or the reference stopped.
 *
 * Context: Any.
 * Return: bounds of what is a rate; apic_clock_follow_use() reports the rest.
 */
struct apic_clock_rate apic_clock_fit_runs(const struct apic_clock_fit *fit, bool may_stop)
{
	u64 off = fit->nominal >> NOMINAL_SHIFT;

	if (may_stop)
		return fit->rate;
	return (struct apic_clock_rate) { .low = fit->nominal - off, .high = fit->nominal + off };
}

/**
 * apic_clock_reading_add() - use a read of the reference
 * @reading:	all zero before the first read of a burst
 * @rate:	bounds of the rate
 * @before:	TSC before the read
 * @ref:	what was read
 * @after:	TSC after the read
 *
 * Context: Any.
 */
void apic_clock_reading_add(struct apic_clock_reading *reading, const struct apic_clock_rate *rate,
			    u64 before, u64 ref, u64 after)
{
	s64 ticks;
	u64 low, high;

	if (!reading->reads++) {
		reading->ref = ref;
		reading->low = before - (rate->high >> SHIFT) - 1;
		reading->high = after;
		return;
	}
	ticks = ref - reading->ref;
	/* The next tick had not begun, and the ticks since @reading->ref took the longest time. */
	low = before - cycles(ticks + 1, ticks + 1 >= 0 ? rate->high : rate->low) - 1;
	high = after - cycles(ticks, ticks >= 0 ? rate->low : rate->high);
	/* TSC values may have wrapped; differences have not. */
	if ((s64)(low - reading->low) > 0)
		reading->low = low;
	if ((s64)(high - reading->high) < 0)
		reading->high = high;
}

/* Divide cycles by ticks. Return: cycles per tick times 2^32; U64_MAX if implausible. */
static u64 quotient(u64 distance, u64 ticks)
{
	if (!ticks || distance / RATE_MAX >= ticks)
		return U64_MAX;
	return mul_u64_u64_div_u64(distance, BIT_ULL(SHIFT), ticks);
}

/* Compute bounds of the rate from two readings. Return: false if they contain no information. */
static bool rate_of(const struct apic_clock_reading *from, const struct apic_clock_reading *to,
		    struct apic_clock_rate *rate)
{
	s64 least = to->low - from->high, most = to->high - from->low;

	if ((s64)(to->ref - from->ref) <= 0 || most <= 0)
		return false;
	rate->low = quotient(max(least, 0LL), to->ref - from->ref);
	rate->high = quotient(most, to->ref - from->ref);
	if (rate->low == U64_MAX || rate->high == U64_MAX)
		return false;
	rate->high++;
	return true;
}

/**
 * apic_clock_fit_break() - the TSC has stopped: begin a new window
 * @fit:	the fit
 *
 * Context: Any.
 */
void apic_clock_fit_break(struct apic_clock_fit *fit)
{
	fit->anchor.reads = 0;
	fit->doubted = 0;
}

/* Return: whether the rate has changed by more than crystals drift. */
static bool has_moved(const struct apic_clock_fit *fit)
{
	u64 first = fit->first, most = div_u64(first, NSEC_PER_SEC) * APIC_CLOCK_MOVED_PPB;

	return fit->fitted && (fit->rate.low > first + most || fit->rate.high < first - most);
}

static bool contradicts(const struct apic_clock_rate *rate, const struct apic_clock_rate *found)
{
	return found->low > rate->high || found->high < rate->low;
}

/*
 * Take over the rate that a window of @ticks has found, unless it contradicts the known rate. In
 * that case it may be a mixture of two rates, or no rate at all, because the TSC was set or the
 * reference stood still: keep the known rate, and begin a new window. If the new window
 * contradicts the known rate as well, the rate has changed. If the new window does not, although
 * it is as long as the one that did, the rate has not changed.
 */
static void learn(struct apic_clock_fit *fit, const struct apic_clock_reading *reading,
		  const struct apic_clock_rate *found, u64 ticks)
{
	if (!contradicts(&fit->rate, found)) {
		fit->rate.low = max(fit->rate.low, found->low);
		fit->rate.high = min(fit->rate.high, found->high);
		if (ticks >= fit->doubted)
			fit->doubted = 0;
		return;
	}
	fit->anchor = *reading;
	if (fit->doubted) {
		fit->rate = *found;
		fit->doubted = 0;
	} else {
		fit->doubted = ticks;
	}
}

/* Widen the bounds: the rate may drift in the course of time. */
static void let_drift(struct apic_clock_fit *fit, u64 ref, u64 ticks_per_s)
{
	u64 drift;

	if ((s64)(ref - fit->last) > 0) {
		drift = mul_u64_u64_div_u64(ref - fit->last, fit->nominal >> DRIFT_SHIFT,
					    ticks_per_s) + 1;
		drift = min(drift, fit->nominal >> NOMINAL_SHIFT);
		fit->rate.low -= drift;
		fit->rate.high += drift;
	}
}

/**
 * apic_clock_fit_use() - use a reading
 * @fit:	the fit
 * @reading:	a reading that does not contradict itself, from the same CPU as all others
 * @ticks_per_s: frequency of the reference
 *
 * Context: Any. The caller serialises access to @fit.
 * Return: true if the rate has changed by more than crystals drift. The next change is then
 * measured from the new rate.
 */
bool apic_clock_fit_use(struct apic_clock_fit *fit, const struct apic_clock_reading *reading,
			u64 ticks_per_s)
{
	struct apic_clock_rate found;
	bool moved;
	u64 ticks, window = WINDOW_S * ticks_per_s;

	/* Nothing was known before the first reading. */
	if (fit->last)
		let_drift(fit, reading->ref, ticks_per_s);
	fit->last = reading->ref;
	if (!fit->anchor.reads) {
		fit->anchor = *reading;
		return false;
	}
	if (!rate_of(&fit->anchor, reading, &found))
		return false;
	ticks = reading->ref - fit->anchor.ref;
	learn(fit, reading, &found, min(ticks, window));
	if (ticks >= window)
		fit->anchor = *reading;
	moved = has_moved(fit);
	fit->moved += moved;
	if (moved || (!fit->fitted && !fit->doubted && ticks >= FIT_S * ticks_per_s)) {
		fit->fitted = true;
		fit->first = apic_clock_rate_middle(&fit->rate);
	}
	return moved;
}

/**
 * apic_clock_fit_ppb() - compare a rate with the kernel's frequency
 * @fit:	the fit
 * @rate:	cycles per tick times 2^32
 *
 * Context: Any.
 * Return: how much faster @rate is, 10^-9.
 */
s64 apic_clock_fit_ppb(const struct apic_clock_fit *fit, u64 rate)
{
	u64 more = rate > fit->nominal ? rate - fit->nominal : fit->nominal - rate;

	if (!fit->nominal || more > fit->nominal)
		return 0;
	more = mul_u64_u64_div_u64(more, NSEC_PER_SEC, fit->nominal);
	return rate > fit->nominal ? more : -(s64)more;
}

/**
 * apic_clock_fit_error_ppb() - get the maximum error of the middle of the bounds
 * @fit:	the fit
 *
 * Context: Any.
 * Return: the error, 10^-9, rounded up.
 */
u64 apic_clock_fit_error_ppb(const struct apic_clock_fit *fit)
{
	return apic_clock_fit_ppb(fit, fit->nominal + (fit->rate.high - fit->rate.low) / 2) + 1;
}

/**
 * apic_clock_scale_at() - get common time at a tick of the reference
 * @scale:	the scale
 * @ref:	the tick
 *
 * Context: Any.
 * Return: cycles.
 */
u64 apic_clock_scale_at(const struct apic_clock_scale *scale, u64 ref)
{
	return scale->common + cycles(ref - scale->ref, scale->rate);
}

/* Return: half of the uncertainty of a reading in excess of one that nothing delays. */
static u64 learn_least(struct apic_clock_follow *follow, u64 half)
{
	if (!follow->known || half <= follow->least)
		follow->least = half;
	else
		follow->least += DIV_ROUND_UP_ULL(half - follow->least, BIT(LEAST_SHIFT));
	return half - follow->least;
}

/* No stop: keep the more exact of two offsets that do not contradict each other. */
static void stay(struct apic_clock_follow *follow, s64 lost, u64 noise, u64 vague)
{
	if (abs(lost) <= (s64)noise)
		follow->offset += lost >> FILTER_SHIFT;
	else if (vague < follow->vague)
		follow->offset += lost;
	else
		follow->error += vague;
	follow->vague = min(follow->vague, vague);
}

/**
 * apic_clock_follow_use() - use a reading of a CPU
 * @follow:	the CPU's TSC against common time
 * @scale:	the scale
 * @runs:	result of apic_clock_fit_runs()
 * @reading:	the reading
 *
 * Context: Any. The caller serialises access to @follow.
 * Return: cycles that the TSC has lost by a stop since the last reading; negative if the TSC is
 * ahead; 0 if it ran, or if the reading contains no information.
 */
s64 apic_clock_follow_use(struct apic_clock_follow *follow, const struct apic_clock_scale *scale,
			  const struct apic_clock_rate *runs,
			  const struct apic_clock_reading *reading)
{
	u64 width = reading->high - reading->low, half = DIV_ROUND_UP_ULL(width, 2);
	u64 noise, drift, doubt, vague, open;
	s64 found, lost;

	if (!reading->reads || (s64)width < 0) {
		follow->rejected++;
		return 0;
	}
	found = apic_clock_scale_at(scale, reading->ref) - (reading->low + width / 2);
	lost = found - follow->offset;
	vague = learn_least(follow, half);
	noise = (scale->rate >> SHIFT) + scale->step + (2 * follow->least >> NOISE_SHIFT);
	open = noise + vague + follow->vague;
	/* The TSC may have run faster or slower than common time. */
	drift = cycles(reading->ref - follow->ref, runs->high - runs->low);
	follow->ref = reading->ref;
	/* Either reading may be off by half the width of its bounds. */
	doubt = follow->error + half;
	follow->error = half;
	if (follow->known && abs(lost) <= (s64)open) {
		stay(follow, lost, noise, vague);
		return 0;
	}
	follow->offset = found;
	follow->vague = vague;
	if (!follow->known || abs(lost) <= (s64)(open + drift)) {
		follow->known = true;
		return 0;
	}
	follow->proven += abs(lost) > (s64)(noise + drift + doubt);
	if (lost < 0) {
		follow->ahead++;
		return lost;
	}
	follow->stops++;
	follow->lost += lost;
	follow->longest = max_t(u64, follow->longest, lost);
	return lost;
}

/**
 * apic_clock_expect() - estimate the reference by another clock
 * @ref:	an earlier value of the reference
 * @ns:		time since then by the other clock, which is computed from the TSC; negative on
 *		a CPU whose TSC is behind that of the CPU that read @ref
 * @ticks_per_s: frequency of the reference
 *
 * Context: Any.
 * Return: ticks.
 */
u64 apic_clock_expect(u64 ref, s64 ns, u64 ticks_per_s)
{
	u64 ticks = mul_u64_u64_div_u64(abs(ns), ticks_per_s, NSEC_PER_SEC);

	return ns < 0 ? ref - ticks : ref + ticks;
}

/**
 * apic_clock_extend() - extend a counter that wraps
 * @expected:	estimated value, wrong by less than half a round of the counter
 * @raw:	value that was read
 * @bits:	number of bits of the counter, 1 to 32
 *
 * Context: Any.
 * Return: the value nearest to @expected whose lowest @bits are @raw.
 */
u64 apic_clock_extend(u64 expected, u32 raw, unsigned int bits)
{
	u32 distance = (raw - (u32)expected) << (32 - bits);

	return expected + ((s32)distance >> (32 - bits));
}
