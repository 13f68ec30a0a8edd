// SPDX-License-Identifier: GPL-2.0
/*
 * Conversions between the TSC and the kernel's clocks.
 *
 * Where the kernel's clocksource is the TSC, the kernel's clocks are lines that
 * are known exactly: see gtod.c. Elsewhere (HPET, kvm-clock, ...), both clocks
 * are read at one moment, and the distance from that moment is converted with the
 * TSC's frequency and NTP's steering of the kernel's clock.
 */
#include <linux/apic_timer.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/timekeeping.h>

#include "tsc/gtod.h"
#include "tsc/line.h"
#include "tsc/tsc.h"

static ktime_t read_clock(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_MONOTONIC_RAW:
		return ktime_get_raw();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	case CLOCK_TAI:
		return ktime_get_clocktai();
	default:
		return ktime_get();
	}
}

/* The second read of a clock that CPUs share returns a new value, unless the clock has stopped. */
#define SHARED_TRIES	8

/*
 * CPUs that read the HPET at the same time share one read of it. A CPU that comes later
 * may get a value that was read before it came:
 *
 *	CPU0, in read_hpet()		CPU1
 *
 *	takes the lock
 *	reads the HPET
 *	  (SMI, or its host		looks at the TSC
 *	  runs others)			waits in read_hpet() for a new value
 *	stores the value
 *					has it: older than the look at the TSC
 *
 * The next value was read by a CPU that took the lock later, after CPU1 had read the
 * TSC.
 */
static ktime_t read_since(clockid_t clock, const struct apic_timer_gtod_source *source)
{
	ktime_t first = read_clock(clock), time = first;
	unsigned int i;

	if (likely(!source->shared))
		return first;
	for (i = 0; i < SHARED_TRIES && time == first; i++)
		time = read_clock(clock);
	return time;
}

/**
 * struct both - both clocks at one moment
 * @tsc:	TSC
 * @time:	the kernel's clock
 * @error:	maximum difference between the two reads, TSC cycles
 */
struct both {
	u64 tsc;
	ktime_t time;
	u64 error;
};

static struct both read_both(clockid_t clock, const struct apic_timer_gtod_source *source)
{
	unsigned long flags;
	struct both both;
	u64 before;

	local_irq_save(flags);
	before = apic_timer_tsc_now();
	both.time = read_since(clock, source);
	both.error = DIV_ROUND_UP_ULL(apic_timer_tsc_now() - before, 2);
	local_irq_restore(flags);

	both.tsc = before + both.error;
	return both;
}

/* Convert a distance on the steered clock to one on the unsteered clock, or the reverse. */
static u64 steer(u64 distance, u32 to, u32 from)
{
	/* The product has at most 96 bits; NTP steers by less than an eighth. */
	if (!to || !from || distance > U64_MAX / 2 || from < to - to / 4)
		return distance;
#ifdef CONFIG_APIC_TIMER_SIM
	return distance;
#else
	return mul_u64_u64_div_u64(distance, to, from);
#endif
}

/* Get a clock's line. The first conversion starts the copying of lines. */
static struct apic_timer_line line_of(clockid_t clock)
{
	struct apic_timer_line line = apic_timer_gtod_line(clock);

	if (!line.mult && apic_timer_gtod_start())
		line = apic_timer_gtod_line(clock);
	return line;
}

static struct apic_timer_gtod_source source_for(clockid_t clock)
{
	struct apic_timer_gtod_source source = apic_timer_gtod_source();

	if (clock == CLOCK_MONOTONIC_RAW)
		source.nominal = source.mult;
	return source;
}

static u64 to_tsc(clockid_t clock, ktime_t time, u64 *error)
{
	struct apic_timer_gtod_source source = source_for(clock);
	struct both both = read_both(clock, &source);
	u64 ns, cycles;

	ns = time >= both.time ? (u64)time - both.time : (u64)both.time - time;
	cycles = apic_timer_ns_to_tsc(steer(ns, source.nominal, source.mult));
	*error = apic_timer_add_tsc(both.error, apic_timer_gtod_error(&source, cycles));
	if (time >= both.time)
		return apic_timer_add_tsc(both.tsc, cycles);
	if (cycles < both.tsc)
		return both.tsc - cycles;
	/* The moment is before the TSC started, by this much earlier than the returned value. */
	*error -= min(*error, cycles - both.tsc);
	return 0;
}

/* Convert in the unusual cases: no such clock, no line, far away. */
static noinline u64 to_tsc_slowly(clockid_t clock, ktime_t time, u64 *error)
{
	struct apic_timer_line line;
	u64 unused;

	if (!error)
		error = &unused;
	if (!apic_timer_gtod_has(clock)) {
		*error = U64_MAX;
		return APIC_TIMER_NEVER;
	}
	line = line_of(clock);
	if (!line.mult)
		return to_tsc(clock, time, error);
	*error = 0;
	return apic_timer_line_tsc(&line, time);
}

static ktime_t to_clock(clockid_t clock, u64 tsc)
{
	struct apic_timer_gtod_source source = source_for(clock);
	struct both both = read_both(clock, &source);
	u64 cycles = tsc < both.tsc ? both.tsc - tsc : tsc - both.tsc;
	u64 ns = steer(apic_timer_tsc_to_ns(cycles), source.mult, source.nominal);

	if (tsc < both.tsc)
		return ns < KTIME_MAX ? both.time - (ktime_t)ns : -KTIME_MAX;
	return ns < (u64)(KTIME_MAX - both.time) ? both.time + (ktime_t)ns : KTIME_MAX;
}

