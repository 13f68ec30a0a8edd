// SPDX-License-Identifier: GPL-2.0
/*
 * The last stretch of an expiry: wait if need be, and call the handler.
 *
 * All that can be done before the last look at the TSC is done before it, and
 * the rest takes the same few instructions each time: that is measured and
 * taken off, as far as it is sure. What is to be learnt from the expiry is learnt
 * while waiting if there is time for that, otherwise when the handler has run.
 *
 * Never early comes first. A call may take less than it ever took while it was
 * measured: the CPU's clock has become faster, its branches predicted, or the
 * TSC counts in steps. Only where nothing of that shows, as in an emulator that
 * counts instructions, all of the least that was measured is taken off;
 * elsewhere half of what is left when the steps are off. The watchdog goes on
 * measuring, and what it finds can only lower the value.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/prefetch.h>
#include <linux/printk.h>

#include "hw/spin.h"
#include "lib/param.h"
#include "lib/stats.h"
#include "timers/dispatch.h"

APIC_TIMER_PARAM(late_ns, 1000, 0, 1000000000, "ns",
		 "an expiry is late when it starts later than this after its expiry");

static s64 late_limit;	/* TSC cycles */

DEFINE_PER_CPU(struct apic_timer_dispatch_cost, apic_timer_dispatch_cost);

static bool too_late(const struct apic_timer_dispatch *expiry,
		     const struct apic_timer_dispatch_cost *cost)
{
	if ((s64)(expiry->ready - expiry->expires) <= cost->late)
		return false;
	apic_timer_stats_inc(EXPIRED_LATE);
	return expiry->skip_late;
}

static void learn(const struct apic_timer_dispatch *expiry)
{
	if (expiry->programmed_for)
		apic_timer_lead_learn(expiry->cpu_state, expiry->ready - expiry->programmed_for);
}

/*
 * A handler has enabled interrupts, as spin_unlock_irq() does, or has taken a
 * lock and kept it. Who is interrupted isn't to blame, and what follows takes
 * locks that interrupts take.
 */
static noinline void restore_context(const struct apic_timer_dispatch *expiry, int count)
{
	bool enabled = !irqs_disabled();

	local_irq_disable();
	if (enabled)
		pr_warn_once("handler %ps has enabled interrupts\n", expiry->function);
	if (preempt_count() != count) {
		pr_warn_once("handler %ps has left a preempt count of %#x, it was %#x\n",
			     expiry->function, preempt_count(), count);
		preempt_count_set(count);
	}
}

