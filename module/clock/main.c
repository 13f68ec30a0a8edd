// SPDX-License-Identifier: GPL-2.0
/*
 * apic_clock: what the clocks of this machine are worth, and timers that expire
 * by them.
 */
#include <linux/module.h>
#include <linux/notifier.h>

#include "debugfs.h"
#include "resync.h"
#include "skew.h"
#include "timer.h"

/* A module was unloaded, perhaps with timers pending. */
static int module_event(struct notifier_block *block, unsigned long state, void *module)
{
#ifdef CONFIG_MODULES	/* in a kernel tree there may be none */
	if (state == MODULE_STATE_GOING && module != THIS_MODULE)
		apic_clock_timers_forget(module);
#endif
	return NOTIFY_OK;
}

static struct notifier_block module_block = {
	.notifier_call = module_event,
};

static int __init apic_clock_init(void)
{
	int ret;

	apic_clock_timers_init();
	ret = register_module_notifier(&module_block);
	if (ret)
		return ret;
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
	unregister_module_notifier(&module_block);
	return ret;
}

static void __exit apic_clock_exit(void)
{
	apic_clock_debugfs_exit();
	apic_clock_resync_exit();
	apic_clock_skew_exit();
	unregister_module_notifier(&module_block);
}

module_init(apic_clock_init);
module_exit(apic_clock_exit);

MODULE_DESCRIPTION("Clocks of this machine, and timers that expire by them, for apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