static noinline ktime_t to_clock_slowly(clockid_t clock, u64 tsc)
{
	struct apic_timer_line line;

	if (!apic_timer_gtod_has(clock))
		return KTIME_MAX;
	line = line_of(clock);
	return line.mult ? apic_timer_line_read(&line, tsc) : to_clock(clock, tsc);
}

/**
 * apic_timer_clock_to_tsc() - convert a moment of one of the kernel's clocks to TSC
 * @clock:	CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME
 *		or CLOCK_TAI
 * @when:	absolute, as ktime_get() and the like return it
 * @error:	set to the maximum error of the result, TSC cycles; U64_MAX if
 *		@clock is none of these; may be NULL
 *
 * The result holds as long as the clock is neither steered nor set: convert
 * again shortly before @when, or use the timers of <linux/apic_clock.h>, which
 * follow their clock. Where the clocksource is the TSC, the error is 0: the
 * result is the first TSC value at which the clock reads @when or more.
 *
 * Context: Any but NMI.
 * Return: absolute TSC in cycles; 0 if that was before the TSC started, U64_MAX if
 * it does not fit.
 */
u64 apic_timer_clock_to_tsc(clockid_t clock, ktime_t when, u64 *error)
{
	struct apic_timer_line line;
	u64 tsc;

	if (likely((unsigned int)clock < APIC_TIMER_GTOD_LINES)) {
		line = apic_timer_gtod_line(clock);
		if (likely(line.mult) && apic_timer_line_tsc_near(&line, when, &tsc)) {
			if (error)
				*error = 0;
			return tsc;
		}
	}
	return to_tsc_slowly(clock, when, error);
}
EXPORT_SYMBOL_GPL(apic_timer_clock_to_tsc);

/**
 * apic_timer_tsc_to_clock() - convert a TSC value to a moment of one of the kernel's
 *	clocks
 * @clock:	as for apic_timer_clock_to_tsc()
 * @tsc:	absolute TSC, cycles
 *
 * Context: Any but NMI.
 * Return: the clock's reading at @tsc, if it is neither steered nor set
 * meanwhile; negative for a moment before it started, KTIME_MAX if the result
 * does not fit or there is no such clock.
 */
ktime_t apic_timer_tsc_to_clock(clockid_t clock, u64 tsc)
{
	struct apic_timer_line line;
	s64 ns;

	if (likely((unsigned int)clock < APIC_TIMER_GTOD_LINES)) {
		line = apic_timer_gtod_line(clock);
		if (likely(line.mult) && apic_timer_line_read_near(&line, tsc, &ns))
			return ns;
	}
	return to_clock_slowly(clock, tsc);
}
EXPORT_SYMBOL_GPL(apic_timer_tsc_to_clock);

/**
 * apic_timer_clock_now() - read one of the kernel's clocks, as an interval
 * @clock:	as for apic_timer_clock_to_tsc()
 * @earliest:	set to the clock's reading at the beginning of the call, or
 *		later
 * @latest:	set to the clock's reading at the end of the call, or earlier
 *
 * The clock read both values during the call, no matter how long the call was
 * interrupted. The interval does not include the clock's error against the time
 * that NTP or PTP distributes: adjtimex(2) reports that to processes as
 * maxerror.
 *
 * Context: Any but NMI.
 * Return: 0; -EINVAL if there is no such clock, or a pointer is NULL.
 */
int apic_timer_clock_now(clockid_t clock, ktime_t *earliest, ktime_t *latest)
{
	struct apic_timer_gtod_source source;
	struct apic_timer_line line;
	unsigned int changes;
	u64 begun, ended;

	if (unlikely(!earliest || !latest || !apic_timer_gtod_has(clock)))
		return -EINVAL;
	/*
	 * Retry if the line has changed: the clock never read the values of a line that
	 * was not in force.
	 */
	do {
		changes = apic_timer_gtod_changes();
		begun = apic_timer_tsc_now();
		line = line_of(clock);
		ended = apic_timer_tsc_now();
	} while (unlikely(apic_timer_gtod_changes() != changes));
	if (line.mult) {
		*earliest = apic_timer_line_read(&line, begun);
		*latest = apic_timer_line_read(&line, ended);
		return 0;
	}
	source = apic_timer_gtod_source();
	*earliest = read_since(clock, &source);
	*latest = read_clock(clock);
	return 0;
}
EXPORT_SYMBOL_GPL(apic_timer_clock_now);

/**
 * apic_timer_ktime_to_tsc() - convert a moment of CLOCK_MONOTONIC to TSC
 * @time:	absolute CLOCK_MONOTONIC, as ktime_get() returns it
 *
 * See apic_timer_clock_to_tsc().
 *
 * Context: Any but NMI.
 * Return: absolute TSC in cycles; 0 if it was before the TSC started, U64_MAX if
 * it does not fit.
 */
u64 apic_timer_ktime_to_tsc(ktime_t time)
{
	return apic_timer_clock_to_tsc(CLOCK_MONOTONIC, time, NULL);
}
EXPORT_SYMBOL_GPL(apic_timer_ktime_to_tsc);

/**
 * apic_timer_tsc_to_ktime() - convert a TSC value to a moment of CLOCK_MONOTONIC
 * @tsc:	absolute TSC, cycles
 *
 * The reverse of apic_timer_ktime_to_tsc().
 *
 * Context: Any but NMI.
 * Return: absolute CLOCK_MONOTONIC; KTIME_MAX if it does not fit; negative for a
 * moment before the clock started.
 */
ktime_t apic_timer_tsc_to_ktime(u64 tsc)
{
	return apic_timer_tsc_to_clock(CLOCK_MONOTONIC, tsc);
}
EXPORT_SYMBOL_GPL(apic_timer_tsc_to_ktime);
