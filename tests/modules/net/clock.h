/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A clock and the TSC read at the same instant. Before 7.2 the kernel took
 * them for all clocks at once, and gave only CLOCK_REALTIME among these.
 */
#ifndef _APIC_TIMER_SINK_CLOCK_H
#define _APIC_TIMER_SINK_CLOCK_H

#include <linux/timekeeping.h>
#include <linux/version.h>

/**
 * sink_clock() - read a clock
 * @clock:	CLOCK_MONOTONIC, CLOCK_REALTIME or CLOCK_TAI
 * @cycles:	set to the TSC then
 *
 * Return: ns.
 */
static inline s64 sink_clock(u32 clock, u64 *cycles)
{
	struct system_time_snapshot now;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	ktime_get_snapshot_id(clock, &now);
	*cycles = now.cycles;
	return ktime_to_ns(now.systime);
#else
	s64 real;

	ktime_get_snapshot(&now);
	*cycles = now.cycles;
	real = ktime_to_ns(now.real);
	if (clock == CLOCK_REALTIME)
		return real;
	real -= ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_REAL));
	if (clock == CLOCK_TAI)
		real += ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI));
	return real;
#endif
}

#endif /* _APIC_TIMER_SINK_CLOCK_H */
