// SPDX-License-Identifier: GPL-2.0
/*
 * Report a change of the verdict: to the kernel log, and to other kernel code by notifiers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>

#include "trust.h"
#include "worth.h"

/* No verdict has been reported yet. */
#define NONE	-1

static DEFINE_MUTEX(trust_mutex);
static RAW_NOTIFIER_HEAD(chain);	/* trust_mutex */
static int reported = NONE;			/* trust_mutex; the verdict reported last */

static void log_change(const struct apic_clock_verdict *verdict)
{
	/* In a virtual machine, some measurements contradict themselves and others do not. */
	static DEFINE_RATELIMIT_STATE(limit, 3600 * HZ, 10);

	lockdep_assert_held(&trust_mutex);
	if (!__ratelimit(&limit))
		return;
	pr_notice("TSC: %s%s%s: %s; skew of CPUs: %u known, %u unknown (%u contradictory); stops %llu, ahead %llu, rate moved %u times\n",
		  apic_clock_worth_name(verdict->worth), reported == NONE ? "" : ", was ",
		  reported == NONE ? "" : apic_clock_worth_name(reported),
		  apic_clock_worth_reason(verdict), verdict->measured, verdict->unknown,
		  verdict->contradicted, verdict->stops, verdict->ahead, verdict->rate_moved);
}

/**
 * apic_clock_trust_update() - report a verdict, if it differs from the last one
 * @verdict:	the verdict, concluded
 *
 * A CPU that has just come online is measured a second later, and the TSC is judged again
 * then. Until then there is no verdict.
 *
 * Context: Task.
 */
void apic_clock_trust_update(const struct apic_clock_verdict *verdict)
{
	struct apic_clock_verdict copy = *verdict;

	mutex_lock(&trust_mutex);
	if (!verdict->unmeasured && reported != (int)verdict->worth) {
		log_change(verdict);
		reported = verdict->worth;
		raw_notifier_call_chain(&chain, verdict->worth, &copy);
	}
	mutex_unlock(&trust_mutex);
}

static struct notifier_block *first_block(void)
{
	return rcu_dereference_protected(chain.head, lockdep_is_held(&trust_mutex));
}

static struct notifier_block *next_block(const struct notifier_block *block)
{
	return rcu_dereference_protected(block->next, lockdep_is_held(&trust_mutex));
}

/* Check this first: to register a block twice makes the chain call WARN(). */
static bool is_registered(const struct notifier_block *block)
{
	const struct notifier_block *found;

	for (found = first_block(); found; found = next_block(found))
		if (found == block)
			return true;
	return false;
}

/**
 * apic_clock_register_notifier() - be notified when the verdict changes
 * @block:	@block->notifier_call gets an &enum apic_clock_worth and the
 *		&struct apic_clock_verdict that it comes from, valid during the call. It
 *		may sleep, but must neither register nor unregister a notifier.
 *
 * It is not called for the present verdict: see apic_clock_judge() for that.
 *
 * Context: Task; may sleep, and waits for calls in progress.
 * Return:
 * * %0 - registered
 * * %-EEXIST - it is already registered
 * * %-EINVAL - @block is NULL, or has no function
 */
int apic_clock_register_notifier(struct notifier_block *block)
{
	int ret = -EEXIST;

	if (!block || !block->notifier_call) {
		pr_warn_once("%pS: notifier without a function\n", __builtin_return_address(0));
		return -EINVAL;
	}
	mutex_lock(&trust_mutex);
	if (!is_registered(block))
		ret = raw_notifier_chain_register(&chain, block);
	mutex_unlock(&trust_mutex);
	if (ret == -EEXIST)
		pr_warn_once("%pS: notifier %ps registered twice\n", __builtin_return_address(0),
			     block->notifier_call);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_register_notifier);

/**
 * apic_clock_unregister_notifier() - undo apic_clock_register_notifier()
 * @block:	registered
 *
 * Context: Task, not a notifier; may sleep, and waits for a call in progress.
 * Return:
 * * %0 - no call of it is in progress, and none will be made
 * * %-ENOENT - it isn't registered
 * * %-EINVAL - @block is NULL
 */
int apic_clock_unregister_notifier(struct notifier_block *block)
{
	int ret;

	if (!block) {
		pr_warn_once("%pS: no notifier to unregister\n", __builtin_return_address(0));
		return -EINVAL;
	}
	mutex_lock(&trust_mutex);
	ret = raw_notifier_chain_unregister(&chain, block);
	mutex_unlock(&trust_mutex);
	if (ret)
		pr_warn_once("%pS: notifier %ps is not registered\n", __builtin_return_address(0),
			     block->notifier_call);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_unregister_notifier);

/**
 * apic_clock_trust_drain_module() - unregister the notifiers that a module has left behind
 * @module:	the module, past its exit function
 *
 * Context: Task; may sleep, and waits for a call in progress.
 */
void apic_clock_trust_drain_module(const struct module *module)
{
	struct notifier_block *block, *next;

	mutex_lock(&trust_mutex);
	for (block = first_block(); block; block = next) {
		next = next_block(block);
		if (!within_module((unsigned long)block->notifier_call, module) &&
		    !within_module((unsigned long)block, module))
			continue;
		pr_warn("notifier %ps has not been unregistered\n", block->notifier_call);
		raw_notifier_chain_unregister(&chain, block);
	}
	mutex_unlock(&trust_mutex);
}
