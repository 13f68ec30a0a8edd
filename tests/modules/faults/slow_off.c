// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_slow_off: CPUs that are slow to go offline. If it is loaded before apic_timer,
 * apic_timer has stopped serving such a CPU for that long, while tasks and hrtimers still run
 * there.
 */
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/module.h>

static unsigned int ms = 1000;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "delay of a CPU that goes offline, in ms");

static int state;

static int wait_ms(unsigned int cpu)
{
	msleep(ms);
	return 0;
}

static int __init slow_off_init(void)
{
	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "apic_timer_slow_off:online", NULL,
					  wait_ms);
	return state < 0 ? state : 0;
}

static void __exit slow_off_exit(void)
{
	cpuhp_remove_state_nocalls(state);
}

module_init(slow_off_init);
module_exit(slow_off_exit);

MODULE_DESCRIPTION("CPUs that are slow to go offline");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
