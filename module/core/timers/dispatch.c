// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatch: the last part of the way from the interrupt to a handler. Spin until
 * the expiry, if need be, and call the handler.
 *
 * All work that can precede the last read of the TSC does. The rest is the same few
 * instructions each time: calibrate.c measures them, and the time that they certainly
 * take is subtracted. The latency of the expiry is learnt while spinning if there is
 * time, otherwise by the caller, when it has nothing more urgent to do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/prefetch.h>
#include <linux/printk.h>

#include "hw/spin.h"
#include "lib/param.h"
#include "lib/stats.h"
#include "timers/dispatch.h"

APIC_TIMER_PARAM(late_ns, 1000, 0, 1000000000, "ns",
		 "delay of the handler's start above which an expiry counts as late");

s64 apic_timer_dispatch_late_limit;	/* TSC cycles */

DEFINE_PER_CPU(struct apic_timer_dispatch_cost, apic_timer_dispatch_cost);

static bool too_late(const struct apic_timer_dispatch *expiry)
{
	return expiry->skip_late &&
	       (s64)(expiry->ready - expiry->expires) > apic_timer_dispatch_late_limit;
}

/*
 * A handler has enabled interrupts, as spin_unlock_irq() does, or has taken a lock
 * and not released it. Restore the context: the interrupted task must not suffer
 * from it, and the code below takes locks that interrupts take.
 */
static noinline void restore_context(const struct apic_timer_dispatch *expiry, int count)
{
	bool enabled = !irqs_disabled();

	local_irq_disable();
	if (enabled)
		pr_warn_once("handler %ps has enabled interrupts\n", expiry->function);
	if (preempt_count() != count) {
		pr_warn_once("handler %ps has left a preempt count of %#x instead of %#x\n",
			     expiry->function, preempt_count(), count);
		preempt_count_set(count);
	}
}

/**
 * apic_timer_dispatch() - run a handler at its time
 * @expiry:	the expiry, which is due
 *
 * Changes that the handler made to the interrupt flag and the preempt count are
 * undone after it has returned. There must be only one copy of this function: the
 * time measured for it does not hold for a copy that the compiler specialised.
 *
 * Context: Hard interrupt, interrupts off, no lock held.
 */
noinline __noclone void apic_timer_dispatch(struct apic_timer_dispatch *expiry)
{
	const struct apic_timer_dispatch_cost *cost =
		this_cpu_ptr(&apic_timer_dispatch_cost);
	u64 call = cost->call[APIC_TIMER_DISPATCH_WAIT];
	u64 until = expiry->expires - call;
	int count = preempt_count();

	/*
	 * Both may be cold in the cache, and are needed when the spin ends.
	 * Many handlers get a pointer as their data; another value does no
	 * harm.
	 */
	prefetch(expiry->function);
	prefetch((void *)expiry->data);
	expiry->ready = apic_timer_tsc_now();
	if (unlikely(too_late(expiry))) {
		expiry->skipped = true;
		expiry->start = expiry->ready;
		apic_timer_stats_inc(SKIPPED);
	} else if (expiry->exact && (s64)(until - expiry->ready) > 0) {
		if ((s64)(expiry->expires - expiry->ready) > (s64)cost->learn) {
			apic_timer_dispatch_learn(expiry);
			expiry->learnt = true;
		}
		expiry->start = apic_timer_spin(until) + call;
		expiry->function(expiry->start, expiry->data);
	} else {
		call = cost->call[APIC_TIMER_DISPATCH_AT_ONCE];
		expiry->start = apic_timer_tsc_now() + call;
		expiry->function(expiry->start, expiry->data);
	}
	if (unlikely(!irqs_disabled() || preempt_count() != count))
		restore_context(expiry, count);
}

/**
 * apic_timer_dispatch_init() - read the module parameter
 */
void apic_timer_dispatch_init(void)
{
	apic_timer_dispatch_late_limit = min_t(u64, apic_timer_ns_to_tsc(late_ns), S64_MAX);
}
