/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM apic_calendar

#if !defined(_TRACE_APIC_CALENDAR_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_APIC_CALENDAR_H

#include <linux/tracepoint.h>
#include <uapi/linux/apic_calendar.h>

/**
 * apic_calendar_start - called when a calendar starts
 * @table:	number of the table
 * @at:		start of its first major cycle, absolute TSC
 */
TRACE_EVENT(apic_calendar_start,

	TP_PROTO(u32 table, u64 at),

	TP_ARGS(table, at),

	TP_STRUCT__entry(
		__field(u32,	table)
		__field(u64,	at)
	),

	TP_fast_assign(
		__entry->table = table;
		__entry->at = at;
	),

	TP_printk("table=%u at=%llu", __entry->table, __entry->at)
);

/**
 * apic_calendar_window - called when a window ends
 * @receipt:	receipt of the window
 */
TRACE_EVENT(apic_calendar_window,

	TP_PROTO(const struct apic_calendar_receipt *receipt),

	TP_ARGS(receipt),

	TP_STRUCT__entry(
		__field(u64,	start)
		__field(u64,	woken)
		__field(u64,	resumed)
		__field(u64,	began)
		__field(u64,	ended)
		__field(u64,	cycle)
		__field(u32,	unit)
		__field(u32,	entry)
		__field(u32,	table)
		__field(u32,	result)
	),

	TP_fast_assign(
		__entry->start = receipt->start;
		__entry->woken = receipt->woken;
		__entry->resumed = receipt->resumed;
		__entry->began = receipt->began;
		__entry->ended = receipt->ended;
		__entry->cycle = receipt->cycle;
		__entry->unit = receipt->unit;
		__entry->entry = receipt->entry;
		__entry->table = receipt->table;
		__entry->result = receipt->result;
	),

	TP_printk("unit=%u cycle=%llu entry=%u table=%u result=%u start=%llu woken=%llu resumed=%llu began=%llu ended=%llu",
		  __entry->unit, __entry->cycle, __entry->entry, __entry->table,
		  __entry->result, __entry->start, __entry->woken, __entry->resumed,
		  __entry->began, __entry->ended)
);

DECLARE_EVENT_CLASS(apic_calendar_overrun_class,

	TP_PROTO(u32 unit, u64 cycle, u64 late),

	TP_ARGS(unit, cycle, late),

	TP_STRUCT__entry(
		__field(u32,	unit)
		__field(u64,	cycle)
		__field(u64,	late)
	),

	TP_fast_assign(
		__entry->unit = unit;
		__entry->cycle = cycle;
		__entry->late = late;
	),

	TP_printk("unit=%u cycle=%llu late=%llu", __entry->unit, __entry->cycle, __entry->late)
);

/**
 * apic_calendar_park - called when a thread that has used up its budget is stopped
 * @unit:	number of its unit
 * @cycle:	major cycle since the start
 * @late:	TSC cycles since the end of its window
 */
DEFINE_EVENT(apic_calendar_overrun_class, apic_calendar_park,
	TP_PROTO(u32 unit, u64 cycle, u64 late),
	TP_ARGS(unit, cycle, late)
);

/**
 * apic_calendar_late_break - called when a thread that has used up its budget has not
 *	stopped within backstop_us
 * @unit:	number of its unit
 * @cycle:	major cycle since the start
 * @late:	TSC cycles since the end of its window
 */
DEFINE_EVENT(apic_calendar_overrun_class, apic_calendar_late_break,
	TP_PROTO(u32 unit, u64 cycle, u64 late),
	TP_ARGS(unit, cycle, late)
);

/**
 * apic_calendar_change - called when a switch of tables, or a stop, is requested
 * @from:	number of the table in force
 * @to:		number of the next table, 4294967295: the calendar stops
 * @at:		the boundary at which it takes effect, absolute TSC
 */
TRACE_EVENT(apic_calendar_change,

	TP_PROTO(u32 from, u32 to, u64 at),

	TP_ARGS(from, to, at),

	TP_STRUCT__entry(
		__field(u32,	from)
		__field(u32,	to)
		__field(u64,	at)
	),

	TP_fast_assign(
		__entry->from = from;
		__entry->to = to;
		__entry->at = at;
	),

	TP_printk("from=%u to=%u at=%llu", __entry->from, __entry->to, __entry->at)
);

/**
 * apic_calendar_stop - called when a calendar has stopped
 * @error:	reason, a negative errno value
 */
TRACE_EVENT(apic_calendar_stop,

	TP_PROTO(int error),

	TP_ARGS(error),

	TP_STRUCT__entry(
		__field(int,	error)
	),

	TP_fast_assign(
		__entry->error = error;
	),

	TP_printk("error=%d", __entry->error)
);

#endif /* _TRACE_APIC_CALENDAR_H */

#include <trace/define_trace.h>
