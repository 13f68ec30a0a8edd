// SPDX-License-Identifier: GPL-2.0
/*
 * Find the next window, and the boundary at which another table takes over.
 *
 * Each CPU computes the start of a major cycle from the start of the first one, in the same
 * way, and never sums up. All CPUs therefore have the same boundaries, to the TSC cycle. A
 * change names a boundary, and each CPU makes the change by itself when it gets there.
 *
 *	CPU0                                  CPU1
 *	  last window of a cycle                last window of a cycle
 *	  next cycle starts at @at:             next cycle starts at @at:
 *	    takes the new table                   takes the new table
 */
#include <linux/apic_timer.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "position.h"

/**
 * calendar_cycle_start() - compute the start of a major cycle
 * @table:	the table
 * @origin:	start of its cycle 0, TSC
 * @n:		number of the cycle
 *
 * Context: Any.
 * Return: TSC.
 */
u64 calendar_cycle_start(const struct calendar_table *table, u64 origin, u64 n)
{
	u64 distance = n * table->major;

	return origin + (table->cycles ? distance : apic_timer_ns_to_tsc(distance));
}

/* The last cycle that has begun by @tsc, or one nearby. */
static u64 cycle_of(const struct calendar_table *table, u64 origin, u64 tsc)
{
	u64 distance = tsc - origin;

	if (tsc <= origin)
		return 0;
	if (!table->cycles)
		distance = apic_timer_tsc_to_ns(distance);
	return div64_u64(distance, table->major);
}

/**
 * calendar_boundary() - find the first boundary of major cycles from a moment on
 * @table:	the table
 * @origin:	start of its cycle 0, TSC
 * @earliest:	the moment, TSC
 * @cycle:	set to the number of the cycle that begins there
 *
 * Context: Any.
 * Return: TSC; %CALENDAR_NEVER if it is too far ahead.
 */
u64 calendar_boundary(const struct calendar_table *table, u64 origin, u64 earliest, u64 *cycle)
{
	u64 n;

	if (calendar_is_far(earliest, origin))
		return CALENDAR_NEVER;
	n = cycle_of(table, origin, earliest);
	/* Conversions are rounded down. */
	while (calendar_cycle_start(table, origin, n) < earliest)
		n++;
	*cycle = n;
	return calendar_cycle_start(table, origin, n);
}

/**
 * calendar_position_begin() - go to the first window of a table
 * @position:	the position to set
 * @table:	the table, NULL: none
 * @slot:	slot of the CPU
 * @origin:	start of the table's first major cycle, TSC
 *
 * Context: Any.
 */
void calendar_position_begin(struct calendar_position *position,
			     const struct calendar_table *table, u32 slot, u64 origin)
{
	*position = (struct calendar_position) { .slot = slot };
	if (!table || table->slot[slot] == table->slot[slot + 1])
		return;
	position->table = table;
	position->index = table->slot[slot];
	position->origin = origin;
	position->start = origin;
}

/**
 * calendar_position_advance() - go to the next window
 * @position:	the position, not at the end
 * @change:	the pending change
 *
 * Context: Any.
 * Return: true if the change has been made: then there may be no next window.
 */
bool calendar_position_advance(struct calendar_position *position,
			       const struct calendar_change *change)
{
	const struct calendar_table *table = position->table;

	if (++position->index < table->slot[position->slot + 1])
		return false;
	position->index = table->slot[position->slot];
	position->n++;
	position->start = calendar_cycle_start(table, position->origin, position->n);
	if (position->start < change->at)
		return false;
	calendar_position_begin(position, change->table, position->slot, change->at);
	return true;
}

/**
 * calendar_position_pass() - skip major cycles that have passed entirely
 * @position:	the position, at the first window of a cycle
 * @now:	present TSC
 * @limit:	boundary of a change, which is not skipped
 *
 * This happens after a machine was stopped for a while, for example.
 *
 * Context: Any.
 * Return: number of cycles skipped.
 */
u64 calendar_position_pass(struct calendar_position *position, u64 now, u64 limit)
{
	const struct calendar_table *table = position->table;
	u64 n = cycle_of(table, position->origin, min(now, limit)), passed;

	/* Skip neither the last cycle that can have begun, nor one that is cut short. */
	while (n > position->n &&
	       (calendar_cycle_start(table, position->origin, n) > now ||
		calendar_cycle_start(table, position->origin, n) >= limit))
		n--;
	if (n <= position->n)
		return 0;
	passed = n - position->n;
	position->n = n;
	position->start = calendar_cycle_start(table, position->origin, n);
	return passed;
}