/**
 * apic_timer_dispatch() - run a handler at its time
 * @expiry:	the expiry, which is due
 *
 * Interrupts and the preempt count are as before when it has run, whatever the
 * handler left behind. There must be one copy of this function: what one takes
 * says nothing of another that the compiler has made for a certain handler.
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
	bool learnt = false;

	/*
	 * May be cold, and are wanted the moment that the wait is over. Many
	 * handlers get a pointer to their data; what isn't one does no harm.
	 */
	prefetch(expiry->function);
	prefetch((void *)expiry->data);
	expiry->ready = apic_timer_tsc_now();
	if (unlikely(too_late(expiry, cost))) {
		expiry->skipped = true;
		expiry->start = expiry->ready;
		apic_timer_stats_inc(SKIPPED);
	} else if (expiry->exact && (s64)(until - expiry->ready) > 0) {
		if ((s64)(expiry->expires - expiry->ready) > (s64)cost->learn) {
			learn(expiry);
			learnt = true;
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
	if (!learnt)
		learn(expiry);
}

/* How often the TSC is read to see how it counts. */
#define READS		512
/* The calls are measured until so many have brought nothing less, */
#define SETTLED		256
/* or never settle. */
#define ROUNDS_MAX	4096
/* So far away what is waited for is at most, TSC cycles. */
#define AHEAD		512U
/* No call takes longer, TSC cycles: one that does is traced, say. */
#define CALL_MAX	64
/* Calls of each way that the watchdog measures at a time, with interrupts off. */
#define WATCH_ROUNDS	1

typedef void apic_timer_probe_t(unsigned long long now, unsigned long data);

#ifdef CONFIG_APIC_TIMER_SIM

#define read_tsc	apic_timer_tsc_now

static void sim_probe(unsigned long long now, unsigned long data)
{
	*(u64 *)data = apic_timer_tsc_now();
}

static apic_timer_probe_t *probe(void)
{
	return sim_probe;
}

#else

#include <asm/cpufeature.h>
#include <asm/ibt.h>

#define read_tsc	rdtsc

/*
 * The shortest handler that there can be. ENDBR is an instruction of it only
 * where all handlers have to have one.
 */
static apic_timer_probe_t *probe(void)
{
	unsigned long entry = (unsigned long)apic_timer_probe;

	/* Or objtool misses the instruction. */
	OPTIMIZER_HIDE_VAR(entry);
	if (!IS_ENABLED(CONFIG_CFI_CLANG) && !IS_ENABLED(CONFIG_CFI) &&
	    !cpu_feature_enabled(X86_FEATURE_IBT))
		entry += ENDBR_INSN_SIZE;
	return (apic_timer_probe_t *)entry;
}

#endif

/**
 * apic_timer_dispatch_steps() - about the steps in which the TSC counts
 * @seen:	how often two successive reads differed by 0, 1, ... TSC cycles;
 *		the last of %APIC_TIMER_DISPATCH_DELTAS is for all that is more
 * @reads:	sum of @seen
 *
 * Return: TSC cycles: what they usually differ by, most less least, and 0 if all
 * is the same each time; %APIC_TIMER_DISPATCH_NO_STEPS when nothing is usual.
 */
u64 apic_timer_dispatch_steps(const u16 *seen, unsigned int reads)
{
	unsigned int least = 0, most = APIC_TIMER_DISPATCH_DELTAS - 1;

	while (least < APIC_TIMER_DISPATCH_DELTAS && seen[least] < reads / 64)
		least++;
	/* Spread out over all of them. */
	if (least == APIC_TIMER_DISPATCH_DELTAS)
		return APIC_TIMER_DISPATCH_NO_STEPS;
	while (seen[most] < reads / 64)
		most--;
	if (most == APIC_TIMER_DISPATCH_DELTAS - 1)
		return APIC_TIMER_DISPATCH_NO_STEPS;
	return most - least;
}

static u64 measure_steps(void)
{
	u16 seen[APIC_TIMER_DISPATCH_DELTAS] = {};
	unsigned int i;
	u64 last, now;

	last = read_tsc();
	for (i = 0; i < READS; i++) {
		now = read_tsc();
		seen[min_t(u64, now - last, APIC_TIMER_DISPATCH_DELTAS - 1)]++;
		last = now;
	}
	return apic_timer_dispatch_steps(seen, READS);
}

/* Let the probe be called, and keep what its call takes. Return: the way. */
static enum apic_timer_dispatch_way
measure_call(struct apic_timer_dispatch_cost *cost, bool exact, unsigned int ahead)
{
	struct apic_timer_dispatch expiry = {
		.function = probe(),
		.exact = exact,
	}, *hidden = &expiry;
	enum apic_timer_dispatch_way way = APIC_TIMER_DISPATCH_AT_ONCE;
	struct apic_timer_dispatch_call *calls;
	u64 began, until;

	expiry.data = (unsigned long)&began;
	expiry.expires = apic_timer_tsc_now() + ahead;
	until = expiry.expires - cost->call[APIC_TIMER_DISPATCH_WAIT];
	/* The compiler must not make anything of what it knows of the expiry. */
	OPTIMIZER_HIDE_VAR(hidden);
	barrier();
	apic_timer_dispatch(hidden);
	barrier();

	if (exact && (s64)(until - expiry.ready) > 0)
		way = APIC_TIMER_DISPATCH_WAIT;
	calls = &cost->calls[way];
	calls->took = began - (expiry.start - cost->call[way]);
	calls->most = max(calls->most, calls->took);
	calls->settled = calls->took < calls->least ? 0 : calls->settled + 1;
	calls->least = min(calls->least, calls->took);
	calls->ready = min(calls->ready, began - expiry.ready);
	return way;
}

/* What no call takes less than, as far as can be told. */
static u64 certain(const struct apic_timer_dispatch_call *calls, u64 steps)
{
	/* A tracer on all calls may be gone when it counts. */
	if (calls->least > CALL_MAX)
		return 0;
	if (!steps && calls->most == calls->least)
		return calls->least;
	return calls->least > steps ? (calls->least - steps) / 2 : 0;
}

/* What it takes to learn from an expiry: twice the least, there are longer ways. */
static u64 measure_learning(void)
{
	struct apic_timer_dispatch expiry = {};
	u64 began, least = U64_MAX;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		expiry.ready = apic_timer_tsc_now();
		expiry.programmed_for = expiry.ready - i;
		began = apic_timer_tsc_now();
		learn(&expiry);
		least = min(least, apic_timer_tsc_now() - began);
	}
	/* That was no expiry to learn from. */
	apic_timer_lead_reset();
	return 2 * least;
}

