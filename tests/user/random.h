/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers that repeat: Marsaglia's xorshift with 13, 7, 17. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

static uint64_t random_state;

/* Begin a sequence; equal seeds give equal numbers. */
static inline void random_seed(uint64_t seed)
{
	random_state = 88172645463325252ULL ^ seed * 0x9E3779B97F4A7C15ULL;
}

static inline uint64_t any(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static inline uint32_t below(uint32_t limit)
{
	return (uint32_t)(any() >> 8) % limit;
}

#endif /* RANDOM_H */
