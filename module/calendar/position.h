/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_POSITION_H
#define _APIC_CALENDAR_POSITION_H

#include <linux/limits.h>
#include <linux/types.h>

/**
 * struct calendar_window - an entry of a table, as a CPU runs it
 * @offset:	from the start of the major cycle, TSC cycles
 * @budget:	TSC cycles
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
 * struct calendar_table - a table that was checked
 * @number:	of the table
 * @cycles:	@major is in TSC cycles, otherwise in ns
 * @major:	length of the major cycle
 * @max_overruns: overruns with which @degraded takes its place, 0: never
 * @degraded:	number of that table
 * @n_slots:	CPUs of the calendar, each of which has a slot
 * @slot:	window at which each slot begins, and at last their number
 * @windows:	by slot, and by offset within it
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

/* No switch: of &struct calendar_change.at. */
#define CALENDAR_NEVER	U64_MAX

/* How far ahead, in TSC cycles; at 5 GHz these are 6 years, and as ns they fit as well. */
#define CALENDAR_FAR	1000000000000000000ULL

/**
 * struct calendar_change - what happens at a boundary
 * @at:		the boundary, TSC; %CALENDAR_NEVER: nothing does
 * @table:	what takes over there; NULL: the calendar stops
 */
struct calendar_change {
	u64 at;
	const struct calendar_table *table;
};

/**
 * struct calendar_position - which window of a CPU comes next
 * @table:	its table, NULL: none comes
 * @slot:	the CPU's
 * @index:	of the window in the table
 * @origin:	start of the table's first major cycle, TSC
 * @n:		number of the major cycle in the table
 * @start:	its start, TSC
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

/* Too far ahead of an origin, or of the present TSC, which may be any itself. */
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
