/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_MEASURE_WAYS_H
#define _APIC_MEASURE_WAYS_H

#include <linux/types.h>

/* Wait for a TSC value. Return: the first RDTSC after that. */
typedef u64 (*measure_way_fn)(u64 target);

measure_way_fn measure_way(u32 way);
bool measure_way_there(u32 way);

/* Return: TSC cycles of 1,024 turns of the counted loop. */
u32 measure_turn(void);
/* Set the length of 1,024 turns for later shots. */
void measure_turn_set(u32 turn);

/* @delays has @step entries: turns of the counted loop, for each target modulo @step. */
void measure_table_set(const u8 *delays, u32 step);
/* Return: the last shot's index into the table. */
u32 measure_table_looked(void);

/* Flush what the loops read but their code. */
void measure_ways_flush(void);

/**
 * measure_turns() - convert a time to turns of the counted loop
 * @cycles:	TSC cycles
 * @turn:	TSC cycles of 1,024 turns
 *
 * Return: number of turns, rounded down, at least 1.
 */
static inline u64 measure_turns(u64 cycles, u32 turn)
{
	u64 turns = turn ? (cycles << 10) / turn : 1;

	return turns ? turns : 1;
}

#endif /* _APIC_MEASURE_WAYS_H */
