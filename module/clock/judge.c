// SPDX-License-Identifier: GPL-2.0
/*
 * Judge the TSC anew: after a measurement of the skew, after a comparison with another
 * counter that has found something new, and when the kernel has marked the TSC unstable.
 */
#include <linux/apic_clock.h>
#include <linux/notifier.h>
#include <linux/workqueue.h>

#include "judge.h"
#include "trust.h"

static void judge(struct work_struct *work)
{
	struct apic_clock_verdict verdict;

	apic_clock_judge(&verdict);
	apic_clock_trust_update(&verdict);
}

static DECLARE_WORK(judge_work, judge);

/**
 * apic_clock_judge_soon() - judge soon, and report the verdict if it has changed
 *
 * Judging interrupts CPUs and takes locks that the caller may hold.
 *
 * Context: Any but NMI.
 */
void apic_clock_judge_soon(void)
{
	schedule_work(&judge_work);
}

static int core_notified(struct notifier_block *block, unsigned long event, void *notice)
{
	if (event == APIC_TIMER_TSC_UNSTABLE)
		apic_clock_judge_soon();
	return NOTIFY_DONE;
}

static struct notifier_block core_block = {
	.notifier_call = core_notified,
};

/**
 * apic_clock_judge_init() - have the core notify us when the kernel stops trusting the TSC
 *
 * Return: 0, or an error.
 */
int apic_clock_judge_init(void)
{
	return apic_timer_register_notifier(&core_block);
}

/**
 * apic_clock_judge_exit() - stop judging
 *
 * The caller has stopped all measurements.
 */
void apic_clock_judge_exit(void)
{
	apic_timer_unregister_notifier(&core_block);
	cancel_work_sync(&judge_work);
}
