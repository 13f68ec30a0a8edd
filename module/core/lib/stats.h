/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_STATS_H
#define _APIC_TIMER_STATS_H

#include <linux/bitops.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/types.h>

/* X(enumerator, name in debugfs, what it counts) */
#define APIC_TIMER_STATS(X)						\
	X(ADDED, added, "timers made pending")				\
	X(MODIFIED, modified, "pending timers given another expiry")	\
	X(DELETED, deleted, "pending timers deleted")			\
	X(EXPIRED, expired, "handlers called")				\
	X(ADDED_LATE, added_late, "timers added, or made earlier, with an expiry already past") \
	X(CANCELLED, cancelled, "timers cancelled at unload, or because no CPU was left")	\
	X(MIGRATED, migrated, "timers migrated off a CPU that went offline") \
	X(REFUSED, refused, "calls refused with an error")		\
	X(INTERRUPTS, interrupts, "interrupts taken")			\
	X(SPURIOUS, spurious, "interrupts that have served nothing")		\
	X(KERNEL_EVENTS, kernel_events, "kernel events served")		\
	X(PROGRAMMED, programmed, "times the hardware was programmed")	\
	X(HOPS, hops, "times the hardware was programmed short of its target") \
	X(KICKS, kicks, "interrupts sent to another CPU to program its hardware") \
	X(THROTTLED, throttled, "times handlers were throttled")	\
	X(EXPIRED_LATE, expired_late, "expiries later than late_ns") \
	X(SKIPPED, skipped, "late expiries whose handler was not called, as requested") \
	X(HW_DEAD, hw_dead, "times the hardware was found stopped and was restarted") \
	X(DEFERRED, deferred, "kernel events deferred for an expiry or a fence") \
	X(EARLY_SEEN, early_seen, "handler calls faster than the time subtracted for them") \
	X(SPIN_CYCLES, spin_cycles, "TSC cycles that expiries spun on the TSC")

enum apic_timer_stat {
#define X(id, name, what) APIC_TIMER_STAT_##id,
	APIC_TIMER_STATS(X)
#undef X
	APIC_TIMER_STAT_COUNT,
	/* Not shown: interrupts of the fast path, for a kernel event only. */
	APIC_TIMER_STAT_KERNEL_ONLY = APIC_TIMER_STAT_COUNT,
	APIC_TIMER_STAT_COUNTERS
};

/* Bucket b counts errors of fls64(|error|) == b, in TSC cycles. */
#define APIC_TIMER_STATS_BUCKETS	65

/**
 * struct apic_timer_stats - counters of a CPU
 * @count:	by &enum apic_timer_stat
 * @error:	histogram of handler start - expiry, by sign (0: not early) and
 *		bucket
 *
 * Written by its own CPU only.
 */
struct apic_timer_stats {
	u64 count[APIC_TIMER_STAT_COUNTERS];
	u64 error[2][APIC_TIMER_STATS_BUCKETS];
};

DECLARE_PER_CPU(struct apic_timer_stats, apic_timer_stats);

#define apic_timer_stats_inc(id) \
	this_cpu_inc(apic_timer_stats.count[APIC_TIMER_STAT_##id])

#define apic_timer_stats_add(id, n) \
	this_cpu_add(apic_timer_stats.count[APIC_TIMER_STAT_##id], n)

static inline void apic_timer_stats_error(s64 error)
{
	if (error >= 0)
		this_cpu_inc(apic_timer_stats.error[0][fls64(error)]);
	else
		this_cpu_inc(apic_timer_stats.error[1][fls64(-(u64)error)]);
}

u64 apic_timer_stats_read(unsigned int cpu, enum apic_timer_stat id);
const char *apic_timer_stats_name(enum apic_timer_stat id);
void apic_timer_stats_reset_errors(void);

#endif /* _APIC_TIMER_STATS_H */
