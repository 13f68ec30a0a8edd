// SPDX-License-Identifier: GPL-2.0
/*
 * Whom it concerns when the verdict becomes another: the kernel log, and other kernel
 * code by notifiers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>

#include "trust.h"
#include "worth.h"

/* No verdict was reported yet. */
#define NONE	-1

static DEFINE_MUTEX(trust_mutex);
static RAW_NOTIFIER_HEAD(chain);	/* trust_mutex */
static int reported = NONE;			/* likewise: the verdict reported last */

static void log_change(const struct apic_clock_verdict *verdict)
{
	/* Measurements in a virtual machine may contradict themselves one time and not the next. */
	static DEFINE_RATELIMIT_STATE(limit, 3600 * HZ, 10);

	lockdep_assert_held(&trust_mutex);
	if (!__ratelimit(&limit))
		return;
	pr_notice("TSC: %s%s%s: %s; skew of CPUs: %u known, %u not, %u of these contradict themselves; stops %llu, ahead %llu, rate moved %u times\n",
		  apic_clock_worth_name(verdict->worth), reported == NONE ? "" : ", was ",
		  reported == NONE ? "" : apic_clock_worth_name(reported),
		  apic_clock_worth_reason(verdict), verdict->measured, verdict->unknown,
		  verdict->contradicted, verdict->stops, verdict->ahead, verdict->rate_moved);
}

/**
 * apic_clock_trust_update() - report a verdict, if it is another than the last one
 * @verdict:	concluded
 *
 * A CPU that has just come is measured a second later, and all is judged again then:
 * until that it is no verdict.
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

/* Asked first, as the chain warns by WARN() of one that is. */
static bool is_registered(const struct notifier_block *block)
{
	const struct notifier_block *found;

	for (found = rcu_dereference_protected(chain.head, lockdep_is_held(&trust_mutex)); found;
	     found = rcu_dereference_protected(found->next, lockdep_is_held(&trust_mutex)))
		if (found == block)
			return true;
	return false;
}

/**
 * apic_clock_register_notifier() - be notified when the verdict becomes another
 * @block:	@block->notifier_call gets an &enum apic_clock_worth and the
 *		&struct apic_clock_verdict that it is from, valid during the call. It
 *		may sleep, but neither register nor unregister a notifier.
 *
 * It is not called for the verdict so far: apic_clock_judge() has that.
 *
 * Context: Task; may sleep, and waits for calls that are under way.
 * Return:
 * * %0 - registered
 * * %-EEXIST - it is registered already
 * * %-EINVAL - @block is NULL, or has nothing to call
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
 * Context: Task, not a notifier; may sleep: waits until a call that is under way has returned.
 * Return:
 * * %0 - no call of it is under way, and none will be
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
