/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM apic_timer

#if !defined(_TRACE_APIC_TIMER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_APIC_TIMER_H

#include <linux/apic_timer.h>
#include <linux/tracepoint.h>

#ifndef _APIC_TIMER_RECEIPT
#define _APIC_TIMER_RECEIPT

/**
 * struct apic_timer_receipt - the course of one expiry
 * @timer:	the timer; it may have been freed
 * @function:	its handler
 * @expires:	when the handler had to start, absolute TSC
 * @entry:	TSC at the beginning of the interrupt, as read by the source
 * @ready:	TSC when the handler could have started
 * @start:	as passed to the handler: the last TSC value read before the call, plus
 *		the duration of the call where that is certain, in an emulator; @ready
 *		if the handler was not called
 * @lead:	TSC cycles before @expires that the hardware was programmed to fire; 0
 *		in mode raw, and if it was not: another interrupt served this timer, or
 *		it was armed too late
 * @delta:	TSC cycles ahead that the hardware was programmed
 * @deferred:	TSC cycles by which a kernel event has been deferred
 * @smi:	SMIs since the hardware was programmed; 0 where the CPU does not count
 *		them (AMD), and under a hypervisor
 * @mode:	APIC_TIMER_RAW, _MEAN or _EXACT
 * @cpu_state:	state of the CPU that was interrupted: busy (0), idle (1), idle
 *		with its tick stopped (2)
 * @skipped:	the handler was not called, because it would have started late
 */
struct apic_timer_receipt {
	const void *timer;
	const void *function;
	u64 expires;
	u64 entry;
	u64 ready;
	u64 start;
	u64 lead;
	u64 delta;
	u64 deferred;
	u32 smi;
	u8 mode;
	u8 cpu_state;
	bool skipped;
};

#endif /* _APIC_TIMER_RECEIPT */

/* Record the handler too: the timer may have been freed when the record is read. */
DECLARE_EVENT_CLASS(apic_timer_class,

	TP_PROTO(const struct apic_timer_list *timer),

	TP_ARGS(timer),

	TP_STRUCT__entry(
		__field(const void *,	timer)
		__field(void *,		function)
		__field(u64,		expires)
		__field(u32,		cpu)
		__field(u32,		flags)
	),

	TP_fast_assign(
		__entry->timer = timer;
		__entry->function = timer->function;
		__entry->expires = timer->expires;
		__entry->cpu = timer->cpu;
		__entry->flags = timer->flags;
	),

	TP_printk("timer=%p function=%ps expires=%llu cpu=%u flags=%#x",
		  __entry->timer, __entry->function, __entry->expires,
		  __entry->cpu, __entry->flags)
);

/**
 * apic_timer_init - called when a timer is initialised
 * @timer:	the timer
 */
TRACE_EVENT(apic_timer_init,

	TP_PROTO(const struct apic_timer_list *timer),

	TP_ARGS(timer),

	TP_STRUCT__entry(
		__field(const void *,	timer)
	),

	TP_fast_assign(
		__entry->timer = timer;
	),

	TP_printk("timer=%p", __entry->timer)
);

/**
 * apic_timer_add - called when a timer is armed
 * @timer:	the timer
 */
DEFINE_EVENT(apic_timer_class, apic_timer_add,
	TP_PROTO(const struct apic_timer_list *timer),
	TP_ARGS(timer)
);

/**
 * apic_timer_mod - called when a pending timer gets another expiry
 * @timer:	the timer, with its new expiry
 */
DEFINE_EVENT(apic_timer_class, apic_timer_mod,
	TP_PROTO(const struct apic_timer_list *timer),
	TP_ARGS(timer)
);

/**
 * apic_timer_del - called when a pending timer is deleted
 * @timer:	the timer
 */
DEFINE_EVENT(apic_timer_class, apic_timer_del,
	TP_PROTO(const struct apic_timer_list *timer),
	TP_ARGS(timer)
);

/**
 * apic_timer_cancel - called when a pending timer is cancelled: its module is
 *	unloaded, or apic_timer is, or no CPU is left for it
 * @timer:	the timer
 */
DEFINE_EVENT(apic_timer_class, apic_timer_cancel,
	TP_PROTO(const struct apic_timer_list *timer),
	TP_ARGS(timer)
);

/**
 * apic_timer_migrate - called when a timer leaves a CPU that goes offline
 * @timer:	the timer, with its new CPU
 */
DEFINE_EVENT(apic_timer_class, apic_timer_migrate,
	TP_PROTO(const struct apic_timer_list *timer),
	TP_ARGS(timer)
);

/**
 * apic_timer_program - called when the hardware has been programmed
 * @target:	when it has to fire, absolute TSC; U64_MAX if it was stopped, because there
 *		is nothing to fire for
 * @now:	TSC before programming
 * @delta:	TSC cycles from @now that it was programmed for: less than the
 *		distance to @target if it takes several hops
 * @value:	value programmed: the TSC deadline; the one-shot count in bits 0
 *		to 31 and log2 of its divider in bits 32 and up; or the hrtimer's
 *		expiry in ns
 */
