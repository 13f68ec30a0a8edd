// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of the distance between two TSCs.
 */
#include <linux/kernel.h>
#include <linux/math64.h>

#include "bounds.h"

/**
 * apic_clock_gcd() - greatest common divisor
 * @a:		a number, may be 0
 * @b:		likewise
 *
 * The kernel has one for unsigned long, which not all configurations export.
 *
 * Context: Any.
 * Return: it; the other number if one is 0.
 */
u64 apic_clock_gcd(u64 a, u64 b)
{
	u64 rest;

	while (b) {
		div64_u64_rem(a, b, &rest);
		a = b;
		b = rest;
	}
	return a;
}

/**
 * apic_clock_bounds_contradict() - check whether the distance has changed
 * @bounds:	bounds
 *
 * Context: Any.
 * Return: true if no one distance explains all round trips.
 */
bool apic_clock_bounds_contradict(const struct apic_clock_bounds *bounds)
{
	return bounds->low > bounds->high;
}

/**
 * apic_clock_bounds_middle() - estimate the distance
 * @bounds:	bounds that do not contradict each other
 *
 * Context: Any.
 * Return: the middle of the bounds, cycles.
 */
s64 apic_clock_bounds_middle(const struct apic_clock_bounds *bounds)
{
	return bounds->low + (s64)(((u64)bounds->high - bounds->low) / 2);
}

/**
 * apic_clock_trips_add() - use a round trip for the estimate, if it is a fast one
 * @trips:	of the CPU that has begun it
 * @took:	cycles from its beginning to its end
 * @twice:	twice the distance of the TSCs by it
 * @slack:	see &struct apic_clock_bounds
 *
 * Context: Any.
 */
void apic_clock_trips_add(struct apic_clock_trips *trips, u64 took, s64 twice, u64 slack)
{
	if (trips->count && took > trips->least + slack)
		return;
	/* Those before it were not that fast. */
	if (!trips->count || took + slack < trips->least) {
		trips->sum = 0;
		trips->count = 0;
		trips->least = took;
	}
	trips->least = min(trips->least, took);
	trips->sum += twice;
	trips->count++;
}

/**
 * apic_clock_bounds_estimate() - estimate the distance
 * @bounds:	bounds that do not contradict each other
 *
 * Context: Any.
 * Return: the mean of what the fastest round trips of both roles say, cycles; the
 * middle of the bounds if there were none in a role, or that is not within them.
 */
s64 apic_clock_bounds_estimate(const struct apic_clock_bounds *bounds)
{
	const struct apic_clock_trips *a = &bounds->trips[0], *b = &bounds->trips[1];
	s64 found, four;

	if (!a->count || !b->count)
		return apic_clock_bounds_middle(bounds);
	/* A role's mean, twice; of both roles together four times. */
	four = div_s64(a->sum, a->count) + div_s64(b->sum, b->count);
	/* To the nearest, not towards 0. */
	found = (four + 2) >> 2;
	return found >= bounds->low && found <= bounds->high ? found :
							      apic_clock_bounds_middle(bounds);
}

/* The remainder that is not negative. */
static u64 modulo(s64 value, u64 by)
{
	u64 rest;

	if (value >= 0) {
		div64_u64_rem(value, by, &rest);
		return rest;
	}
	div64_u64_rem(-(u64)value, by, &rest);
	return rest ? by - rest : 0;
}

/**
 * apic_clock_bounds_snap() - estimate the distance of two TSCs that count in steps
 * @bounds:	bounds that do not contradict each other
 * @quantum:	step in which both TSCs count, cycles; 0 and 1 say nothing
 * @residue:	the distance modulo @quantum, which is known exactly
 *
 * Context: Any.
 * Return: the possible distance that is nearest to the estimate; the estimate, if
 * none is within the bounds.
 */
s64 apic_clock_bounds_snap(const struct apic_clock_bounds *bounds, u64 quantum, u64 residue)
{
	s64 estimate = apic_clock_bounds_estimate(bounds), below, found;

	if (quantum < 2)
		return estimate;
	below = estimate - (s64)modulo(estimate - (s64)modulo(residue, quantum), quantum);
	found = estimate - below <= below + (s64)quantum - estimate ? below :
								      below + (s64)quantum;
	return found >= bounds->low && found <= bounds->high ? found : estimate;
}

/**
 * apic_clock_skew_is_sure() - whether two TSCs are surely nearer without an estimate
 * @low:	lower bound of how far one is ahead, cycles
 * @high:	upper bound
 * @offset:	the estimate, within them
 *
 * Context: Any.
 * Return: true if what would be left of the distance when @offset is taken off is less
 * than the distance is now, wherever that is within the bounds.
 */
bool apic_clock_skew_is_sure(s64 low, s64 high, s64 offset)
{
	u64 least = low > 0 ? low : high < 0 ? -(u64)high : 0;

	return max((u64)high - offset, (u64)offset - low) < least;
}

/**
 * apic_clock_bounds_ring() - check that a ring of three measurements closes
 * @a:		how far CPU A is ahead of the reference
 * @b:		how far CPU B is ahead of the reference
 * @pair:	how far B is ahead of A
 *
 * Context: Any.
 * Return: true if one set of distances explains all three.
 */
bool apic_clock_bounds_ring(const struct apic_clock_bounds *a, const struct apic_clock_bounds *b,
			    const struct apic_clock_bounds *pair)
{
	return b->low - a->high <= pair->high && b->high - a->low >= pair->low;
}
