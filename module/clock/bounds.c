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
 * Return: the possible distance that is nearest to the middle of the bounds; the
 * middle, if none is within the bounds.
 */
s64 apic_clock_bounds_snap(const struct apic_clock_bounds *bounds, u64 quantum, u64 residue)
{
	s64 middle = apic_clock_bounds_middle(bounds), below, found;

	if (quantum < 2)
		return middle;
	below = middle - (s64)modulo(middle - (s64)modulo(residue, quantum), quantum);
	found = middle - below <= below + (s64)quantum - middle ? below : below + (s64)quantum;
	return found >= bounds->low && found <= bounds->high ? found : middle;
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
