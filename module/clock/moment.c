// SPDX-License-Identifier: GPL-2.0
/*
 * Conversions between the TSC and any clock that timers can expire by: the kernel's clocks,
 * which apic_timer converts, and PTP hardware clocks.
 */
#include <linux/apic_clock.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "phc_line.h"

/**
 * apic_clock_to_tsc() - convert a moment of a clock to TSC
 * @clock:	one of the kernel's clocks, or a number from apic_clock_phc_attach()
 * @when:	absolute, of @clock
 * @error:	set to the result's possible error in TSC cycles, U64_MAX if there is no such
 *		clock or it is gone; may be NULL
 *
 * For the kernel's clocks this is apic_timer_clock_to_tsc(). For a PTP clock the result
 * follows from its last readings, and holds until it is steered or set.
 *
 * Context: Any but NMI.
 * Return: absolute TSC in cycles; 0 if that was before the TSC started, U64_MAX if it
 * does not fit.
 */
u64 apic_clock_to_tsc(clockid_t clock, ktime_t when, u64 *error)
{
	struct apic_clock_phc_line line;
	u64 unused;

	if (!apic_clock_is_phc(clock))
		return apic_timer_clock_to_tsc(clock, when, error);
	if (!error)
		error = &unused;
	if (!apic_clock_phc_line(clock, &line))
		return apic_clock_phc_line_tsc(&line, when, error);
	*error = U64_MAX;
	return U64_MAX;
}
EXPORT_SYMBOL_GPL(apic_clock_to_tsc);

/**
 * apic_clock_from_tsc() - convert a TSC value to a moment of a clock
 * @clock:	as for apic_clock_to_tsc()
 * @tsc:	absolute TSC, cycles
 *
 * Context: Any but NMI.
 * Return: the clock's time at @tsc; KTIME_MAX if it does not fit, there is no such clock, or
 * it is gone.
 */
ktime_t apic_clock_from_tsc(clockid_t clock, u64 tsc)
{
	struct apic_clock_phc_line line;

	if (!apic_clock_is_phc(clock))
		return apic_timer_tsc_to_clock(clock, tsc);
	return apic_clock_phc_line(clock, &line) ? KTIME_MAX : apic_clock_phc_line_read(&line, tsc);
}
EXPORT_SYMBOL_GPL(apic_clock_from_tsc);

/* Time of a clock, and its possible error, ns. */
static ktime_t read_phc(const struct apic_clock_phc_line *line, u64 tsc, s64 *error)
{
	ktime_t time = apic_clock_phc_line_read(line, tsc);
	u64 cycles;

	apic_clock_phc_line_tsc(line, time, &cycles);
	*error = min_t(u64, apic_timer_tsc_to_ns(cycles) + 1, KTIME_MAX / 2);
	return time;
}

/**
 * apic_clock_now() - read a clock, as an interval
 * @clock:	as for apic_clock_to_tsc()
 * @earliest:	set: not before the clock's time when the call began
 * @latest:	set: not after the clock's time when the call ended
 *
 * For the kernel's clocks this is apic_timer_clock_now(). A PTP clock is not read: the
 * interval follows from its last readings, and is wider by their error.
 *
 * Context: Any but NMI.
 * Return: 0; -EINVAL if there is no such clock, or a pointer is NULL; -ENODEV if it is gone.
 */
int apic_clock_now(clockid_t clock, ktime_t *earliest, ktime_t *latest)
{
	u64 begun = apic_timer_now();
	struct apic_clock_phc_line line;
	s64 error;
	int ret;

	if (!apic_clock_is_phc(clock))
		return apic_timer_clock_now(clock, earliest, latest);
	if (!earliest || !latest)
		return -EINVAL;
	ret = apic_clock_phc_line(clock, &line);
	if (ret)
		return ret;
	*earliest = read_phc(&line, begun, &error) - error;
	*latest = read_phc(&line, apic_timer_now(), &error) + error;
	return 0;
}
EXPORT_SYMBOL_GPL(apic_clock_now);
