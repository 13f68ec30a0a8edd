// SPDX-License-Identifier: GPL-2.0
/*
 * When the TSC is judged anew: after a measurement of the skew, when a comparison with
 * another counter has found what none before it did, and when the kernel has marked the
 * TSC unstable.
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
 * apic_clock_judge_soon() - judge soon, and report the verdict if it is another
 *
 * Judging interrupts CPUs and takes locks that the caller may have.
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
 * apic_clock_judge_init() - learn from the core when the kernel trusts the TSC no more
 *
 * Return: 0, or an error.
 */
int apic_clock_judge_init(void)
{
	return apic_timer_register_notifier(&core_block);
}

/**
 * apic_clock_judge_exit() - judge no more
 *
 * Nothing is measured any more.
 */
void apic_clock_judge_exit(void)
{
	apic_timer_unregister_notifier(&core_block);
	cancel_work_sync(&judge_work);
}
