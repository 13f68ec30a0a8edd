// SPDX-License-Identifier: GPL-2.0
/*
 * The last stretch of a shot: wait if need be, and call the handler.
 *
 * All that can be done before the last look at the TSC is done before it, and
 * the rest takes the same few instructions each time: that is measured once
 * and taken off. What is to be learnt from the shot is learnt while waiting if
 * there is time for that, otherwise when the handler has run.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/prefetch.h>
#include <linux/printk.h>
#include <linux/sort.h>

#include "dispatch.h"
#include "param.h"
#include "spin.h"
#include "stats.h"

APIC_TIMER_PARAM(late_ns, 1000, 0, 1000000000, "ns",
		 "a shot is late when it starts later than this after its expiry");

static u64 late_limit;	/* TSC cycles */

DEFINE_PER_CPU(struct apic_timer_dispatch_cost, apic_timer_dispatch_cost);

static bool too_late(const struct apic_timer_dispatch *shot)
{
	if ((s64)(shot->ready - shot->expires) <= (s64)late_limit)
		return false;
	apic_timer_stats_inc(LATE_SHOTS);
	return shot->skip_late;
}

static void learn(const struct apic_timer_dispatch *shot)
{
	if (shot->aim)
		apic_timer_lead_learn(shot->class, shot->ready - shot->aim);
}

/*
 * A handler has enabled interrupts, as spin_unlock_irq() does, or has taken a
 * lock and kept it. Who is interrupted isn't to blame, and what follows takes
 * locks that interrupts take.
 */
static noinline void put_right(const struct apic_timer_dispatch *shot, int count)
{
	bool enabled = !irqs_disabled();

	local_irq_disable();
	if (enabled)
		pr_warn_once("handler %ps has enabled interrupts\n", shot->function);
	if (preempt_count() != count) {
		pr_warn_once("handler %ps has left a preempt count of %#x, it was %#x\n",
			     shot->function, preempt_count(), count);
		preempt_count_set(count);
	}
}

/**
 * apic_timer_dispatch() - run a handler at its time
 * @shot:	the shot, which is due
 *
 * Interrupts and the preempt count are as before when it has run, whatever the
 * handler left behind.
 *
 * Context: Hard interrupt, interrupts off, no lock held.
 */
noinline void apic_timer_dispatch(struct apic_timer_dispatch *shot)
{
	const struct apic_timer_dispatch_cost *cost =
		this_cpu_ptr(&apic_timer_dispatch_cost);
	u64 call = cost->call;
	int count = preempt_count();
	bool learnt = false;

	/*
	 * May be cold, and are wanted the moment that the wait is over. Many
	 * handlers get a pointer to their data; what isn't one does no harm.
	 */
	prefetch(shot->function);
	prefetch((void *)shot->data);
	shot->ready = apic_timer_tsc_now();
	if (unlikely(too_late(shot))) {
		shot->skipped = true;
		shot->start = shot->ready;
		apic_timer_stats_inc(SKIPPED);
	} else if (shot->exact) {
		if ((s64)(shot->expires - shot->ready) > (s64)cost->learn) {
			learn(shot);
			learnt = true;
		}
		shot->start = apic_timer_spin(shot->expires - call) + call;
		shot->function(shot->start, shot->data);
	} else {
		shot->start = apic_timer_tsc_now() + call;
		shot->function(shot->start, shot->data);
	}
	if (unlikely(!irqs_disabled() || preempt_count() != count))
		put_right(shot, count);
	if (!learnt)
		learn(shot);
}

/* A handler that does what can be asked of one: look at the TSC at once. */
static void look(unsigned long long now, unsigned long data)
{
	*(u64 *)data = apic_timer_tsc_now();
}

#define ROUNDS	32
/* How far away what is waited for is, TSC cycles. */
#define AHEAD	1024
/* No call takes longer, TSC cycles: one that does is traced, say. */
#define CALL_MAX	64

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/*
 * What the call takes at least. Where it varies, as it does on real CPUs, the
 * least of a few is not the least of all: never early is worth some cycles. A
 * tracer on all calls may be gone when it counts, so nothing is taken off then.
 */
static u64 least_of_all(u64 *took)
{
	u64 least, spread;

	sort(took, ROUNDS, sizeof(*took), compare, NULL);
	least = took[0];
	spread = took[ROUNDS / 2] - least;
	return least > CALL_MAX ? 0 : least - min(spread, least / 2);
}

/**
 * apic_timer_dispatch_measure() - measure what a dispatch takes on this CPU
 *
 * What was learnt on it before is forgotten.
 *
 * Context: Interrupts off. Takes some microseconds.
 */
void apic_timer_dispatch_measure(void)
{
	struct apic_timer_dispatch_cost *cost =
		this_cpu_ptr(&apic_timer_dispatch_cost);
	struct apic_timer_dispatch_cost found = {
		U64_MAX, U64_MAX, U64_MAX, U64_MAX
	};
	u64 took[2][ROUNDS], began;
	unsigned int i;

	lockdep_assert_irqs_disabled();
	*cost = (struct apic_timer_dispatch_cost){};
	for (i = 0; i < 3 * ROUNDS; i++) {
		/* Kinds: not exact, exact without a wait, exact with one. */
		struct apic_timer_dispatch shot = {
			.function = look,
			.data = (unsigned long)&began,
			.exact = i % 3,
			.expires = apic_timer_tsc_now() + (i % 3 / 2) * AHEAD,
		};

		apic_timer_dispatch(&shot);
		if (shot.exact) {
			took[i % 3 - 1][i / 3] = began - shot.start;
			found.exact = min(found.exact, began - shot.ready);
		} else {
			found.plain = min(found.plain, began - shot.ready);
		}

		shot.aim = shot.ready - i;
		began = apic_timer_tsc_now();
		learn(&shot);
		found.learn = min(found.learn, apic_timer_tsc_now() - began);
	}
	found.call = min(least_of_all(took[0]), least_of_all(took[1]));
	/* There are longer ways through it than the one that was measured. */
	found.learn *= 2;
	*cost = found;
	/* These were not shots to learn from. */
	apic_timer_lead_reset();
}

/**
 * apic_timer_dispatch_init() - read the module parameter
 */
void apic_timer_dispatch_init(void)
{
	late_limit = apic_timer_ns_to_tsc(late_ns);
}
