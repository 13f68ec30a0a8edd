// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_crowd: any number of pending timers, which never expire and are left
 * pending when the module is unloaded.
 */
#include <linux/apic_timer.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "crowd.h"

static unsigned int count = 1000;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "number of timers");

static unsigned int apart;
module_param(apart, uint, 0444);
MODULE_PARM_DESC(apart, "distance between expiries, in TSC cycles; 0: all expire at once");

static int cpu;
module_param(cpu, int, 0444);
MODULE_PARM_DESC(cpu, "CPU that the timers are pending on");

static struct apic_timer_list *timers;

static void crowd_handler(unsigned long long now, unsigned long data)
{
}

/**
 * apic_timer_crowd_add() - add a timer of a module that uses us
 * @timer:	as for add_apic_timer()
 *
 * Return: as add_apic_timer().
 */
int apic_timer_crowd_add(struct apic_timer_list *timer)
{
	return add_apic_timer(timer);
}
EXPORT_SYMBOL_GPL(apic_timer_crowd_add);

static int __init crowd_init(void)
{
	unsigned int i;
	int ret;

	timers = vzalloc(array_size(count, sizeof(*timers)));
	if (!timers)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		init_apic_timer(&timers[i]);
		timers[i].function = crowd_handler;
		timers[i].expires = (1ULL << 62) + (u64)i * apart;
		ret = add_apic_timer_on(&timers[i], cpu);
		if (ret)
			return ret;
		if (i % 1024 == 0)
			cond_resched();
	}
	return 0;
}

/* The timers' memory is never freed: they stay pending afterwards. */
static void __exit crowd_exit(void)
{
}

module_init(crowd_init);
module_exit(crowd_exit);

MODULE_DESCRIPTION("Test of apic_timer: many pending timers, left behind");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
