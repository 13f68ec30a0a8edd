/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_STATS_H
#define _APIC_TIMER_STATS_H

#include <linux/bitops.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/types.h>

/* X(enumerator, name in debugfs, what it counts) */
#define APIC_TIMER_STATS(X)						\
	X(ADDED, added, "timers armed")					\
	X(MODIFIED, modified, "pending timers given another expiry")	\
	X(DELETED, deleted, "pending timers deleted")			\
	X(EXPIRED, expired, "handlers run")				\
	X(ADDED_LATE, added_late, "timers armed for a moment already past")		\
	X(CANCELLED, cancelled, "pending timers taken back at unload")	\
	X(MIGRATED, migrated, "timers moved off a CPU going offline")	\
	X(REFUSED, refused, "calls refused with an error")		\
	X(INTERRUPTS, interrupts, "interrupts taken")			\
	X(SPURIOUS, spurious, "interrupts with nothing due") \
	X(KERNEL_EVENTS, kernel_events, "kernel events served")		\
	X(PROGRAMMED, programmed, "times the hardware was armed")			\
	X(HOPS, hops, "expiries armed short of their target, to aim again") \
	X(KICKS, kicks, "interrupts sent to another CPU to arm there")	\
	X(THROTTLED, throttled, "times handlers were held back for a while") \
	X(EXPIRED_LATE, expired_late, "expiries that were later than late_ns")	\
	X(SKIPPED, skipped, "late expiries that were skipped, as asked")	\
	X(HW_DEAD, hw_dead, "times the hardware had been stopped by somebody else") \
	X(DEFERRED, deferred, "kernel events held back for an expiry")	\
	X(EARLY_SEEN, early_seen, "calls found to be faster than allowed for") \
	X(SPIN_CYCLES, spin_cycles, "TSC cycles that expiries waited on the TSC")

enum apic_timer_stat {
#define X(id, name, what) APIC_TIMER_STAT_##id,
	APIC_TIMER_STATS(X)
#undef X
	APIC_TIMER_STAT_COUNT,
	/* Not shown: interrupts for an event of the kernel's alone. */
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
