// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest module that uses apic_timer: a timer that expires 1 ms after the
 * module is loaded. The handler records when it started; unloading prints that.
 */
#include <linux/apic_timer.h>
#include <linux/module.h>

static u64 started;

static void hello(unsigned long long now, unsigned long data)
{
	started = now;		/* hard interrupt context: no printing here */
}

static DEFINE_APIC_TIMER(timer, hello, 0);

static int __init hello_init(void)
{
	return mod_apic_timer(&timer, apic_timer_now() + apic_timer_us_to_tsc(1000));
}

static void __exit hello_exit(void)
{
	if (!del_apic_timer_sync(&timer))	/* 0: it has expired */
		pr_info("hello, %lld cycles late\n", started - timer.expires);
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_DESCRIPTION("A timer that expires 1 ms after the module is loaded");
MODULE_LICENSE("GPL");
