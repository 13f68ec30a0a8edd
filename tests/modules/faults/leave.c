// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_leave: a consumer that is unloaded while its handler runs. The handler keeps moving a
 * pending timer ahead of and behind the waiting timers of apic_timer_busy. Nobody deletes that
 * timer, or unregisters the notifier.
 */
#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/processor.h>

static unsigned int work = 2000;
module_param(work, uint, 0444);
MODULE_PARM_DESC(work, "time that the handler takes, in us");

static struct apic_timer_list changing, changed;
static bool started;

static void changed_handler(unsigned long long now, unsigned long data)
{
}

static void changing_handler(unsigned long long now, unsigned long data)
{
	u64 end = apic_timer_now() + apic_timer_us_to_tsc(work);
	u64 before = end + apic_timer_us_to_tsc(50000);
	u64 behind = end + apic_timer_us_to_tsc(7200000000ULL);
	int ret = 0;

	WRITE_ONCE(started, true);
	while (apic_timer_now() < end && ret >= 0) {
		mod_apic_timer(&changed, before);
		ret = mod_apic_timer(&changed, behind);
	}
}

static int notified(struct notifier_block *block, unsigned long event, void *notice)
{
	return NOTIFY_OK;
}

static struct notifier_block block = {
	.notifier_call = notified,
};

static int __init leave_init(void)
{
	init_apic_timer(&changing);
	changing.function = changing_handler;
	init_apic_timer(&changed);
	changed.function = changed_handler;
	return apic_timer_register_notifier(&block);
}

static void __exit leave_exit(void)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask,
					   raw_smp_processor_id());

	changing.expires = apic_timer_now();
	changed.expires = changing.expires + apic_timer_us_to_tsc(7200000000ULL);
	if (add_apic_timer_on(&changed, cpu) ||
	    add_apic_timer_on(&changing, cpu))
		return;
	while (!READ_ONCE(started))
		cpu_relax();
}

module_init(leave_init);
module_exit(leave_exit);

MODULE_DESCRIPTION("Test of apic_timer: a handler left running that changes a pending timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