TRACE_EVENT(apic_timer_program,

	TP_PROTO(u64 target, u64 now, u64 delta, u64 value),

	TP_ARGS(target, now, delta, value),

	TP_STRUCT__entry(
		__field(u64,	target)
		__field(u64,	now)
		__field(u64,	delta)
		__field(u64,	value)
	),

	TP_fast_assign(
		__entry->target = target;
		__entry->now = now;
		__entry->delta = delta;
		__entry->value = value;
	),

	TP_printk("target=%llu now=%llu delta=%llu value=%#llx",
		  __entry->target, __entry->now, __entry->delta, __entry->value)
);

/**
 * apic_timer_expire_entry - called before a handler, and before the spin of mode
 *	exact
 * @timer:	the timer
 * @function:	its handler
 * @expires:	when the handler has to start, absolute TSC
 * @now:	the present TSC
 */
TRACE_EVENT(apic_timer_expire_entry,

	TP_PROTO(const struct apic_timer_list *timer, const void *function,
		 u64 expires, u64 now),

	TP_ARGS(timer, function, expires, now),

	TP_STRUCT__entry(
		__field(const void *,	timer)
		__field(const void *,	function)
		__field(u64,		expires)
		__field(u64,		now)
	),

	TP_fast_assign(
		__entry->timer = timer;
		__entry->function = function;
		__entry->expires = expires;
		__entry->now = now;
	),

	TP_printk("timer=%p function=%ps expires=%llu now=%llu",
		  __entry->timer, __entry->function, __entry->expires,
		  __entry->now)
);

/**
 * apic_timer_expire_exit - called after a handler
 * @timer:	the timer; it may have been freed
 * @function:	its handler
 * @now:	TSC passed to the handler
 * @end:	TSC when it has returned
 */
TRACE_EVENT(apic_timer_expire_exit,

	TP_PROTO(const void *timer, const void *function, u64 now, u64 end),

	TP_ARGS(timer, function, now, end),

	TP_STRUCT__entry(
		__field(const void *,	timer)
		__field(const void *,	function)
		__field(u64,		cycles)
	),

	TP_fast_assign(
		__entry->timer = timer;
		__entry->function = function;
		__entry->cycles = end - now;
	),

	TP_printk("timer=%p function=%ps cycles=%llu",
		  __entry->timer, __entry->function, __entry->cycles)
);

/**
 * apic_timer_receipt - called after each dispatch: the receipt of an expiry, which
 *	shows what made it late
 * @receipt:	the course of the expiry
 *
 * In order of time: the hardware is programmed @delta cycles ahead, to fire @lead
 * cycles early; its interrupt arrives at @entry; the handler could start at @ready;
 * after @spin cycles it starts, with an error of @error.
 */
TRACE_EVENT(apic_timer_receipt,

	TP_PROTO(const struct apic_timer_receipt *receipt),

	TP_ARGS(receipt),

	TP_STRUCT__entry(
		__field(const void *,	timer)
		__field(const void *,	function)
		__field(u64,		expires)
		__field(u64,		entry)
		__field(u64,		ready)
		__field(u64,		now)
		__field(s64,		error)
		__field(s64,		spin)
		__field(u64,		lead)
		__field(u64,		delta)
		__field(u64,		deferred)
		__field(u32,		smi)
		__field(u8,		mode)
		__field(u8,		cpu_state)
		__field(bool,		skipped)
	),

	TP_fast_assign(
		__entry->timer = receipt->timer;
		__entry->function = receipt->function;
		__entry->expires = receipt->expires;
		__entry->entry = receipt->entry;
		__entry->ready = receipt->ready;
		__entry->now = receipt->start;
		__entry->error = receipt->start - receipt->expires;
		__entry->spin = receipt->start - receipt->ready;
		__entry->lead = receipt->lead;
		__entry->delta = receipt->delta;
		__entry->deferred = receipt->deferred;
		__entry->smi = receipt->smi;
		__entry->mode = receipt->mode;
		__entry->cpu_state = receipt->cpu_state;
		__entry->skipped = receipt->skipped;
	),

	TP_printk("timer=%p function=%ps expires=%llu entry=%llu ready=%llu now=%llu error=%lld spin=%lld lead=%llu delta=%llu deferred=%llu smi=%u mode=%s cpu_state=%s%s",
		  __entry->timer, __entry->function, __entry->expires,
		  __entry->entry, __entry->ready, __entry->now, __entry->error,
		  __entry->spin, __entry->lead, __entry->delta, __entry->deferred,
		  __entry->smi,
		  __print_symbolic(__entry->mode, { APIC_TIMER_RAW, "raw" },
				   { APIC_TIMER_MEAN, "mean" },
				   { APIC_TIMER_EXACT, "exact" }),
		  __print_symbolic(__entry->cpu_state, { 0, "busy" }, { 1, "idle" },
				   { 2, "stopped" }),
		  __entry->skipped ? " skipped" : "")
);

