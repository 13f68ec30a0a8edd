/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM apic_clock

#if !defined(_TRACE_APIC_CLOCK_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_APIC_CLOCK_H

#include <linux/tracepoint.h>
#include <linux/apic_clock.h>

/**
 * apic_clock_skew - called when a CPU's TSC was measured against the reference CPU's
 * @cpu:	the CPU
 * @skew:	the measurement
 * @ret:	0, or a negative errno value as from apic_clock_get_skew(). With -ESTALE
 *		the bounds are contradictory, the lower above the upper, unless the
 *		distances between three CPUs were inconsistent.
 *
 * For the reference CPU itself, only the quantum and the residue are
 * meaningful.
 */
TRACE_EVENT(apic_clock_skew,

	TP_PROTO(int cpu, const struct apic_clock_skew *skew, int ret),

	TP_ARGS(cpu, skew, ret),

	TP_STRUCT__entry(
		__field(int,	cpu)
		__field(int,	reference)
		__field(s64,	offset)
		__field(s64,	low)
		__field(s64,	high)
		__field(u64,	quantum)
		__field(u64,	residue)
		__field(u32,	rounds)
		__field(int,	ret)
	),

	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->reference = skew->reference;
		__entry->offset = skew->offset;
		__entry->low = skew->low;
		__entry->high = skew->high;
		__entry->quantum = skew->quantum;
		__entry->residue = skew->residue;
		__entry->rounds = skew->rounds;
		__entry->ret = ret;
	),

	TP_printk("cpu=%d reference=%d offset=%lld low=%lld high=%lld quantum=%llu residue=%llu rounds=%u ret=%d",
		  __entry->cpu, __entry->reference, __entry->offset, __entry->low,
		  __entry->high, __entry->quantum, __entry->residue, __entry->rounds,
		  __entry->ret)
);

/**
 * apic_clock_resync - called when a CPU's TSC was compared with another counter
 * @cpu:	the CPU
 * @resync:	known stops of its TSC, this comparison included
 * @rate_ppb:	how much faster than the kernel's frequency the TSC runs, in units of
 *		10^-9, measured on one CPU for all
 *
 * Called every resync_ms, and on request. Comparisons at the end of idle states have no
 * event of their own: the next event includes their result.
 */
TRACE_EVENT(apic_clock_resync,

	TP_PROTO(int cpu, const struct apic_clock_resync *resync, s64 rate_ppb),

	TP_ARGS(cpu, resync, rate_ppb),

	TP_STRUCT__entry(
		__field(int,	cpu)
		__field(s64,	offset)
		__field(u64,	error)
		__field(u64,	stops)
		__field(u64,	lost)
		__field(u64,	ahead)
		__field(u64,	rejected)
		__field(s64,	rate_ppb)
	),

	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->offset = resync->offset;
		__entry->error = resync->error;
		__entry->stops = resync->stops;
		__entry->lost = resync->lost;
		__entry->ahead = resync->ahead;
		__entry->rejected = resync->rejected;
		__entry->rate_ppb = rate_ppb;
	),

	TP_printk("cpu=%d offset=%lld error=%llu stops=%llu lost=%llu ahead=%llu rejected=%llu rate_ppb=%lld",
		  __entry->cpu, __entry->offset, __entry->error, __entry->stops,
		  __entry->lost, __entry->ahead, __entry->rejected, __entry->rate_ppb)
);

/**
 * apic_clock_convert - called when a clock's moment was converted to the TSC, and the CPU's
 * timer armed for that
 * @timer:	the timer
 * @expires:	absolute TSC at which it will expire, cycles
 *
 * Called some milliseconds before the moment, and again whenever the clock was steered or
 * set since.
 */
TRACE_EVENT(apic_clock_convert,

	TP_PROTO(const struct apic_clock_timer *timer, u64 expires),

	TP_ARGS(timer, expires),

	TP_STRUCT__entry(
		__field(const void *,	timer)
		__field(const void *,	function)
		__field(int,	clock)
		__field(int,	cpu)
		__field(s64,	when)
		__field(u64,	expires)
	),

	TP_fast_assign(
		__entry->timer = timer;
		__entry->function = timer->timer.function;
		__entry->clock = timer->clock;
		__entry->cpu = timer->cpu;
		__entry->when = timer->when;
		__entry->expires = expires;
	),

	TP_printk("timer=%p function=%ps clock=%d cpu=%d when=%lld expires=%llu",
		  __entry->timer, __entry->function, __entry->clock, __entry->cpu,
		  __entry->when, __entry->expires)
);

/**
 * apic_clock_group - called when an expiry of a group is complete, before its
 * @done
 * @function:	the group's handler
 * @cpus:	number of the group's members
 * @receipt:	outcome of the expiry
 */
TRACE_EVENT(apic_clock_group,

	TP_PROTO(const void *function, unsigned int cpus, const struct apic_clock_receipt *receipt),

	TP_ARGS(function, cpus, receipt),

	TP_STRUCT__entry(
		__field(const void *,	function)
		__field(u64,	when)
		__field(u32,	cpus)
		__field(u32,	called)
		__field(s64,	first)
		__field(s64,	last)
		__field(u64,	error)
		__field(int,	ret)
	),

	TP_fast_assign(
		__entry->function = function;
		__entry->when = receipt->when;
		__entry->cpus = cpus;
		__entry->called = receipt->called;
		__entry->first = receipt->first;
		__entry->last = receipt->last;
		__entry->error = receipt->error;
		__entry->ret = receipt->ret;
	),

	TP_printk("function=%ps when=%llu cpus=%u called=%u first=%lld last=%lld error=%llu ret=%d",
		  __entry->function, __entry->when, __entry->cpus, __entry->called,
		  __entry->first, __entry->last, __entry->error, __entry->ret)
);

#endif /* _TRACE_APIC_CLOCK_H */

#include <trace/define_trace.h>
