/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read a clock and the TSC at the same instant. The kernel's snapshot has CLOCK_REALTIME in all
 * versions. Since 7.2 it has other clocks as well, but warns if CLOCK_TAI is requested.
 */
#ifndef _APIC_TIMER_SINK_CLOCK_H
#define _APIC_TIMER_SINK_CLOCK_H

#include <linux/timekeeping.h>
#include <linux/version.h>
#include <asm/msr.h>

static inline s64 sink_clock_snapshot(struct system_time_snapshot *now)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	ktime_get_snapshot_id(CLOCK_REALTIME, now);
	return ktime_to_ns(now->systime);
#else
	ktime_get_snapshot(now);
	return ktime_to_ns(now->real);
#endif
}

/**
 * sink_clock() - read a clock
 * @clock:	CLOCK_MONOTONIC, CLOCK_REALTIME or CLOCK_TAI
 * @cycles:	set to the TSC at the same instant, or shortly before if the clocksource is not the
 *		TSC
 *
 * Return: ns.
 */
static inline s64 sink_clock(u32 clock, u64 *cycles)
{
	struct system_time_snapshot now;
	u64 before = rdtsc_ordered();
	s64 ns = sink_clock_snapshot(&now), first = ns;
	unsigned int tries = 8;

	*cycles = now.cycles;
	if (now.cycles < before || now.cycles > rdtsc_ordered()) {
		*cycles = before;
		/* An HPET's first value may be one that another CPU has read before. */
		while (ns == first && tries--)
			ns = sink_clock_snapshot(&now);
	}
	if (clock == CLOCK_REALTIME)
		return ns;
	ns -= ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_REAL));
	if (clock == CLOCK_TAI)
		ns += ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI));
	return ns;
}

#endif /* _APIC_TIMER_SINK_CLOCK_H */
