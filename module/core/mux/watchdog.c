// SPDX-License-Identifier: GPL-2.0
/*
 * Watchdog: other code or firmware may mask, stop or program the hardware timer of a
 * CPU. Then neither our timers nor the kernel's tick would ever interrupt it again.
 *
 * A running CPU periodically checks its own hardware, just after it has programmed
 * it for a moment that is not near, and whether other CPUs are overdue. It calls those
 * that are, and they check their own hardware. There is no timer for this: idle CPUs are
 * not woken for checks, but checked by the others.
 *
 * Hardware that only the kernel can stop is not checked. Quiet work, which a CPU does
 * while nothing fires, is done with every source.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include <trace/events/apic_timer.h>

#include "lib/param.h"
#include "lib/stats.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "tsc/tsc.h"

APIC_TIMER_PARAM(watchdog_ms, 100, 0, 10000, "ms",
		 "interval at which a running CPU checks that its LAPIC timer and those of other CPUs are still programmed, and that handlers are not called sooner than measured (0: off)");

/* Number of other CPUs that a CPU checks each time */
#define OTHERS	8U
/* Checks and quiet work are done if nothing fires for this long. */
#define QUIET_NS	20000

/* TSC cycles */
static u64 period;	/* 0: off */
static u64 grace;
static u64 quiet;

/* See apic_timer_watchdog_init(). */
static void (*when_quiet)(void);

/*
 * Any CPU may call another one, but only one at a time: the CPU that sets @called
 * sends the call, and the called CPU clears it.
 */
static DEFINE_PER_CPU(call_single_data_t, call);
static DEFINE_PER_CPU(atomic_t, called);
static DEFINE_PER_CPU(struct irq_work, report_work);
static DEFINE_PER_CPU(unsigned int, last_checked);
/* fires_of() when the hardware was last found idle: it is checked once more. */
static DEFINE_PER_CPU(u64, suspect);

/*
 * In irq_work: the caller of the watchdog may hold locks that printk() takes.
 * Rate-limited, as firmware may stop the timer again and again.
 */
static void report_dead(struct irq_work *work)
{
	unsigned int cpu = smp_processor_id();

	pr_warn_ratelimited("CPU %u: LAPIC timer was stopped or masked; restarted (%llu times so far)\n",
			    cpu, apic_timer_stats_read(cpu, APIC_TIMER_STAT_HW_DEAD));
}

/* Get the TSC by which the hardware has fired; %APIC_TIMER_NEVER if it is not programmed. */
static u64 fires_of(const struct apic_timer_mux *mux)
{
	/* Racy read: the owner may be another CPU, which writes it all the time. */
	u64 fires = data_race(READ_ONCE(mux->fires));
	/* Racy as well: one of the two is never, but both may be read as never. */
	u64 kernel_only = data_race(READ_ONCE(mux->kernel_only));

	return min(fires, kernel_only);
}

/*
 * Check whether the hardware may have just fired. The interrupt may take a while to
 * arrive, above all in a virtual machine.
 */
static bool may_have_fired(const struct apic_timer_mux *mux, u64 now)
{
	u64 margin = (mux->delta >> APIC_TIMER_MUX_DRIFT_SHIFT) + grace;
	u64 fires = fires_of(mux);

	/* Allow for @fires with and without drift. */
	return now > apic_timer_mux_before(fires, 2 * margin) &&
	       apic_timer_mux_before(now, margin) <= fires;
}

/*
 * Check whether the hardware was stopped. If it neither counts nor has its interrupt
 * pending, it may still be about to fire: a virtual timer fires when its host gets
 * round to it. Hardware counts as stopped if it is found in this state twice for the
 * same deadline.
 */
static bool hw_dead(const struct apic_timer_mux *mux)
{
	u64 suspected = this_cpu_xchg(suspect, 0);

	if (!apic_timer_source->alive(true))
		return true;
	if (apic_timer_source->alive(false) ||
	    may_have_fired(mux, apic_timer_tsc_now()))
		return false;
	if (suspected == fires_of(mux))
		return true;
	this_cpu_write(suspect, fires_of(mux));
	return false;
}

/* Check this CPU's hardware, and restart it if it was stopped. */
static void check_own(void)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	u64 fires = fires_of(mux);

	/* In the interrupt, whose end programs the hardware; or not programmed. */
	if (this_cpu_read(apic_timer_mux_watchdog_due) == APIC_TIMER_NEVER ||
	    mux->in_irq || fires == APIC_TIMER_NEVER)
		return;
	if (!hw_dead(mux))
		return;

	apic_timer_source->recover();
	apic_timer_mux_reprogram();
	apic_timer_stats_inc(HW_DEAD);
	trace_apic_timer_hw_dead(fires, apic_timer_tsc_now());
	irq_work_queue(this_cpu_ptr(&report_work));
}

static void check_called(void *unused)
{
	/* Pairs with check_cpu(): the kernel is done with @call. */
	atomic_set_release(this_cpu_ptr(&called), 0);
	check_own();
}

