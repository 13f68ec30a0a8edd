// SPDX-License-Identifier: GPL-2.0
/*
 * The part of the exported interface that reports how long handlers have kept the CPU
 * busy.
 */
#include <linux/export.h>
#include <linux/lockdep.h>

#include <linux/apic_timer.h>

#include "policy/throttle.h"
#include "timers/base.h"
#include "tsc/tsc.h"

/**
 * apic_timer_busy() - get for how long handlers have kept this CPU busy without a break
 *
 * After the parameter busy_us, no handler runs for at least as long, and timers that are
 * due are late by that time. Before that happens, timers of mode exact spin less. A handler
 * that spins until a moment of its own should do the same: at level 1 spin no longer
 * than usual, and at level 2 leave its work to softirq or a thread, where the rest of
 * the system gets its turn.
 *
 * Context: In a handler, or with interrupts off.
 * Return:
 * * %0 - not for long
 * * %1 - for a quarter of busy_us or more
 * * %2 - for half of it or more
 */
unsigned int apic_timer_busy(void)
{
	const struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	if (likely(!base->throttle.level))
		return 0;
	return base->expiring ? base->throttle.level :
	       apic_timer_throttle_level_at(&base->throttle, apic_timer_tsc_now());
}
EXPORT_SYMBOL_GPL(apic_timer_busy);
