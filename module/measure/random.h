/* SPDX-License-Identifier: GPL-2.0 */
/* Pseudo-random distances, which repeat with their seed. */
#ifndef _APIC_MEASURE_RANDOM_H
#define _APIC_MEASURE_RANDOM_H

#include <linux/math64.h>
#include <linux/types.h>

/**
 * measure_random() - return the next number of Marsaglia's xorshift
 * @state:	not 0; it never becomes 0
 * @least:	lowest number
 * @most:	highest number, not below @least
 *
 * Return: a number from @least to @most.
 */
static inline u32 measure_random(u64 *state, u32 least, u32 most)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	/* The upper half is more random; scaling it avoids the bias of a modulo. */
	return least + (u32)(((*state >> 32) * ((u64)most - least + 1)) >> 32);
}

#endif /* _APIC_MEASURE_RANDOM_H */
