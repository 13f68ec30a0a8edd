// SPDX-License-Identifier: GPL-2.0
/*
 * apic_clock: what this machine's clocks are worth, and timers that expire by them.
 */
#include <linux/apic_version.h>
#include <linux/module.h>

#include "debugfs.h"
#include "judge.h"
#include "list.h"
#include "phc.h"
#include "resync.h"
#include "skew.h"
#include "unload.h"

static int __init apic_clock_init(void)
{
	int ret;

	apic_clock_list_init();
	ret = apic_clock_unload_init();
	if (ret)
		return ret;
	ret = apic_clock_phc_init();
	if (ret)
		goto no_phc;
	ret = apic_clock_judge_init();
	if (ret)
		goto no_judge;
	ret = apic_clock_skew_init(apic_clock_judge_soon);
	if (ret)
		goto no_skew;
	ret = apic_clock_resync_init(apic_clock_judge_soon);
	if (ret)
		goto no_resync;
	apic_clock_debugfs_init();
	return 0;

no_resync:
	apic_clock_skew_exit();
no_skew:
	apic_clock_judge_exit();
no_judge:
	apic_clock_phc_exit();
no_phc:
	apic_clock_unload_exit();
	return ret;
}

static void __exit apic_clock_exit(void)
{
	apic_clock_debugfs_exit();
	apic_clock_resync_exit();
	apic_clock_skew_exit();
	apic_clock_judge_exit();
	apic_clock_phc_exit();
	apic_clock_unload_exit();
}

module_init(apic_clock_init);
module_exit(apic_clock_exit);

MODULE_DESCRIPTION("Conversions between the machine's clocks, and timers that expire by them, for apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(APIC_TIMER_VERSION);
