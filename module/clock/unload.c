// SPDX-License-Identifier: GPL-2.0
/*
 * Cancel the pending timers of clocks, and the groups, of a module that is being unloaded, and
 * unregister its notifiers.
 *
 * Far from its moment a timer is an hrtimer, and in the list of list.c. Close to its moment
 * only the core has it, and the core cancels a module's remaining timers itself. Ours are
 * cancelled before the core looks for its own, and again after the core has waited for the
 * module's handlers, which may arm more meanwhile:
 *
 *	CPU0: rmmod                             CPU1
 *	  the core cancels the module's
 *	                                        a timer is NEAR: armed, not ours any more
 *	  we find none
 *	  the module's memory is freed
 *	                                        its handler is called
 *
 * A timer armed by such a handler might be handed to the core after the core has looked, and
 * before our second time. Therefore no timer of the module is advanced between our first and
 * second time. An owner that is being notified of a loss may arm its timer as well; a
 * notification that has begun before is waited for, and none begins later. A notifier of the
 * verdict may arm timers and groups, so it is unregistered first, as in the core:
 *
 *	CPU0: rmmod                             CPU1: judge_work
 *	  cancels timers, frees groups
 *	                                        the module's notifier arms a timer
 *	  unregisters the notifier: waits
 *	                                        fires a group: it is freed
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>

#include "group.h"
#include "leaving.h"
#include "list.h"
#include "trust.h"
#include "unload.h"

static bool is_left(const struct apic_clock_timer *timer, const void *module)
{
	return apic_clock_timer_belongs_to(timer, module);
}

static unsigned int cancel_timer(struct apic_clock_timer *timer)
{
	del_apic_timer_at_sync(timer);
	return 1;
}

/* Cancel groups and timers. The module's exit function has returned, so nothing uses them. */
static void cancel(const struct module *module)
{
	const struct apic_clock_wanted wanted = {
		.is = is_left,
		.of = module,
		.use = cancel_timer,
	};
	unsigned int count;

	apic_clock_groups_stop(module);
	count = apic_clock_list_each(&wanted);
	if (count)
		pr_warn("module %s left %u clock timer(s) pending: cancelled\n",
			module->name, count);
}

/*
 * Ignore a load that another notifier block has refused: none of the module's code has run,
 * and only those of our blocks that precede the refusing one are called.
 */
static bool is_unloaded(unsigned long state, const struct module *module)
{
	return state == MODULE_STATE_GOING && module->state == MODULE_STATE_GOING &&
	       module != THIS_MODULE;
}

static int before_core(struct notifier_block *block, unsigned long state, void *module)
{
	if (is_unloaded(state, module)) {
		apic_clock_leave(module);
		apic_clock_trust_drain_module(module);
		/* Interrupts are off while an owner is notified of a loss. */
		synchronize_rcu();
		cancel(module);
	}
	return NOTIFY_OK;
}

static int after_core(struct notifier_block *block, unsigned long state, void *module)
{
	if (is_unloaded(state, module)) {
		cancel(module);
		apic_clock_groups_free(module);
		apic_clock_left(module);
	}
	return NOTIFY_OK;
}

/* The core's block has priority 0. */
static struct notifier_block before_block = {
	.notifier_call = before_core,
	.priority = 1,
};

static struct notifier_block after_block = {
	.notifier_call = after_core,
	.priority = -1,
};

/**
 * apic_clock_unload_init() - start to cancel the timers of modules that are unloaded
 *
 * Context: Task, before a timer is armed. Sleeps.
 * Return: 0 or an error.
 */
int apic_clock_unload_init(void)
{
	int ret;

	/* The second block alone does no harm. */
	ret = register_module_notifier(&after_block);
	if (ret)
		return ret;
	ret = register_module_notifier(&before_block);
	if (ret)
		unregister_module_notifier(&after_block);
	return ret;
}

/**
 * apic_clock_unload_exit() - undo apic_clock_unload_init()
 *
 * Context: Task. Sleeps.
 */
void apic_clock_unload_exit(void)
{
	unregister_module_notifier(&before_block);
	unregister_module_notifier(&after_block);
}
