// SPDX-License-Identifier: GPL-2.0
/*
 * Suspend to RAM, and hibernation.
 *
 * All CPUs except one are offline then, and their timers have migrated to it; or, in a
 * guest that Xen saves, they wait with interrupts off. When the machine resumes, the
 * LAPIC has lost its state, and the TSC may have restarted or stopped. A comparison with
 * the kernel's clock that counts sleep reveals this.
 *
 * None of this happens in suspend to idle: CPUs stay online, and the source is
 * resumed with the kernel's clock event devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include "compat/syscore.h"
#include "epoch.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "pm.h"
#include "qos_requests.h"
#include "timers/base.h"
#include "tsc/gtod.h"
#include "tsc/tsc.h"

/*
 * Maximum difference of the two clocks: the kernel may have to measure the sleep by a
 * clock of whole seconds, from which its idea of the TSC's rate differs.
 */
#define SLACK_NS	(3 * (u64)NSEC_PER_SEC)
/* Of a shorter sleep the kernel's clock may have seen nothing: it may count whole seconds. */
#define UNSEEN_NS	NSEC_PER_SEC

/* When the machine was suspended */
static u64 slept_tsc;
static u64 slept_at;	/* ns */

/* Interrupts of CPUs that were online: see restart_others(). */
static DEFINE_PER_CPU(call_single_data_t, restart_call);

/*
 * Check whether the TSC has counted throughout the sleep. Without a clock that can be read
 * while the timekeeper resumes, the kernel's clock has seen no sleep, however long it was.
 * A TSC that had stopped could not be ahead of it.
 */
static bool has_counted(u64 tsc, u64 slept_ns)
{
	u64 counted_ns, apart;

	if (tsc < slept_tsc)
		return false;
	counted_ns = apic_timer_tsc_to_ns(tsc - slept_tsc);
	apart = counted_ns > slept_ns ? counted_ns - slept_ns :
					slept_ns - counted_ns;
	if (apart <= SLACK_NS + (slept_ns >> APIC_TIMER_GTOD_DRIFT_SHIFT))
		return true;
	if (counted_ns < slept_ns || slept_ns >= UNSEEN_NS)
		return false;
	pr_info_once("the kernel's clock did not count a sleep of %llu ms by the TSC: pending timers are not moved\n",
		     div_u64(counted_ns, NSEC_PER_MSEC));
	return true;
}

/*
 * The kernel event that the mux has recorded has an old TSC value. Linux 7.x programs
 * no other event while an overdue one is outstanding (clockevents.c,
 * next_event_forced), so the event is made due now: the kernel finds due timers by its
 * own clock.
 */
static void serve_kernel(void)
{
	u64 now = apic_timer_tsc_now();

	if (apic_timer_mux_kernel_deadline(this_cpu_ptr(&apic_timer_mux)) != APIC_TIMER_NEVER)
		apic_timer_mux_set_kernel(now, now);
}

/**
 * apic_timer_pm_restart() - begin anew on this CPU, whose TSC has jumped while it was online
 *
 * Its pending timers, if there are any, have been moved.
 *
 * Context: Interrupts off.
 */
void apic_timer_pm_restart(void)
{
	apic_timer_qos_restart();
	if (!this_cpu_read(apic_timer_base.online))
		return;
	apic_timer_watchdog_online();
	apic_timer_base_moved();
	serve_kernel();
}

static void restart(void *unused)
{
	apic_timer_pm_restart();
}

/*
 * Xen saves a guest with its CPUs online, in stop_machine(). Their hardware is programmed for
 * what were the timers' expiries, and what they have recorded are moments of the old TSC.
 */
static void restart_others(void)
{
	unsigned int cpu;

	/* -EBUSY: the call after an earlier sleep is still to come, and does for this one. */
	for_each_online_cpu(cpu)
		if (cpu != smp_processor_id())
			smp_call_function_single_async(cpu, per_cpu_ptr(&restart_call, cpu));
}

/**
 * apic_timer_pm_suspend() - record the time when the machine is being suspended
 * @clock:	the kernel's clock that counts sleep, ns
 *
 * Context: Interrupts off, no other CPU in this module.
 */
void apic_timer_pm_suspend(u64 clock)
{
	slept_tsc = apic_timer_tsc_now();
	slept_at = clock;
}

/**
 * apic_timer_pm_resume() - continue after the machine was suspended
 * @clock:	the same clock, which runs again
 *
 * Context: As apic_timer_pm_suspend().
 */
void apic_timer_pm_resume(u64 clock)
{
	u64 slept_ns = clock - min(clock, slept_at);
	u64 now = apic_timer_tsc_now();
	s64 shift = now - slept_tsc;

	lockdep_assert_irqs_disabled();
	if (!has_counted(now, slept_ns)) {
		pr_info("the TSC has not counted through the sleep: pending timers are moved by %lld cycles\n",
			shift);
		apic_timer_base_shift(shift);
		apic_timer_epoch_begin(shift);
		restart_others();
	}
	apic_timer_qos_restart();
	if (this_cpu_read(apic_timer_base.online)) {
		if (apic_timer_source->recover)
			apic_timer_source->recover();
		apic_timer_watchdog_online();
		apic_timer_base_reprogram();
	}
}

static int suspend(void)
{
	apic_timer_pm_suspend(ktime_get_boottime_ns());
	return 0;
}

static void resume(void)
{
	apic_timer_pm_resume(ktime_get_boottime_ns());
}

APIC_TIMER_DEFINE_SYSCORE(syscore, suspend, resume);

/**
 * apic_timer_pm_init() - register for suspend and resume
 */
void apic_timer_pm_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		INIT_CSD(per_cpu_ptr(&restart_call, cpu), restart, NULL);
	apic_timer_syscore_register(&syscore);
}

/**
 * apic_timer_pm_exit() - undo apic_timer_pm_init()
 *
 * A call that is still to come is waited for by apic_timer_watchdog_exit().
 */
void apic_timer_pm_exit(void)
{
	apic_timer_syscore_unregister(&syscore);
}
