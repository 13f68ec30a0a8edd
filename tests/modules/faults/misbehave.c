// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_misbehave: handlers that break the rules of hard interrupts.
 *
 * The test checks that the other timers still run, ours and the kernel's, and that
 * everything can be unloaded.
 */
#include <linux/apic_timer.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/processor.h>

static struct apic_timer_list timer;

static unsigned int ran;
module_param(ran, uint, 0444);
MODULE_PARM_DESC(ran, "number of handlers that have returned");

static void sleep(unsigned long long now, unsigned long data)
{
	msleep(20);
	ran++;
}

/* Long enough to be interrupted. */
static void enable_interrupts(unsigned long long now, unsigned long data)
{
	u64 end = apic_timer_now() + apic_timer_us_to_tsc(100);

	local_irq_enable();
	while (apic_timer_now() < end)
		cpu_relax();
	ran++;
}

static void leave_preemption_off(unsigned long long now, unsigned long data)
{
	preempt_disable();
	ran++;
}

static const struct {
	const char *name;
	void (*function)(unsigned long long now, unsigned long data);
} handlers[] = {
	{ "sleep", sleep },
	{ "enable_interrupts", enable_interrupts },
	{ "leave_preemption_off", leave_preemption_off },
};

static int run_set(const char *name, const struct kernel_param *parameter)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!sysfs_streq(name, handlers[i].name))
			continue;
		timer.function = handlers[i].function;
		timer.expires = apic_timer_now() + apic_timer_us_to_tsc(1000);
		return add_apic_timer(&timer);
	}
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = run_set };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "name of a handler to run on this CPU in 1 ms");

static int __init misbehave_init(void)
{
	init_apic_timer(&timer);
	return 0;
}

static void __exit misbehave_exit(void)
{
	del_apic_timer_sync(&timer);
}

module_init(misbehave_init);
module_exit(misbehave_exit);
MODULE_DESCRIPTION("Test of apic_timer: handlers that misbehave");
MODULE_LICENSE("GPL");
