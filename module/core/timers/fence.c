// SPDX-License-Identifier: GPL-2.0
/*
 * The part of the exported interface that keeps the kernel's events away.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/time64.h>

#include <linux/apic_timer.h>

#include "lib/refuse.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "policy/target.h"
#include "timers/base.h"
#include "tsc/tsc.h"

/*
 * Maximum distance of a fence: multiples of defer_ns, or this if it is more. A thread may be
 * woken earlier than defer_ns, which limits how long events are deferred: calendars, by up to
 * 100 us.
 */
#define AHEAD		2
#define AHEAD_NS	(200 * NSEC_PER_USEC)

static bool is_too_far(u64 distance, u64 max)
{
	return distance > AHEAD * max && distance > apic_timer_ns_to_tsc(AHEAD_NS);
}

static int set(u64 until)
{
	const struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);
	u64 max = apic_timer_target_defer_max, now = apic_timer_tsc_now();

	lockdep_assert_irqs_disabled();
	if (!base->online)
		return -ENODEV;
	if (!max || !apic_timer_source->shared)
		return -EOPNOTSUPP;
	if (until <= now)
		return 0;
	if (is_too_far(until - now, max))
		return -ERANGE;
	apic_timer_mux_fence(until, max, now);
	return 0;
}

/**
 * apic_timer_fence() - keep the kernel's own events away until a moment
 * @until:	the moment, absolute TSC in cycles
 *
 * A kernel event on this CPU, such as its tick, that is due within the parameter
 * defer_ns before @until is deferred to @until; an event that is due earlier is
 * served in time. This is for code that runs at a chosen moment outside a handler,
 * such as a thread that a handler has woken and that waits for the moment on the
 * TSC: call it in that handler, with @until shortly after the moment. Timers of
 * mode exact need no fence. Interrupts of devices are not kept away.
 *
 * An event is deferred by at most defer_ns, and only once: a later fence does not
 * defer it again, so that no series of fences can stop the tick. Deferred events
 * are counted and traced. There is nothing to undo: a fence ends at @until.
 * Fences that stand at the same time count as one: see mux/fence.c.
 *
 * Context: Any but NMI; bound to the CPU in question: in a handler, or with
 * preemption or migration disabled.
 * Return:
 * * %0 - the fence stands, or @until has passed
 * * %-ERANGE - @until is further ahead than twice defer_ns, and than 200 us
 * * %-EOPNOTSUPP - apic_timer does not deliver the kernel's events (source
 *   hrtimer, or a LAPIC timer that the kernel does not use), or defer_ns is 0
 * * %-ENODEV - this CPU does not accept timers
 * * %-EPERM - called from NMI
 */
int apic_timer_fence(u64 until)
{
	unsigned long flags;
	int ret;

	if (in_nmi())
		return apic_timer_refuse(-EPERM, APIC_TIMER_CALLER, "called from NMI");
	local_irq_save(flags);
	ret = set(until);
	local_irq_restore(flags);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_timer_fence);
