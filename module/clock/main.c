// SPDX-License-Identifier: GPL-2.0
/*
 * apic_clock: what the clocks of this machine are worth, and timers that expire
 * by them.
 */
#include <linux/module.h>
#include <linux/notifier.h>

#include "debugfs.h"
#include "group.h"
#include "resync.h"
#include "skew.h"
#include "timer.h"

/*
 * A module was unloaded, perhaps with timers pending. Close to its moment a timer is the
 * core's only. So ours are cancelled before the core looks for those, and once more when
 * the core has waited for the module's handlers, which may arm some meanwhile:
 *
 *	CPU0: rmmod                             CPU1
 *	  the core cancels the module's
 *	                                        a timer comes near: armed, not ours any more
 *	  we find none
 *	  the module's memory is freed
 *	                                        its handler is called
 *
 * One that such a handler has armed may come near after the core has looked, and before
 * we do once more. So from the first time to the second no timer of the module comes near.
 */
#ifdef CONFIG_MODULES	/* in a kernel tree there may be none */

static void forget(const struct module *module)
{
	apic_clock_groups_stop(module);
	apic_clock_timers_forget(module);
}

static int before_core(struct notifier_block *block, unsigned long state, void *module)
{
	if (state == MODULE_STATE_GOING && module != THIS_MODULE) {
		apic_clock_timers_leave(module);
		forget(module);
	}
	return NOTIFY_OK;
}

static int after_core(struct notifier_block *block, unsigned long state, void *module)
{
	if (state == MODULE_STATE_GOING && module != THIS_MODULE) {
		forget(module);
		apic_clock_groups_free(module);
		apic_clock_timers_left(module);
	}
	return NOTIFY_OK;
}

#else

static int before_core(struct notifier_block *block, unsigned long state, void *module)
{
	return NOTIFY_OK;
}

static int after_core(struct notifier_block *block, unsigned long state, void *module)
{
	return NOTIFY_OK;
}

#endif

/* The core's has priority 0. */
static struct notifier_block before_block = {
	.notifier_call = before_core,
	.priority = 1,
};

static struct notifier_block after_block = {
	.notifier_call = after_core,
	.priority = -1,
};

static int __init apic_clock_init(void)
{
	int ret;

	apic_clock_timers_init();
	ret = register_module_notifier(&before_block);
	if (ret)
		return ret;
	ret = register_module_notifier(&after_block);
	if (ret)
		goto no_after;
	ret = apic_clock_skew_init();
	if (ret)
		goto no_skew;
	ret = apic_clock_resync_init();
	if (ret)
		goto no_resync;
	apic_clock_debugfs_init();
	return 0;

no_resync:
	apic_clock_skew_exit();
no_skew:
	unregister_module_notifier(&after_block);
no_after:
	unregister_module_notifier(&before_block);
	return ret;
}

static void __exit apic_clock_exit(void)
{
	apic_clock_debugfs_exit();
	apic_clock_resync_exit();
	apic_clock_skew_exit();
	unregister_module_notifier(&after_block);
	unregister_module_notifier(&before_block);
}

module_init(apic_clock_init);
module_exit(apic_clock_exit);

MODULE_DESCRIPTION("Clocks of this machine, and timers that expire by them, for apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
