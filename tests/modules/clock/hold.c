// SPDX-License-Identifier: GPL-2.0
/*
 * Hold up a CPU with interrupts off, as an SMI or its host would, where apic_clock calls one of
 * its functions. Other CPUs then have time for actions that are rare at that point.
 */
#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/processor.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include "clock_test.h"

static const char * const symbols[] = {
	[CLOCK_TEST_HOLD_CALL] = "apic_clock:call",
	[CLOCK_TEST_HOLD_LIST] = "apic_clock:apic_clock_timer_enlist",
	[CLOCK_TEST_HOLD_TO_TSC] = "apic_clock:apic_clock_to_tsc",
	[CLOCK_TEST_HOLD_MEET] = "apic_clock:take_part",
	[CLOCK_TEST_HOLD_ARRIVED] = "apic_clock:call",
};

/* PATIENCE_US of skew.c */
#define PATIENCE_US	500

static struct kprobe probe;
static u64 cycles, held, released;
static bool first_only;		/* hold up CPU 0 only */
static bool arrived;		/* the CPU's limit begins when it is released */
static atomic_t next;

static int entered(struct kprobe *unused, struct pt_regs *regs)
{
	u64 begun = apic_timer_now();

	if (first_only && smp_processor_id())
		return 0;
	if (atomic_xchg(&next, 0)) {
		while (apic_timer_now() - begun < cycles)
			cpu_relax();
		released = apic_timer_now();
		held = released - begun;
		if (arrived)
			regs->si = released + apic_timer_us_to_tsc(PATIENCE_US);
	}
	return 0;
}

/* Hold up the next caller, once, for @ms. */
int clock_test_hold(unsigned int symbol, unsigned int ms)
{
	int ret;

	if (symbol >= ARRAY_SIZE(symbols))
		return -EINVAL;
	clock_test_hold_end();
	probe = (struct kprobe) {
		.symbol_name = symbols[symbol],
		.pre_handler = entered,
	};
	ret = register_kprobe(&probe);
	if (ret) {
		probe.symbol_name = NULL;
		return ret;
	}
	held = 0;
	released = 0;
	first_only = symbol == CLOCK_TEST_HOLD_MEET;
	arrived = symbol == CLOCK_TEST_HOLD_ARRIVED;
	cycles = apic_timer_ns_to_tsc((u64)ms * NSEC_PER_MSEC);
	atomic_set(&next, 1);
	return 0;
}

/* Return: TSC cycles for which the caller was held up. */
u64 clock_test_hold_end(void)
{
	if (probe.symbol_name)
		unregister_kprobe(&probe);
	probe.symbol_name = NULL;
	return held;
}

/* Return: TSC at which the caller was released, 0 if none was held up. */
u64 clock_test_held_until(void)
{
	return released;
}
