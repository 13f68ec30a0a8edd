// SPDX-License-Identifier: GPL-2.0
/*
 * Calibration: measure how long a dispatch takes on a CPU, above all the call of a
 * handler, from the last read of the TSC to the handler's first instruction. That
 * time is subtracted from the moment at which the spin ends.
 *
 * No expiry of mode exact may be early, but a call may later take less time than any
 * call that was measured: the CPU's clock is faster, its branches are predicted, or
 * the TSC counts in steps. No fraction of the measured time is safe: a core that
 * runs at 800 MHz while it is measured may run at 5 GHz later. Therefore the call is
 * subtracted only in an emulator that counts instructions, where all calls take the
 * same time and the TSC shows no steps; elsewhere nothing is subtracted. The
 * watchdog continues to measure: once calls differ, nothing is subtracted any more.
 *
 * A CPU is calibrated when it is attached. Interrupts are off while a call is
 * measured, and enabled briefly every few calls. An interrupt in between makes the
 * next calls slower, because caches and predictors are cold, but never faster, so
 * the minimum holds.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/smp.h>

#include <linux/apic_timer.h>

#include "lib/stats.h"
#include "timers/calibrate.h"
#include "timers/dispatch.h"
#include "tsc/tsc.h"

/* Interrupts are off for about this long at a time. */
#define IRQS_OFF_NS	10000
/* Number of reads of the TSC that show how it counts. */
#define READS		512
/* Number of calls without a new minimum after which the minimum is accepted, */
#define SETTLED		256
/* and number of calls after which calibration gives up. */
#define ROUNDS_MAX	4096
/* Maximum distance of the expiry that is spun for, TSC cycles */
#define AHEAD		512U
/* Longest plausible call, TSC cycles: a longer one is traced, for example. */
#define CALL_MAX	64
/* Calls of each way that the watchdog measures at a time, with interrupts off */
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

static bool may_be_emulated(void)
{
	return true;
}

#else

#include <asm/cpufeature.h>
#include <asm/ibt.h>

#define read_tsc	rdtsc

/* The shortest possible handler. It begins with ENDBR only where all handlers must. */
static apic_timer_probe_t *probe(void)
{
	unsigned long entry = (unsigned long)apic_timer_probe;

	/* Without this, objtool complains about a missing ENDBR. */
	OPTIMIZER_HIDE_VAR(entry);
	if (!IS_ENABLED(CONFIG_CFI_CLANG) && !IS_ENABLED(CONFIG_CFI) &&
	    !cpu_feature_enabled(X86_FEATURE_IBT))
		entry += ENDBR_INSN_SIZE;
	return (apic_timer_probe_t *)entry;
}

/*
 * Check for a hypervisor: on a simple core, all calls may take the same time until its
 * clock changes.
 */
static bool may_be_emulated(void)
{
	return cpu_feature_enabled(X86_FEATURE_HYPERVISOR);
}

#endif

/* Let interrupts in. Return: TSC at which they were on. */
static u64 let_interrupts_in(void)
{
	u64 now;

	local_irq_enable();
	/* This also gives the CPU time to take them: STI delays interrupts by an instruction. */
	now = apic_timer_tsc_now();
	local_irq_disable();
	return now;
}

/**
 * apic_timer_calibrate_steps() - estimate the step in which the TSC counts
 * @seen:	number of times that two successive reads differed by 0, 1, ...
 *		TSC cycles; the last of %APIC_TIMER_CALIBRATE_DELTAS is for all
 *		larger differences
 * @reads:	sum of @seen
 *
 * Return: TSC cycles: the largest usual difference less the smallest, so 0 if all are
 * the same; %APIC_TIMER_CALIBRATE_NO_STEPS if none is usual.
 */
u64 apic_timer_calibrate_steps(const u16 *seen, unsigned int reads)
{
	unsigned int least = 0, most = APIC_TIMER_CALIBRATE_DELTAS - 1;

	while (least < APIC_TIMER_CALIBRATE_DELTAS && seen[least] < reads / 64)
		least++;
	/* Spread out over all of them. */
	if (least == APIC_TIMER_CALIBRATE_DELTAS)
		return APIC_TIMER_CALIBRATE_NO_STEPS;
	while (seen[most] < reads / 64)
		most--;
	if (most == APIC_TIMER_CALIBRATE_DELTAS - 1)
		return APIC_TIMER_CALIBRATE_NO_STEPS;
	return most - least;
}