/*
 * The kernel leaves it to its callers to ensure that two CPUs do not send one
 * csd at once:
 *
 *	CPU0: check_cpu(2)		CPU1: check_cpu(2)
 *
 *	csd is unlocked
 *					csd is unlocked
 *	lock csd
 *	queue csd to CPU2
 *					lock csd
 *					queue csd to CPU2: it is its own next
 *
 * CPU2 then loops over its queue forever, with interrupts off.
 */
static void check_cpu(unsigned int cpu, u64 now)
{
	/* A wrong value causes a needless call. */
	u64 fires = fires_of(per_cpu_ptr(&apic_timer_mux, cpu));

	if (fires >= now || now - fires <= period)
		return;
	/* Another CPU has called it. Pairs with check_called(). */
	if (atomic_xchg(per_cpu_ptr(&called, cpu), 1))
		return;
	/* The CPU is going offline, and gets no call. */
	if (smp_call_function_single_async(cpu, per_cpu_ptr(&call, cpu)))
		atomic_set_release(per_cpu_ptr(&called, cpu), 0);
}

static unsigned int next_online(unsigned int cpu)
{
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/*
 * Each CPU checks all others in turn, beginning with its neighbours: while all are
 * awake, %OTHERS of them check each CPU in each period. If only one of 512 CPUs is
 * awake, it has checked all others after 64 periods.
 */
static void check_others(u64 now)
{
	unsigned int self = smp_processor_id();
	unsigned int cpu = this_cpu_read(last_checked);
	unsigned int first = self, i;

	for (i = 0; i < OTHERS; i++) {
		cpu = next_online(cpu);
		if (cpu == self)
			cpu = next_online(cpu);
		/* There are no other CPUs. */
		if (cpu == self || cpu == first)
			break;
		if (first == self)
			first = cpu;
		check_cpu(cpu, now);
		this_cpu_write(last_checked, cpu);
	}
}

/* Check whether this CPU's hardware is not about to fire. */
static bool is_quiet(void)
{
	return fires_of(this_cpu_ptr(&apic_timer_mux)) >
	       apic_timer_add_tsc(apic_timer_tsc_now(), quiet);
}

/**
 * check() - check this CPU's hardware and that of others, and do quiet work
 * @now:	the present TSC, when a check is due
 *
 * A check may take microseconds: it reads the hardware, which leaves a virtual machine,
 * and the memory of other CPUs. By as much the interrupt would be late that the
 * hardware is about to raise, so the check is left to the next programming, at most for
 * another period. A CPU whose hardware has stopped may have no next one: other CPUs find
 * it.
 *
 * Context: Interrupts off; the hardware has been programmed.
 */
static void check(u64 now)
{
	lockdep_assert_irqs_disabled();
	if (!is_quiet() && now - this_cpu_read(apic_timer_mux_watchdog_due) < period)
		return;
	this_cpu_write(apic_timer_mux_watchdog_due, now + period);
	/* Without @alive, only the kernel can stop the hardware. */
	if (apic_timer_source->alive) {
		check_own();
		check_others(now);
	}
	if (is_quiet())
		when_quiet();
}

/**
 * apic_timer_watchdog_online() - begin to check this CPU
 *
 * Context: Any, bound to the CPU.
 */
void apic_timer_watchdog_online(void)
{
	this_cpu_write(last_checked, smp_processor_id());
	if (period)
		this_cpu_write(apic_timer_mux_watchdog_due,
			       apic_timer_tsc_now() + period);
}

/**
 * apic_timer_watchdog_offline() - stop checking this CPU
 *
 * Context: Any, bound to the CPU.
 */
void apic_timer_watchdog_offline(void)
{
	this_cpu_write(apic_timer_mux_watchdog_due, APIC_TIMER_NEVER);
}

/**
 * apic_timer_watchdog_init() - read the module parameter
 * @quiet_work:	called periodically on each running CPU, interrupts off, if
 *		nothing fires there for the next %QUIET_NS
 */
void apic_timer_watchdog_init(void (*quiet_work)(void))
{
	unsigned int cpu;

	when_quiet = quiet_work;
	apic_timer_mux_watchdog = check;

	/* Pointers in a module's per-CPU data are not relocated. */
	for_each_possible_cpu(cpu) {
		INIT_CSD(per_cpu_ptr(&call, cpu), check_called, NULL);
		*per_cpu_ptr(&report_work, cpu) = IRQ_WORK_INIT_HARD(report_dead);
	}
	period = apic_timer_ns_to_tsc(watchdog_ms * (u64)NSEC_PER_MSEC);
	grace = apic_timer_ns_to_tsc(NSEC_PER_MSEC);
	quiet = apic_timer_ns_to_tsc(QUIET_NS);
}

static void nothing(void *unused)
{
}

/**
 * apic_timer_watchdog_exit() - wait for calls and reports that are under way
 *
 * A CPU runs synchronous calls before asynchronous ones that arrived with them. The
 * grace period waits for the latter, because interrupts are off in all of them.
 *
 * Context: Task context; no CPU is checked any more.
 */
void apic_timer_watchdog_exit(void)
{
	unsigned int cpu;

	on_each_cpu(nothing, NULL, true);
	synchronize_rcu();
	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&report_work, cpu));
}
