// SPDX-License-Identifier: GPL-2.0
/*
 * Reliability of TSC values: their epoch, whether the kernel trusts the TSC, and the
 * notifiers that are called when either changes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include <trace/events/apic_timer.h>

#include "attach.h"
#include "epoch.h"
#include "lib/refuse.h"
#include "tsc/tsc.h"

/* The kernel's own watchdog runs twice a second. */
#define WATCH_PERIOD	HZ

static ATOMIC_NOTIFIER_HEAD(chain);
static DEFINE_MUTEX(chain_mutex);	/* serialises changes of it */

static void watch(struct work_struct *work);
/* Deferrable, so as not to wake an idle CPU. While the CPU sleeps, changes are noticed later. */
static DECLARE_DEFERRABLE_WORK(watch_work, watch);

static void notify(enum apic_timer_event event, s64 shift)
{
	struct apic_timer_notice notice = {
		.epoch = apic_timer_epoch(),
		.shift = shift,
	};

	atomic_notifier_call_chain(&chain, event, &notice);
}

/*
 * The kernel does not notify modules when it refines the rate of the TSC, which it does
 * only while it trusts the TSC, or when it marks the TSC unstable, which it never
 * reverts.
 */
static void watch(struct work_struct *work)
{
	apic_timer_attach_refine();
	if (apic_timer_tsc_stable()) {
		schedule_delayed_work(&watch_work, WATCH_PERIOD);
		return;
	}
	pr_warn("the kernel has marked the TSC unstable: a deadline taken on one CPU may be wrong on another\n");
	notify(APIC_TIMER_TSC_UNSTABLE, 0);
}

static struct notifier_block *first_block(void)
{
	return rcu_dereference_protected(chain.head, lockdep_is_held(&chain_mutex));
}

static struct notifier_block *next_block(const struct notifier_block *block)
{
	return rcu_dereference_protected(block->next, lockdep_is_held(&chain_mutex));
}

/* Check this first, because for a registered block the chain triggers a WARN(): see refuse.h. */
static bool is_registered(const struct notifier_block *block)
{
	const struct notifier_block *found;

	for (found = first_block(); found; found = next_block(found))
		if (found == block)
			return true;
	return false;
}

/**
 * apic_timer_register_notifier() - be notified when TSC values become invalid
 * @block:	@block->notifier_call gets an &enum apic_timer_event and a
 *		&struct apic_timer_notice, valid during the call. It must not
 *		sleep, and for %APIC_TIMER_TSC_EPOCH it is called with
 *		interrupts off, while the machine wakes and one CPU runs: it may
 *		use the timers' interface, but not wait for another CPU.
 *
 * Context: Task context.
 * Return:
 * * %0 - registered
 * * %-EEXIST - it is registered already
 * * %-EINVAL - @block is NULL, or has no function to call
 */
int apic_timer_register_notifier(struct notifier_block *block)
{
	int ret = -EEXIST;

	if (!block || !block->notifier_call)
		return apic_timer_refuse(-EINVAL, APIC_TIMER_CALLER,
					 "notifier without a function");

	mutex_lock(&chain_mutex);
	if (!is_registered(block))
		ret = atomic_notifier_chain_register(&chain, block);
	mutex_unlock(&chain_mutex);
	if (ret == -EEXIST)
		apic_timer_refuse(ret, APIC_TIMER_CALLER,
				  "notifier %ps registered twice", block->notifier_call);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_timer_register_notifier);

/**
 * apic_timer_unregister_notifier() - undo apic_timer_register_notifier()
 * @block:	registered
 *
 * Context: Task context; waits until a call that is under way has returned.
 * Return:
 * * %0 - unregistered; no call is running, and none will be made
 * * %-ENOENT - it is not registered
 * * %-EINVAL - @block is NULL
 */
int apic_timer_unregister_notifier(struct notifier_block *block)
{
	int ret;

	if (!block)
		return apic_timer_refuse(-EINVAL, APIC_TIMER_CALLER,
					 "no notifier to unregister");

	mutex_lock(&chain_mutex);
	ret = atomic_notifier_chain_unregister(&chain, block);
	mutex_unlock(&chain_mutex);
	if (ret)
		apic_timer_refuse(ret, APIC_TIMER_CALLER,
				  "notifier %ps is not registered", block->notifier_call);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_timer_unregister_notifier);

/**
 * apic_timer_epoch_drain_module() - unregister what a module has left behind
 * @module:	the module, past its exit function
 *
 * Context: Task; waits until calls that are under way have returned.
 */
void apic_timer_epoch_drain_module(const struct module *module)
{
	struct notifier_block *block, *next;

	mutex_lock(&chain_mutex);
	for (block = first_block(); block; block = next) {
		next = next_block(block);
		if (!within_module((unsigned long)block->notifier_call, module) &&
		    !within_module((unsigned long)block, module))
			continue;
		pr_warn("notifier %ps has not been unregistered\n", block->notifier_call);
		atomic_notifier_chain_unregister(&chain, block);
	}
	mutex_unlock(&chain_mutex);
}

/**
 * apic_timer_epoch_begin() - begin an epoch because the TSC has jumped in a sleep
 * @shift:	TSC now less TSC then, cycles
 *
 * Context: Interrupts off, no other CPU in this module; pending timers have been moved.
 */
void apic_timer_epoch_begin(s64 shift)
{
	WRITE_ONCE(apic_timer_tsc_epoch, apic_timer_tsc_epoch + 1);
	trace_apic_timer_epoch(apic_timer_tsc_epoch, shift);
	notify(APIC_TIMER_TSC_EPOCH, shift);
}

/**
 * apic_timer_epoch_init() - watch the kernel's trust in the TSC
 *
 * If the kernel did not trust it from the start, that has been logged.
 */
void apic_timer_epoch_init(void)
{
	if (apic_timer_tsc_stable())
		schedule_delayed_work(&watch_work, WATCH_PERIOD);
}

/**
 * apic_timer_epoch_exit() - stop watching
 */
void apic_timer_epoch_exit(void)
{
	cancel_delayed_work_sync(&watch_work);
}
