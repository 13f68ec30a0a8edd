// SPDX-License-Identifier: GPL-2.0
/*
 * Kind of the TSC, and conversions between its cycles and nanoseconds. They are
 * exact to the cycle or nanosecond at the kernel's TSC frequency (kHz), and
 * saturate.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/overflow.h>
#include <linux/printk.h>

#ifndef CONFIG_APIC_TIMER_SIM
#include <asm/cpufeature.h>
#endif

#include "tsc/tsc.h"

unsigned int apic_timer_tsc_epoch;

/* Compute value * to / from without a 128-bit division, saturating. */
static u64 scale(u64 value, u32 to, u32 from)
{
	u64 whole = div_u64(value, from);
	u32 rest = value - whole * from;
	u64 high;

	if (check_mul_overflow(whole, (u64)to, &high))
		return U64_MAX;
	return apic_timer_add_tsc(high, div_u64((u64)rest * to, from));
}

/**
 * apic_timer_tsc_from_ns() - convert nanoseconds to TSC cycles at a given rate
 * @ns:		nanoseconds
 * @khz:	TSC frequency in kHz, not 0
 *
 * Return: cycles, rounded down; U64_MAX if the result does not fit.
 */
u64 apic_timer_tsc_from_ns(u64 ns, u32 khz)
{
	return scale(ns, khz, NSEC_PER_MSEC);
}

/**
 * apic_timer_tsc_to_ns_at() - convert TSC cycles to nanoseconds at a given rate
 * @cycles:	TSC cycles
 * @khz:	TSC frequency in kHz, not 0
 *
 * Return: nanoseconds, rounded down; U64_MAX if the result does not fit.
 */
u64 apic_timer_tsc_to_ns_at(u64 cycles, u32 khz)
{
	return scale(cycles, NSEC_PER_MSEC, khz);
}

/**
 * apic_timer_add_tsc() - add a distance to a TSC value, saturating
 * @tsc:	TSC value, cycles
 * @cycles:	distance, cycles
 *
 * Context: Any.
 * Return: @tsc + @cycles, or U64_MAX (never) if that overflows.
 */
u64 apic_timer_add_tsc(u64 tsc, u64 cycles)
{
	u64 sum;

	return check_add_overflow(tsc, cycles, &sum) ? U64_MAX : sum;
}
EXPORT_SYMBOL_GPL(apic_timer_add_tsc);

/**
 * apic_timer_tsc_shift() - shift a TSC value, saturating
 * @tsc:	TSC value, cycles; U64_MAX (never) is kept
 * @shift:	cycles
 *
 * Return: @tsc + @shift; 0 or U64_MAX if that does not fit.
 */
u64 apic_timer_tsc_shift(u64 tsc, s64 shift)
{
	u64 back = -(u64)shift;

	if (shift >= 0)
		return apic_timer_add_tsc(tsc, shift);
	if (tsc == U64_MAX)
		return tsc;
	return tsc > back ? tsc - back : 0;
}

/**
 * apic_timer_now() - read the TSC of this CPU, ordered after earlier loads
 *
 * Context: Any.
 * Return: TSC, cycles.
 */
u64 apic_timer_now(void)
{
	return apic_timer_tsc_now();
}
EXPORT_SYMBOL_GPL(apic_timer_now);

/**
 * apic_timer_ns_to_tsc() - convert nanoseconds to TSC cycles
 * @ns:		a distance in nanoseconds
 *
 * Context: Any.
 * Return: cycles, rounded down; U64_MAX if the result does not fit.
 */
u64 apic_timer_ns_to_tsc(u64 ns)
{
	return apic_timer_tsc_from_ns(ns, apic_timer_tsc_khz());
}
EXPORT_SYMBOL_GPL(apic_timer_ns_to_tsc);

/**
 * apic_timer_us_to_tsc() - convert microseconds to TSC cycles
 * @us:		a distance in microseconds
 *
 * Context: Any.
 * Return: cycles, rounded down; U64_MAX if the result does not fit.
 */
u64 apic_timer_us_to_tsc(u64 us)
{
	return scale(us, apic_timer_tsc_khz(), USEC_PER_MSEC);
}
EXPORT_SYMBOL_GPL(apic_timer_us_to_tsc);

/**
 * apic_timer_tsc_to_ns() - convert TSC cycles to nanoseconds
 * @cycles:	a distance in TSC cycles
 *
 * Context: Any.
 * Return: nanoseconds, rounded down; U64_MAX if the result does not fit.
 */
u64 apic_timer_tsc_to_ns(u64 cycles)
{
	return apic_timer_tsc_to_ns_at(cycles, apic_timer_tsc_khz());
}
EXPORT_SYMBOL_GPL(apic_timer_tsc_to_ns);

/**
 * apic_timer_tsc_kind() - get what the CPU guarantees about its TSC
 *
 * Return: see &enum apic_timer_tsc_kind.
 */
enum apic_timer_tsc_kind apic_timer_tsc_kind(void)
{
#ifdef CONFIG_APIC_TIMER_SIM
	return APIC_TIMER_TSC_NONSTOP;
#else
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC))
		return APIC_TIMER_TSC_PLAIN;
	if (!boot_cpu_has(X86_FEATURE_NONSTOP_TSC))
		return APIC_TIMER_TSC_CONSTANT;
	return APIC_TIMER_TSC_NONSTOP;
#endif
}

/**
 * apic_timer_tsc_kind_name() - name a TSC kind
 * @kind:	see &enum apic_timer_tsc_kind
 *
 * Return: one word.
 */
const char *apic_timer_tsc_kind_name(enum apic_timer_tsc_kind kind)
{
	switch (kind) {
	case APIC_TIMER_TSC_NONSTOP:
		return "nonstop";
	case APIC_TIMER_TSC_CONSTANT:
		return "constant";
	default:
		return "plain";
	}
}

/**
 * apic_timer_tsc_stable() - check whether the kernel trusts the TSC
 *
 * Return: false if the kernel has marked it unstable (rate, CPUs out of step).
 */
bool apic_timer_tsc_stable(void)
{
#ifdef CONFIG_APIC_TIMER_SIM
	return true;
#else
	return !check_tsc_unstable();
#endif
}

/**
 * apic_timer_tsc_init() - check that the TSC is usable for deadlines
 *
 * Return: 0; -ENODEV without a TSC of known frequency.
 */
int apic_timer_tsc_init(void)
{
#ifndef CONFIG_APIC_TIMER_SIM
	if (!boot_cpu_has(X86_FEATURE_TSC) || !apic_timer_tsc_khz()) {
		pr_err("no TSC of known frequency\n");
		return -ENODEV;
	}
#endif
	if (!apic_timer_tsc_stable())
		pr_warn("the TSC is marked unstable: a deadline taken on one CPU may be wrong on another\n");
	return 0;
}
