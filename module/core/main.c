// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer: timers that start at a chosen TSC value, from the CPU's own
 * local APIC timer.
 */
#include <linux/apic_version.h>
#include <linux/module.h>

#include "compat/supported.h"
#include "attach.h"
#include "consumers.h"
#include "debugfs.h"
#include "epoch.h"
#include "hw/smi.h"
#include "mux/watchdog.h"
#include "pm.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "qos_requests.h"
#include "timers/base.h"
#include "timers/calibrate.h"
#include "timers/dispatch.h"
#include "timers/drain.h"
#include "timers/objects.h"
#include "tsc/gtod.h"
#include "tsc/tsc.h"

/* A module was loaded, or is being unloaded, perhaps with timers pending. */
static int module_event(struct notifier_block *block, unsigned long state,
			void *module)
{
#ifdef CONFIG_MODULES	/* in a kernel tree there may be none */
	if (module == THIS_MODULE)
		return NOTIFY_OK;
	if (state == MODULE_STATE_LIVE) {
		apic_timer_consumers_live(module);
	} else if (state == MODULE_STATE_GOING &&
		   apic_timer_consumers_going(module)) {
		apic_timer_epoch_drain_module(module);
		apic_timer_drain_module(module);
	}
#endif
	return NOTIFY_OK;
}

static struct notifier_block module_block = {
	.notifier_call = module_event,
};

static int __init apic_timer_init(void)
{
	int ret;

	ret = apic_timer_tsc_init();
	if (ret)
		return ret;

	ret = apic_timer_mode_init();
	if (ret)
		return ret;

	apic_timer_lead_init();
	apic_timer_dispatch_init();
	apic_timer_objects_setup(del_apic_timer);
	apic_timer_base_init();
	apic_timer_watchdog_init(apic_timer_calibrate_watch);
	apic_timer_smi_init();
	ret = apic_timer_qos_init();
	if (ret)
		return ret;

	ret = register_module_notifier(&module_block);
	if (ret)
		goto err_notifier;

	ret = apic_timer_attach_init();
	if (ret)
		goto err_source;

	apic_timer_pm_init();
	apic_timer_epoch_init();
	apic_timer_debugfs_init();
	return 0;

err_source:
	apic_timer_watchdog_exit();
	apic_timer_calibrate_exit();
	unregister_module_notifier(&module_block);
err_notifier:
	apic_timer_qos_exit();
	return ret;
}

static void __exit apic_timer_exit(void)
{
	apic_timer_debugfs_exit();
	apic_timer_epoch_exit();
	apic_timer_pm_exit();
	apic_timer_drain_all();
	apic_timer_attach_exit();
	apic_timer_watchdog_exit();
	apic_timer_calibrate_exit();
	unregister_module_notifier(&module_block);
	apic_timer_qos_exit();
	apic_timer_gtod_exit();
}

module_init(apic_timer_init);
module_exit(apic_timer_exit);

MODULE_DESCRIPTION("Timers that start at a chosen TSC value, from the local APIC timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(APIC_TIMER_VERSION);
MODULE_ALIAS("lapic-timer");
