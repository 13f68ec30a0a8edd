// SPDX-License-Identifier: GPL-2.0
/*
 * Lost interrupts: the hardware has been masked, stopped or programmed behind
 * our back, and neither our timers nor the kernel's tick would ever come again.
 *
 * Each CPU now and then asks its own hardware whether it is still set up as we
 * left it, when it has just programmed it anyway, and looks whether others are
 * overdue, which then ask theirs. There is no timer for this: a CPU that sleeps
 * isn't woken, but is looked after by those that don't.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
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
		 "how often a CPU that is awake looks for lost interrupts; 0 is never");

/* How many others a CPU looks after each time. */
#define OTHERS	8U
/* What takes a while is done when nothing fires for so long. */
#define QUIET_NS	20000

/* TSC cycles */
static u64 period;	/* 0: off */
static u64 grace;
static u64 quiet;

/* See apic_timer_watchdog_init(). */
static void (*when_quiet)(void);

/*
 * Any CPU sends the call of another, one at a time: who sets @called sends it,
 * and the call clears it.
 */
static DEFINE_PER_CPU(call_single_data_t, call);
static DEFINE_PER_CPU(atomic_t, called);
static DEFINE_PER_CPU(struct irq_work, report_work);
static DEFINE_PER_CPU(unsigned int, last_checked);
/* What @fires was when the hardware was last found idle; looked at again. */
static DEFINE_PER_CPU(u64, suspect);

/*
 * The log takes locks that we may be called under. Firmware may stop the timer
 * again and again.
 */
static void report_dead(struct irq_work *work)
{
	unsigned int cpu = smp_processor_id();

	pr_warn_ratelimited("CPU %u: the LAPIC timer was found stopped, started it again (%llu times so far)\n",
			    cpu, apic_timer_stats_read(cpu, APIC_TIMER_STAT_HW_DEAD));
}

/* By when the hardware has fired; %APIC_TIMER_NEVER if it isn't armed. */
static u64 fires_of(const struct apic_timer_mux *mux)
{
	/* Its CPU writes it all the time, and is perhaps another. */
	u64 fires = data_race(READ_ONCE(mux->fires));
	/* As is this: one of them is never, but both may be found to be. */
	u64 kernel_only = data_race(READ_ONCE(mux->kernel_only));

	return min(fires, kernel_only);
}

/*
 * Has it perhaps just fired? The interrupt may take a while to be seen, in a
 * virtual machine above all.
 */
static bool may_have_fired(const struct apic_timer_mux *mux, u64 now)
{
	u64 margin = (mux->delta >> APIC_TIMER_MUX_DRIFT_SHIFT) + grace;
	u64 fires = fires_of(mux);

	/* Whether the drift is in it or not. */
	return now > apic_timer_mux_before(fires, 2 * margin) &&
	       apic_timer_mux_before(now, margin) <= fires;
}

/*
 * Was the hardware stopped? One that neither counts nor has its interrupt
 * waiting may be about to fire all the same: a virtual one does when its host
 * gets round to it. That must not be so twice for the same expiry.
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

/* Is the hardware as we left it? Otherwise begin anew. */
static void check_own(void)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	u64 fires = fires_of(mux);

	/* In its interrupt, whose end arms; or not armed. */
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
 * The kernel leaves it to the caller that a csd isn't sent by two CPUs at once:
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
 * after which CPU2 walks its queue for ever, interrupts off.
 */
static void check_cpu(unsigned int cpu, u64 now)
{
	/* A wrong value means a needless call. */
	u64 fires = fires_of(per_cpu_ptr(&apic_timer_mux, cpu));

	if (fires >= now || now - fires <= period)
		return;
	/* Another has called it already. Pairs with check_called(). */
	if (atomic_xchg(per_cpu_ptr(&called, cpu), 1))
		return;
	/* It goes offline: the call won't come. */
	if (smp_call_function_single_async(cpu, per_cpu_ptr(&call, cpu)))
		atomic_set_release(per_cpu_ptr(&called, cpu), 0);
}

static unsigned int next_online(unsigned int cpu)
{
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/**
 * check() - look after this CPU's hardware and that of others
 * @now:	the present TSC
 *
 * Each goes round all others, beginning with its neighbours: while all are
 * awake, each is looked at by %OTHERS of them in each period. The only one awake
 * of 512 gets round once in 64 periods.
 *
 * Context: Interrupts off; the hardware has been programmed.
 */
static void check(u64 now)
{
	unsigned int self = smp_processor_id();
	unsigned int cpu = this_cpu_read(last_checked);
	unsigned int first = self, i;

	lockdep_assert_irqs_disabled();
	this_cpu_write(apic_timer_mux_watchdog_due, now + period);
	check_own();
	for (i = 0; i < OTHERS; i++) {
		cpu = next_online(cpu);
		if (cpu == self)
			cpu = next_online(cpu);
		/* There are no more. */
		if (cpu == self || cpu == first)
			break;
		if (first == self)
			first = cpu;
		check_cpu(cpu, now);
		this_cpu_write(last_checked, cpu);
	}
	if (fires_of(this_cpu_ptr(&apic_timer_mux)) >
	    apic_timer_add_tsc(apic_timer_tsc_now(), quiet))
		when_quiet();
}

/**
 * apic_timer_watchdog_online() - begin to look after this CPU
 *
 * Context: Interrupts off.
 */
void apic_timer_watchdog_online(void)
{
	this_cpu_write(last_checked, smp_processor_id());
	if (period && apic_timer_source->alive)
		this_cpu_write(apic_timer_mux_watchdog_due,
			       apic_timer_tsc_now() + period);
}

/**
 * apic_timer_watchdog_offline() - leave this CPU's hardware alone
 *
 * Context: Interrupts off.
 */
void apic_timer_watchdog_offline(void)
{
	this_cpu_write(apic_timer_mux_watchdog_due, APIC_TIMER_NEVER);
}

/**
 * apic_timer_watchdog_init() - read the module parameter
 * @quiet_work:	called now and then on each CPU that is awake, interrupts off,
 *		when nothing fires there for the next %QUIET_NS
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
 * apic_timer_watchdog_exit() - wait for what is on its way
 *
 * Context: Task context; no CPU is on guard.
 */
void apic_timer_watchdog_exit(void)
{
	unsigned int cpu;

	on_each_cpu(nothing, NULL, true);
	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&report_work, cpu));
}
