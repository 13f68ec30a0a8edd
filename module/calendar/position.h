/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_POSITION_H
#define _APIC_CALENDAR_POSITION_H

#include <linux/limits.h>
#include <linux/types.h>

/**
 * struct calendar_window - an entry of a table, as a CPU runs it
 * @offset:	offset from the start of the major cycle, TSC cycles
 * @budget:	budget, TSC cycles
 * @unit:	number of the unit
 * @entry:	number in the user's table
 */
struct calendar_window {
	u64 offset;
	u64 budget;
	u32 unit;
	u32 entry;
};

/**
 * struct calendar_table - a checked table
 * @number:	number of the table
 * @cycles:	@major is in TSC cycles, otherwise in ns
 * @major:	length of the major cycle
 * @max_overruns: number of overruns after which @degraded replaces the table, 0: never
 * @degraded:	number of the replacement
 * @n_slots:	number of CPUs of the calendar, each of which has a slot
 * @slot:	index of each slot's first window, followed by the number of windows
 * @windows:	the windows, by slot and then by offset
 */
struct calendar_table {
	u32 number;
	bool cycles;
	u64 major;
	u32 max_overruns;
	u32 degraded;
	u32 n_slots;
	u32 *slot;
	struct calendar_window *windows;
};

/* Value of &struct calendar_change.at without a change. */
#define CALENDAR_NEVER	U64_MAX

/* Limit for moments ahead, in TSC cycles: 6 years at 5 GHz. It also fits in ns. */
#define CALENDAR_FAR	1000000000000000000ULL

/**
 * struct calendar_change - a change at a boundary
 * @at:		the boundary, TSC; %CALENDAR_NEVER: there is no change
 * @table:	table that takes over there; NULL: the calendar stops
 */
struct calendar_change {
	u64 at;
	const struct calendar_table *table;
};

/**
 * struct calendar_position - the next window of a CPU
 * @table:	its table, NULL: there is no next window
 * @slot:	slot of the CPU
 * @index:	index of the window in the table
 * @origin:	start of the table's first major cycle, TSC
 * @n:		number of the major cycle in the table
 * @start:	start of that cycle, TSC
 */
struct calendar_position {
	const struct calendar_table *table;
	u32 slot;
	u32 index;
	u64 origin;
	u64 n;
	u64 start;
};

static inline const struct calendar_window *
calendar_window(const struct calendar_position *position)
{
	return &position->table->windows[position->index];
}

/* Too far ahead of an origin, or of the present TSC, which may have any value itself. */
static inline bool calendar_is_far(u64 tsc, u64 from)
{
	return tsc > from && tsc - from > CALENDAR_FAR;
}

u64 calendar_cycle_start(const struct calendar_table *table, u64 origin, u64 n);
u64 calendar_boundary(const struct calendar_table *table, u64 origin, u64 earliest, u64 *cycle);
void calendar_position_begin(struct calendar_position *position,
			     const struct calendar_table *table, u32 slot, u64 origin);
bool calendar_position_advance(struct calendar_position *position,
			       const struct calendar_change *change);
u64 calendar_position_pass(struct calendar_position *position, u64 now, u64 limit);

#endif /* _APIC_CALENDAR_POSITION_H */
