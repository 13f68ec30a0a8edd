/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_GTOD_H
#define _APIC_TIMER_GTOD_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/time.h>
#include <linux/types.h>

#include "tsc/line.h"
#include "tsc/tsc.h"

/* The clocks that are computed from the timekeeper's lines. */
#define APIC_TIMER_GTOD_CLOCKS (BIT(CLOCK_REALTIME) | BIT(CLOCK_MONOTONIC) | \
				BIT(CLOCK_MONOTONIC_RAW) | BIT(CLOCK_BOOTTIME) | BIT(CLOCK_TAI))

/* Lines are indexed by clock id; the line of an id without a clock stays empty. */
#define APIC_TIMER_GTOD_LINES	16

static inline bool apic_timer_gtod_has(clockid_t clock)
{
	return (unsigned int)clock < BITS_PER_LONG && APIC_TIMER_GTOD_CLOCKS >> clock & 1;
}

/**
 * struct apic_timer_gtod_source - clocksource of the kernel's clocks
 * @mult:	rate of CLOCK_MONOTONIC by the clocksource; 0 while unknown
 * @nominal:	the same without NTP's steering; 0 while unknown
 * @tick_ns:	step in which the clocksource counts, ns, rounded up
 * @shared:	CPUs that read it at the same time share one CPU's reading
 */
struct apic_timer_gtod_source {
	u32 mult, nominal, tick_ns;
	bool shared;
};

/*
 * Maximum error of the kernel's TSC frequency against its other clock: 2^-9. In guests of a
 * busy host, 1,300 ppm were seen.
 */
#define APIC_TIMER_GTOD_DRIFT_SHIFT	9
/* The kernel steers its clocks by at most 11 percent. */
#define APIC_TIMER_GTOD_STEER_SHIFT	2

/**
 * apic_timer_gtod_error() - get how far off a moment is that was converted by a reading
 *	of a clock
 * @source:	clocksource of the clock
 * @cycles:	from the reading to the moment
 *
 * Context: Any.
 * Return: TSC cycles, without those that the reading took.
 */
static inline u64 apic_timer_gtod_error(const struct apic_timer_gtod_source *source, u64 cycles)
{
	unsigned int shift = source->mult ? APIC_TIMER_GTOD_DRIFT_SHIFT :
					    APIC_TIMER_GTOD_STEER_SHIFT;

	/* The clock counts in steps, and may be read at any point of one. */
	return apic_timer_add_tsc(apic_timer_ns_to_tsc(source->tick_ns), (cycles >> shift) + 1);
}

#ifdef CONFIG_APIC_TIMER_SIM

static inline struct apic_timer_line apic_timer_gtod_line(unsigned int clock)
{
	return (struct apic_timer_line) {};
}

static inline unsigned int apic_timer_gtod_changes(void)
{
	return 0;
}

static inline struct apic_timer_gtod_source apic_timer_gtod_source(void)
{
	return (struct apic_timer_gtod_source) { .mult = 1, .nominal = 1 };
}

static inline bool apic_timer_gtod_start(void)
{
	return false;
}

static inline void apic_timer_gtod_exit(void)
{
}

#else

#include <linux/seqlock.h>

/**
 * struct apic_timer_gtod - copy of the parameters of the kernel's timekeeper
 * @line:	by clock; with a @mult of 0 while the clocksource is not the TSC
 * @source:	the clocksource
 */
struct apic_timer_gtod {
	struct apic_timer_line line[APIC_TIMER_GTOD_LINES];
	struct apic_timer_gtod_source source;
};

/* A reader never waits: it reads the other copy while one is written. */
extern seqcount_latch_t apic_timer_gtod_latch;
extern struct apic_timer_gtod apic_timer_gtod[2];

/**
 * apic_timer_gtod_line() - get the present line of a clock
 * @clock:	its id, less than %APIC_TIMER_GTOD_LINES
 *
 * Context: Any.
 * Return: the line; with a @mult of 0 if none is known: there is no such clock,
 * the clocksource is not the TSC, or apic_timer_gtod_start() was not called.
 */
static __always_inline struct apic_timer_line apic_timer_gtod_line(unsigned int clock)
{
	const struct apic_timer_gtod *gtod;
	struct apic_timer_line line;
	unsigned int seq;

	do {
		seq = raw_read_seqcount_latch(&apic_timer_gtod_latch);
		gtod = &apic_timer_gtod[seq & 1];
		/* Of a copy that is written meanwhile nothing is used. */
		line = data_race(gtod->line[clock % APIC_TIMER_GTOD_LINES]);
		/* Pairs with the barriers of raw_write_seqcount_latch(). */
		smp_rmb();
	} while (unlikely(raw_read_seqcount_latch(&apic_timer_gtod_latch) != seq));
	return line;
}

/**
 * apic_timer_gtod_changes() - get a number that changes with each change of a line
 *
 * The call is ordered after earlier reads of the TSC, and before a later
 * apic_timer_tsc_now().
 *
 * Context: Any.
 * Return: the number.
 */
static __always_inline unsigned int apic_timer_gtod_changes(void)
{
	rmb();	/* LFENCE, which RDTSC doesn't pass: smp_rmb() is none */
	return raw_read_seqcount_latch(&apic_timer_gtod_latch);
}

struct apic_timer_gtod_source apic_timer_gtod_source(void);
bool apic_timer_gtod_start(void);
void apic_timer_gtod_exit(void);

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_GTOD_H */