/**
 * apic_timer_dispatch_measure() - measure what a dispatch takes on this CPU
 *
 * What was learnt on it before is forgotten.
 *
 * Context: Interrupts off. Takes some 100 microseconds.
 */
void apic_timer_dispatch_measure(void)
{
	struct apic_timer_dispatch_cost *cost =
		this_cpu_ptr(&apic_timer_dispatch_cost);
	const struct apic_timer_dispatch_call none = {
		.least = U64_MAX, .ready = U64_MAX,
	};
	struct apic_timer_dispatch_call *wait, *at_once;
	unsigned int i, rounds = ROUNDS_MAX;

	lockdep_assert_irqs_disabled();
	/* These expiries are not late, whenever they run, and nothing is taken off. */
	*cost = (struct apic_timer_dispatch_cost) {
		.late = S64_MAX, .calls = { none, none },
	};
	wait = &cost->calls[APIC_TIMER_DISPATCH_WAIT];
	at_once = &cost->calls[APIC_TIMER_DISPATCH_AT_ONCE];
	cost->steps = measure_steps();
	if (cost->steps == APIC_TIMER_DISPATCH_NO_STEPS)
		rounds = SETTLED / 8;	/* nothing will be sure */
	for (i = 0; i < rounds; i++) {
		/* From hardly a wait on, and the TSC at any point of a step. */
		measure_call(cost, true, i * 7 % AHEAD);
		measure_call(cost, false, 0);
		if (min(wait->settled, at_once->settled) >= SETTLED)
			break;
	}
	cost->plain = at_once->ready;
	cost->exact = wait->ready == U64_MAX ? at_once->ready : wait->ready;
	apic_timer_lead_set_cost(cost->exact, cost->plain);
	for (i = 0; i < APIC_TIMER_DISPATCH_WAYS; i++)
		if (cost->calls[i].settled >= SETTLED)
			cost->call[i] = certain(&cost->calls[i], cost->steps);
	cost->learn = measure_learning();
	cost->late = late_limit;
}

static struct {
	bool reported;
	unsigned int cpu;
	u64 took, taken_off;
} early;

/* The log takes locks that the watchdog may be called under. */
static void report_early(struct irq_work *work)
{
	pr_warn("CPU %u: a handler is called in %llu TSC cycles, not %llu as measured: expiries may have been early so far\n",
		early.cpu, early.took, early.taken_off);
}

static DEFINE_IRQ_WORK(report_work, report_early);

static void found_early(u64 took, u64 taken_off)
{
	apic_timer_stats_inc(EARLY_SEEN);
	if (xchg(&early.reported, true))
		return;
	early.cpu = smp_processor_id();
	early.took = took;
	early.taken_off = taken_off;
	irq_work_queue(&report_work);
}

/**
 * apic_timer_dispatch_watch() - see whether calls have become faster
 *
 * The watchdog's part in never being early: what is taken off for the call is
 * corrected downwards, never upwards.
 *
 * Context: Interrupts off, nothing due for some microseconds.
 */
void apic_timer_dispatch_watch(void)
{
	struct apic_timer_dispatch_cost *cost =
		this_cpu_ptr(&apic_timer_dispatch_cost);
	const struct apic_timer_dispatch_call *calls;
	enum apic_timer_dispatch_way way;
	unsigned int i;

	lockdep_assert_irqs_disabled();
	/* Where nothing is taken off, nothing is early. */
	if (!cost->call[APIC_TIMER_DISPATCH_WAIT] &&
	    !cost->call[APIC_TIMER_DISPATCH_AT_ONCE])
		return;

	/* These are no expiries: none is late. */
	cost->late = S64_MAX;
	for (i = 0; i < WATCH_ROUNDS * APIC_TIMER_DISPATCH_WAYS; i++) {
		way = measure_call(cost, i % 2, AHEAD - i);
		calls = &cost->calls[way];
		if (calls->took < cost->call[way])
			found_early(calls->took, cost->call[way]);
		cost->call[way] = min(cost->call[way],
				      certain(calls, cost->steps));
	}
	cost->late = late_limit;
}

/**
 * apic_timer_dispatch_init() - read the module parameter
 */
void apic_timer_dispatch_init(void)
{
	late_limit = min_t(u64, apic_timer_ns_to_tsc(late_ns), S64_MAX);
}

/**
 * apic_timer_dispatch_exit() - wait for what is on its way
 *
 * Context: Task context; no CPU is watched.
 */
void apic_timer_dispatch_exit(void)
{
	irq_work_sync(&report_work);
}