/**
 * apic_timer_defer - called when a kernel event that was deferred is served
 * @expires:	when it was due, absolute TSC
 * @now:	the present TSC
 */
TRACE_EVENT(apic_timer_defer,

	TP_PROTO(u64 expires, u64 now),

	TP_ARGS(expires, now),

	TP_STRUCT__entry(
		__field(u64,	expires)
		__field(u64,	deferred)
	),

	TP_fast_assign(
		__entry->expires = expires;
		__entry->deferred = now - expires;
	),

	TP_printk("expires=%llu deferred=%llu", __entry->expires, __entry->deferred)
);

/**
 * apic_timer_hw_dead - called when the watchdog has restarted a LAPIC timer that
 *	other code had stopped
 * @fires:	when it should have fired at the latest, absolute TSC
 * @now:	the present TSC
 */
TRACE_EVENT(apic_timer_hw_dead,

	TP_PROTO(u64 fires, u64 now),

	TP_ARGS(fires, now),

	TP_STRUCT__entry(
		__field(u64,	fires)
		__field(u64,	now)
	),

	TP_fast_assign(
		__entry->fires = fires;
		__entry->now = now;
	),

	TP_printk("fires=%llu now=%llu", __entry->fires, __entry->now)
);

/**
 * apic_timer_epoch - called when the TSC has not counted through a sleep
 * @epoch:	number of the epoch that begins
 * @shift:	TSC cycles by which pending timers were moved
 */
TRACE_EVENT(apic_timer_epoch,

	TP_PROTO(unsigned int epoch, s64 shift),

	TP_ARGS(epoch, shift),

	TP_STRUCT__entry(
		__field(unsigned int,	epoch)
		__field(s64,		shift)
	),

	TP_fast_assign(
		__entry->epoch = epoch;
		__entry->shift = shift;
	),

	TP_printk("epoch=%u shift=%lld", __entry->epoch, __entry->shift)
);

/**
 * apic_timer_kernel_event - called before the kernel's clock event is served
 * @expires:	when it was due, absolute TSC
 * @now:	the present TSC
 */
TRACE_EVENT(apic_timer_kernel_event,

	TP_PROTO(u64 expires, u64 now),

	TP_ARGS(expires, now),

	TP_STRUCT__entry(
		__field(u64,	expires)
		__field(u64,	now)
		__field(s64,	error)
	),

	TP_fast_assign(
		__entry->expires = expires;
		__entry->now = now;
		__entry->error = now - expires;
	),

	TP_printk("expires=%llu now=%llu error=%lld",
		  __entry->expires, __entry->now, __entry->error)
);

/**
 * apic_timer_throttle - called when handlers have exceeded busy_us
 * @busy:	TSC cycles that they have taken without a break
 * @until:	no handler runs on this CPU before this TSC
 */
TRACE_EVENT(apic_timer_throttle,

	TP_PROTO(u64 busy, u64 until),

	TP_ARGS(busy, until),

	TP_STRUCT__entry(
		__field(u64,	busy)
		__field(u64,	until)
	),

	TP_fast_assign(
		__entry->busy = busy;
		__entry->until = until;
	),

	TP_printk("busy=%llu until=%llu", __entry->busy, __entry->until)
);

DECLARE_EVENT_CLASS(apic_timer_source_class,

	TP_PROTO(const char *source, unsigned int cpu),

	TP_ARGS(source, cpu),

	TP_STRUCT__entry(
		__array(char,	source, 16)
		__field(u32,	cpu)
	),

	TP_fast_assign(
		strscpy(__entry->source, source, sizeof(__entry->source));
		__entry->cpu = cpu;
	),

	TP_printk("source=%s cpu=%u", __entry->source, __entry->cpu)
);

/**
 * apic_timer_source_attach - called when a CPU's timer has been attached
 * @source:	name of the source
 * @cpu:	the CPU
 */
DEFINE_EVENT(apic_timer_source_class, apic_timer_source_attach,
	TP_PROTO(const char *source, unsigned int cpu),
	TP_ARGS(source, cpu)
);

/**
 * apic_timer_source_detach - called when a CPU's timer has been returned to the kernel
 * @source:	name of the source
 * @cpu:	the CPU
 */
DEFINE_EVENT(apic_timer_source_class, apic_timer_source_detach,
	TP_PROTO(const char *source, unsigned int cpu),
	TP_ARGS(source, cpu)
);

#endif /* _TRACE_APIC_TIMER_H */

#include <trace/define_trace.h>
