// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of the distance between two TSCs.
 */
#include <linux/kernel.h>
#include <linux/math64.h>

#include "bounds.h"

/**
 * apic_clock_gcd() - compute a greatest common divisor
 * @a:		a number, may be 0
 * @b:		another number, may be 0
 *
 * The kernel has a function for unsigned long, which not all configurations export.
 *
 * Context: Any.
 * Return: the divisor; the other number if one is 0.
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
 * Return: true if no single distance explains all round trips.
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
 * apic_clock_trips_add() - use a round trip for the estimate, if it was fast
 * @trips:	fastest round trips of the CPU that has begun it
 * @took:	duration of the round trip, cycles
 * @twice:	twice the distance of the TSCs by this round trip
 * @slack:	see &struct apic_clock_bounds
 *
 * Context: Any.
 */
void apic_clock_trips_add(struct apic_clock_trips *trips, u64 took, s64 twice, u64 slack)
{
	if (trips->count && took > trips->least + slack)
		return;
	/* The earlier round trips were slower. */
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
 * Return: the mean estimate of the fastest round trips in both roles, cycles; the middle of
 * the bounds if a role had none, or if the mean is not within the bounds.
 */
s64 apic_clock_bounds_estimate(const struct apic_clock_bounds *bounds)
{
	const struct apic_clock_trips *a = &bounds->trips[0], *b = &bounds->trips[1];
	s64 found, four;

	if (!a->count || !b->count)
		return apic_clock_bounds_middle(bounds);
	/* Each role's mean is twice the distance, so the sum is four times the distance. */
	four = div_s64(a->sum, a->count) + div_s64(b->sum, b->count);
	/* Round to the nearest, not towards 0. */
	found = (four + 2) >> 2;
	return found >= bounds->low && found <= bounds->high ? found :
							      apic_clock_bounds_middle(bounds);
}

/* The non-negative remainder. */
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
 * @quantum:	step in which both TSCs count, cycles; 0 and 1 mean that it is not known
 * @residue:	the distance modulo @quantum, which is known exactly
 *
 * Context: Any.
 * Return: the possible distance nearest to the estimate; the estimate itself if no possible
 * distance is within the bounds.
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
 * apic_clock_skew_is_sure() - check whether subtracting an estimate is certain to help
 * @low:	lower bound of how far one TSC is ahead, cycles
 * @high:	upper bound, cycles
 * @offset:	the estimate, within the bounds
 *
 * Context: Any.
 * Return: true if, for every distance within the bounds, subtracting @offset leaves less
 * than the distance itself.
 */
bool apic_clock_skew_is_sure(s64 low, s64 high, s64 offset)
{
	u64 least = low > 0 ? low : high < 0 ? -(u64)high : 0;

	return max((u64)high - offset, (u64)offset - low) < least;
}

/**
 * apic_clock_bounds_ring() - check that a ring of three measurements closes
 * @a:		bounds of how far CPU A is ahead of the reference
 * @b:		bounds of how far CPU B is ahead of the reference
 * @pair:	bounds of how far B is ahead of A
 *
 * Context: Any.
 * Return: true if one set of distances explains all three.
 */
bool apic_clock_bounds_ring(const struct apic_clock_bounds *a, const struct apic_clock_bounds *b,
			    const struct apic_clock_bounds *pair)
{
	return b->low - a->high <= pair->high && b->high - a->low >= pair->low;
}