static u64 measure_steps(u64 irqs_off)
{
	u16 seen[APIC_TIMER_CALIBRATE_DELTAS] = {};
	u64 since = let_interrupts_in(), last, now;
	unsigned int i;

	last = read_tsc();
	for (i = 0; i < READS; i++) {
		now = read_tsc();
		seen[min_t(u64, now - last, APIC_TIMER_CALIBRATE_DELTAS - 1)]++;
		last = now;
		if (unlikely(now - since >= irqs_off)) {
			since = let_interrupts_in();
			last = read_tsc();
		}
	}
	return apic_timer_calibrate_steps(seen, READS);
}

/* Dispatch the probe, and record the time of its call. Return: the way. */
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
	/* The compiler must not specialise the dispatch for this expiry. */
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

/* A long call may be traced, and the tracer may be gone later. */
static bool is_plausible(u64 least, u64 most)
{
	return least == most && least <= CALL_MAX;
}

/* Get the time that every call certainly takes. */
static u64 certain(const struct apic_timer_dispatch_call *calls, u64 steps)
{
	if (steps || !may_be_emulated() || !is_plausible(calls->least, calls->most))
		return 0;
	return calls->least;
}

/* Measure how long learning from an expiry takes: twice the minimum, as there are longer paths. */
static u64 measure_learning(u64 irqs_off)
{
	struct apic_timer_dispatch expiry = {};
	u64 since = let_interrupts_in(), began, now, least = U64_MAX;
	unsigned int i;

	/* Nothing is estimated before the first time. */
	apic_timer_lead_reset();
	for (i = 0; i < 32; i++) {
		expiry.ready = apic_timer_tsc_now();
		expiry.programmed_for = expiry.ready - i;
		began = apic_timer_tsc_now();
		apic_timer_dispatch_learn(&expiry);
		now = apic_timer_tsc_now();
		least = min(least, now - began);
		if (now - since >= irqs_off)
			since = let_interrupts_in();
	}
	/* Forget these: no expiry had that latency. */
	apic_timer_lead_reset();
	return 2 * least;
}

static void measure_calls(struct apic_timer_dispatch_cost *cost, u64 irqs_off)
{
	const struct apic_timer_dispatch_call
		*wait = &cost->calls[APIC_TIMER_DISPATCH_WAIT],
		*at_once = &cost->calls[APIC_TIMER_DISPATCH_AT_ONCE];
	unsigned int i, rounds = ROUNDS_MAX;
	u64 since = let_interrupts_in();

	if (cost->steps || !may_be_emulated())
		rounds = SETTLED / 8;	/* no call will be certain */
	for (i = 0; i < rounds; i++) {
		/* Start with hardly a spin, and with the TSC at any point of a step. */
		measure_call(cost, true, i * 7 % AHEAD);
		measure_call(cost, false, 0);
		if (min(wait->settled, at_once->settled) >= SETTLED)
			break;
		if (apic_timer_tsc_now() - since >= irqs_off)
			since = let_interrupts_in();
	}
	cost->plain = at_once->ready;
	cost->exact = wait->ready == U64_MAX ? at_once->ready : wait->ready;
}

/**
 * apic_timer_calibrate() - measure how long a dispatch takes on this CPU
 *
 * Earlier latency estimates of this CPU are reset.
 *
 * Context: Task, bound to the CPU, whose base does not accept timers; interrupts
 * on. Takes some 100 microseconds, with interrupts off for some 10 at a time.
 */
