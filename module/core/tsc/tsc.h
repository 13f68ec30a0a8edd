/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_TSC_H
#define _APIC_TIMER_TSC_H

#include <linux/apic_timer.h>
#include <linux/math64.h>
#include <linux/time64.h>

/* A TSC value that is never reached. */
#define APIC_TIMER_NEVER	U64_MAX

#ifdef CONFIG_APIC_TIMER_SIM

#include "tsc/sim.h"

static inline u64 apic_timer_tsc_now(void)
{
	return apic_timer_sim_now();
}

static inline u64 apic_timer_tsc_entry(void)
{
	return apic_timer_sim_now();
}

static inline u32 apic_timer_tsc_khz(void)
{
	return apic_timer_sim_tsc_khz();
}

#else

#include <asm/msr.h>
#include <asm/tsc.h>

static inline u64 apic_timer_tsc_now(void)
{
	return rdtsc_ordered();
}

/*
 * For the beginning of an interrupt: no earlier code has to complete before the
 * TSC is read, so it need not be ordered.
 */
static inline u64 apic_timer_tsc_entry(void)
{
	return rdtsc();
}

/* Get the TSC frequency, kHz. The kernel may refine it once, a second or two after boot. */
static inline u32 apic_timer_tsc_khz(void)
{
	return READ_ONCE(tsc_khz);
}

#endif /* CONFIG_APIC_TIMER_SIM */

/* Number of fraction bits of the factor for apic_timer_tsc_from_ns_fast(). */
#define APIC_TIMER_TSC_FAST_SHIFT	24

/**
 * apic_timer_tsc_mult() - compute the factor for apic_timer_tsc_from_ns_fast()
 * @khz:	TSC frequency in kHz
 *
 * Return: TSC cycles per nanosecond times 2^24, rounded up; fits for any @khz.
 */
static inline u64 apic_timer_tsc_mult(u32 khz)
{
	return DIV64_U64_ROUND_UP((u64)khz << APIC_TIMER_TSC_FAST_SHIFT,
				  NSEC_PER_MSEC);
}

/**
 * apic_timer_tsc_fast_max() - get the maximum for apic_timer_tsc_from_ns_fast()
 * @mult:	apic_timer_tsc_mult()
 *
 * Return: ns, valid for factors up to twice @mult: 68 s at 8 GHz, 183 s at
 * 3 GHz.
 */
static inline u64 apic_timer_tsc_fast_max(u64 mult)
{
	return div64_u64(U64_MAX / 2, mult);
}

/**
 * apic_timer_tsc_from_ns_fast() - convert nanoseconds to TSC cycles in two
 *	instructions
 * @ns:		nanoseconds, up to apic_timer_tsc_fast_max()
 * @mult:	apic_timer_tsc_mult()
 *
 * Return: cycles: at least the exact value rounded down, and at most one cycle
 * more for each 2^24 ns.
 */
static __always_inline u64 apic_timer_tsc_from_ns_fast(u64 ns, u64 mult)
{
	return ns * mult >> APIC_TIMER_TSC_FAST_SHIFT;
}

/* Number of the present epoch. Written by epoch.c. */
extern unsigned int apic_timer_tsc_epoch;

/**
 * apic_timer_epoch() - get the number of the TSC's present epoch
 *
 * Return: see &apic_timer_info.tsc_epoch.
 */
static inline unsigned int apic_timer_epoch(void)
{
	return READ_ONCE(apic_timer_tsc_epoch);
}

u64 apic_timer_tsc_shift(u64 tsc, s64 shift);
u64 apic_timer_tsc_from_ns(u64 ns, u32 khz);
u64 apic_timer_tsc_to_ns_at(u64 cycles, u32 khz);
enum apic_timer_tsc_kind apic_timer_tsc_kind(void);
const char *apic_timer_tsc_kind_name(enum apic_timer_tsc_kind kind);
bool apic_timer_tsc_stable(void);
int apic_timer_tsc_init(void);

#endif /* _APIC_TIMER_TSC_H */
