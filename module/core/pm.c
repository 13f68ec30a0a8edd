// SPDX-License-Identifier: GPL-2.0
/*
 * Suspend to RAM, and hibernation.
 *
 * All CPUs except one are offline then, and their timers have migrated to it. When
 * the machine resumes, the LAPIC has lost its state, and the TSC may have restarted
 * or stopped. A comparison with the kernel's clock that counts sleep reveals this.
 *
 * None of this happens in suspend to idle: CPUs stay online, and the source is
 * resumed with the kernel's clock event devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/time64.h>

#include "compat/syscore.h"
#include "epoch.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "pm.h"
#include "qos_requests.h"
#include "timers/base.h"
#include "tsc/tsc.h"

/*
 * Maximum difference of the two clocks: the kernel may have to measure the sleep by a
 * clock of whole seconds, which drifts.
 */
#define SLACK_NS	(3 * (u64)NSEC_PER_SEC)
#define DRIFT_SHIFT	10

/* When the machine was suspended */
static u64 slept_tsc;
static ktime_t slept_at;

/* Check whether the TSC has counted throughout the sleep. */
static bool has_counted(u64 tsc, u64 slept_ns)
{
	u64 counted_ns, apart;

	if (tsc < slept_tsc)
		return false;
	counted_ns = apic_timer_tsc_to_ns(tsc - slept_tsc);
	apart = counted_ns > slept_ns ? counted_ns - slept_ns :
					slept_ns - counted_ns;
	return apart <= SLACK_NS + (slept_ns >> DRIFT_SHIFT);
}

/**
 * apic_timer_pm_suspend() - record the time when the machine is being suspended
 *
 * Context: Interrupts off, no other CPU running.
 */
void apic_timer_pm_suspend(void)
{
	slept_tsc = apic_timer_tsc_now();
	slept_at = ktime_get_boottime();
}

/**
 * apic_timer_pm_resume() - continue after the machine was suspended
 *
 * Context: As apic_timer_pm_suspend(); the kernel's clock runs again.
 */
void apic_timer_pm_resume(void)
{
	s64 slept_ns = ktime_to_ns(ktime_sub(ktime_get_boottime(), slept_at));
	u64 now = apic_timer_tsc_now();
	s64 shift = now - slept_tsc;

	lockdep_assert_irqs_disabled();
	if (!has_counted(now, max(slept_ns, 0LL))) {
		pr_info("the TSC has not counted through the sleep: pending timers are moved by %lld cycles\n",
			shift);
		apic_timer_base_shift(shift);
		apic_timer_epoch_begin(shift);
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
	apic_timer_pm_suspend();
	return 0;
}

static void resume(void)
{
	apic_timer_pm_resume();
}

APIC_TIMER_DEFINE_SYSCORE(syscore, suspend, resume);

/**
 * apic_timer_pm_init() - register for suspend and resume
 */
void apic_timer_pm_init(void)
{
	apic_timer_syscore_register(&syscore);
}

/**
 * apic_timer_pm_exit() - undo apic_timer_pm_init()
 */
void apic_timer_pm_exit(void)
{
	apic_timer_syscore_unregister(&syscore);
}
