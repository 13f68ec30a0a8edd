// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_refine: makes the kernel believe that the TSC is faster, as when it refines the rate
 * a second or two after boot. Unloading undoes that. The kernel's clocks do not read this rate
 * again.
 */
#include <linux/module.h>
#include <asm/tsc.h>

static int by_khz = 1000;
module_param(by_khz, int, 0444);
MODULE_PARM_DESC(by_khz, "change of the TSC's rate, in kHz");

static int __init refine_init(void)
{
	WRITE_ONCE(tsc_khz, tsc_khz + by_khz);
	return 0;
}

static void __exit refine_exit(void)
{
	WRITE_ONCE(tsc_khz, tsc_khz - by_khz);
}

module_init(refine_init);
module_exit(refine_exit);

MODULE_DESCRIPTION("A TSC whose rate the kernel refines");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
