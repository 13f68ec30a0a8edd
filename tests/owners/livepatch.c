// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_livepatch: replaces a function of apic_timer while that is loaded.
 */
#define APIC_TIMER_DECLARATIONS_ONLY
#include <linux/apic_timer.h>
#include <linux/livepatch.h>
#include <linux/module.h>

static unsigned long calls;
module_param(calls, ulong, 0444);
MODULE_PARM_DESC(calls, "of the function that replaces apic_timer_forward()");

/* Do the same as the replaced function, but slowly. */
static u64 forward(struct apic_timer_list *timer, u64 now, u64 period)
{
	u64 n = 0;

	WRITE_ONCE(calls, READ_ONCE(calls) + 1);
	for (; timer->expires <= now; n++)
		timer->expires += period;
	return n;
}

static struct klp_func functions[] = {
	{ .old_name = "apic_timer_forward", .new_func = forward },
	{ }
};

static struct klp_object objects[] = {
	{ .name = "apic_timer", .funcs = functions },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objects,
};

static int __init livepatch_init(void)
{
	return klp_enable_patch(&patch);
}

static void __exit livepatch_exit(void)
{
}

module_init(livepatch_init);
module_exit(livepatch_exit);

MODULE_INFO(livepatch, "Y");
MODULE_DESCRIPTION("Replaces a function of apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