void apic_timer_calibrate(void)
{
	u64 irqs_off = apic_timer_ns_to_tsc(IRQS_OFF_NS);
	const struct apic_timer_dispatch_call none = {
		.least = U64_MAX, .ready = U64_MAX,
	};
	struct apic_timer_dispatch_cost *cost;
	unsigned int i;

	lockdep_assert_irqs_enabled();
	local_irq_disable();
	cost = this_cpu_ptr(&apic_timer_dispatch_cost);
	/* Nothing is subtracted from these expiries. */
	*cost = (struct apic_timer_dispatch_cost) { .calls = { none, none } };
	cost->steps = measure_steps(irqs_off);
	measure_calls(cost, irqs_off);
	apic_timer_lead_set_cost(cost->exact, cost->plain);
	for (i = 0; i < APIC_TIMER_DISPATCH_WAYS; i++)
		if (cost->calls[i].settled >= SETTLED)
			cost->call[i] = certain(&cost->calls[i], cost->steps);
	cost->learn = measure_learning(irqs_off);
	local_irq_enable();
}

/**
 * apic_timer_certain_cost() - get how much earlier code that waits itself may end its wait
 * @least:	minimum time from the last read of the TSC to the called function's first
 *		instruction, of many measurements, TSC cycles
 * @most:	their maximum
 *
 * For a handler that expires before a moment, waits for that moment on the TSC, and then
 * calls a function that must not start early. Measure the calls in one place, which the
 * compiler does not copy, with interrupts off.
 *
 * On real silicon no fraction of a measured time is certain: the CPU's clock may be
 * faster later. So this is 0 except in an emulator that counts instructions, as long as
 * the calls of apic_timer's own handlers, which the watchdog continues to measure, all
 * take the same time.
 *
 * Context: Task, or handler.
 * Return: TSC cycles: @least, or 0 if it is not certain.
 */
u64 apic_timer_certain_cost(u64 least, u64 most)
{
	const struct apic_timer_dispatch_cost *cost =
		raw_cpu_ptr(&apic_timer_dispatch_cost);

	if (!READ_ONCE(cost->call[APIC_TIMER_DISPATCH_WAIT]) || !is_plausible(least, most))
		return 0;
	return least;
}
EXPORT_SYMBOL_GPL(apic_timer_certain_cost);

static struct {
	bool reported;
	unsigned int cpu;
	u64 took, subtracted;
} early;

/* From irq_work: the caller of the watchdog may hold locks that printk() takes. */
static void report_early(struct irq_work *work)
{
	pr_warn("CPU %u: calling a handler takes %llu TSC cycles, not %llu as measured; past expiries may have been early\n",
		early.cpu, early.took, early.subtracted);
}

/* Hard also on PREEMPT_RT, where another thread could keep it, and who waits for it, waiting. */
static struct irq_work report_work = IRQ_WORK_INIT_HARD(report_early);

static void found_early(u64 took, u64 subtracted)
{
	apic_timer_stats_inc(EARLY_SEEN);
	if (xchg(&early.reported, true))
		return;
	early.cpu = smp_processor_id();
	early.took = took;
	early.subtracted = subtracted;
	irq_work_queue(&report_work);
}

/**
 * apic_timer_calibrate_watch() - check whether calls have become faster
 *
 * If they have, nothing is subtracted for the call from then on.
 *
 * Context: Interrupts off, nothing due for some microseconds.
 */
void apic_timer_calibrate_watch(void)
{
	struct apic_timer_dispatch_cost *cost =
		this_cpu_ptr(&apic_timer_dispatch_cost);
	const struct apic_timer_dispatch_call *calls;
	enum apic_timer_dispatch_way way;
	unsigned int i;

	lockdep_assert_irqs_disabled();
	/* If nothing is subtracted, no expiry is early. */
	if (!cost->call[APIC_TIMER_DISPATCH_WAIT] &&
	    !cost->call[APIC_TIMER_DISPATCH_AT_ONCE])
		return;

	for (i = 0; i < WATCH_ROUNDS * APIC_TIMER_DISPATCH_WAYS; i++) {
		way = measure_call(cost, i % 2, AHEAD - i);
		calls = &cost->calls[way];
		if (calls->took < cost->call[way])
			found_early(calls->took, cost->call[way]);
		cost->call[way] = min(cost->call[way],
				      certain(calls, cost->steps));
	}
}

/**
 * apic_timer_calibrate_exit() - wait for a report that is on its way
 *
 * Context: Task context; no CPU is watched.
 */
void apic_timer_calibrate_exit(void)
{
	irq_work_sync(&report_work);
}
