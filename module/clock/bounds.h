/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_BOUNDS_H
#define _APIC_CLOCK_BOUNDS_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct apic_clock_trips - the fastest round trips that one CPU has begun
 * @least:	duration of the fastest, cycles
 * @sum:	twice the sum of @count estimates
 * @count:	number of round trips that were about as fast
 */
struct apic_clock_trips {
	u64 least;
	s64 sum;
	unsigned int count;
};

/**
 * struct apic_clock_bounds - bounds of how far one TSC is ahead of another
 * @low:	lower bound of the distance, cycles
 * @high:	upper bound, cycles; less than @low: the distance has changed meanwhile
 * @rounds:	number of round trips that the bounds come from
 * @slack:	maximum extra duration of a round trip that counts as about as fast as the
 *		fastest, cycles
 * @trips:	fastest round trips begun by A [0] and by B [1]
 *
 * Two CPUs send each other messages. CPU A reads its TSC (t1) and sends. B receives the
 * message, reads its own TSC (t2) and answers. A receives the answer and reads its TSC again
 * (t3). Because t2 was read between the other two, B is ahead of A by at least t2 - t3 and
 * at most t2 - t1. A delayed message (by an interrupt, an SMI, another virtual machine) can
 * only make these bounds wider, never wrong. The narrowest bound of each side is kept, and
 * the two need not come from the same round trip.
 *
 * The bounds do not say where between them the distance is. If both directions take equally
 * long, it is in the middle of a round trip. That is nearly true of the fastest round trips,
 * which nothing has delayed. If one direction is slower than the other, the error has
 * opposite signs in the two roles.
 */
struct apic_clock_bounds {
	s64 low;
	s64 high;
	unsigned int rounds;
	u64 slack;
	struct apic_clock_trips trips[2];
};

#define APIC_CLOCK_BOUNDS_NONE { .low = S64_MIN, .high = S64_MAX }

void apic_clock_trips_add(struct apic_clock_trips *trips, u64 took, s64 twice, u64 slack);

/**
 * apic_clock_bounds_add() - use a round trip that A has begun
 * @bounds:	bounds of B's TSC less A's
 * @t1:		A's TSC before
 * @t2:		B's TSC
 * @t3:		A's TSC after
 */
static inline void apic_clock_bounds_add(struct apic_clock_bounds *bounds, u64 t1, u64 t2, u64 t3)
{
	bounds->low = max_t(s64, bounds->low, t2 - t3);
	bounds->high = min_t(s64, bounds->high, t2 - t1);
	bounds->rounds++;
	apic_clock_trips_add(&bounds->trips[0], t3 - t1, (t2 - t1) + (t2 - t3), bounds->slack);
}

/**
 * apic_clock_bounds_add_reverse() - use a round trip that B has begun
 * @bounds:	bounds of B's TSC less A's
 * @t1:		B's TSC before
 * @t2:		A's TSC
 * @t3:		B's TSC after
 */
static inline void
apic_clock_bounds_add_reverse(struct apic_clock_bounds *bounds, u64 t1, u64 t2, u64 t3)
{
	bounds->low = max_t(s64, bounds->low, t1 - t2);
	bounds->high = min_t(s64, bounds->high, t3 - t2);
	bounds->rounds++;
	apic_clock_trips_add(&bounds->trips[1], t3 - t1, (t1 - t2) + (t3 - t2), bounds->slack);
}

u64 apic_clock_gcd(u64 a, u64 b);
bool apic_clock_bounds_contradict(const struct apic_clock_bounds *bounds);
s64 apic_clock_bounds_middle(const struct apic_clock_bounds *bounds);
s64 apic_clock_bounds_estimate(const struct apic_clock_bounds *bounds);
s64 apic_clock_bounds_snap(const struct apic_clock_bounds *bounds, u64 quantum, u64 residue);
bool apic_clock_skew_is_sure(s64 low, s64 high, s64 offset);
bool apic_clock_bounds_ring(const struct apic_clock_bounds *a, const struct apic_clock_bounds *b,
			    const struct apic_clock_bounds *pair);

#endif /* _APIC_CLOCK_BOUNDS_H */
