// SPDX-License-Identifier: GPL-2.0
/*
 * Modules that are being unloaded: their timers do not approach any more. See unload.c for why.
 */
#include <linux/apic_clock.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "leaving.h"

/**
 * struct leaving - a module that is being unloaded
 * @node:	entry in the list of all such modules
 * @module:	the module
 */
struct leaving {
	struct list_head node;
	const struct module *module;
};

static DEFINE_RAW_SPINLOCK(leaving_lock);
static LIST_HEAD(leaving);

/**
 * apic_clock_timer_belongs_to() - check whether a timer belongs to a module
 * @timer:	the timer
 * @module:	the module
 *
 * The timer's memory may belong to the module, and its function to another.
 *
 * Context: Any.
 * Return: true if the timer must not be pending when the module is gone.
 */
bool apic_clock_timer_belongs_to(const struct apic_clock_timer *timer,
				 const struct module *module)
{
	return within_module((unsigned long)timer->timer.function, module) ||
	       within_module((unsigned long)timer->lost, module) ||
	       within_module((unsigned long)timer, module);
}

/**
 * apic_clock_timer_is_leaving() - check whether a timer's module is being unloaded
 * @timer:	the timer
 *
 * Only callbacks call this, and code that cancels a lost timer, so that arming a timer costs
 * nothing extra.
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: true if the timer must not be advanced, nor its owner be notified.
 */
bool apic_clock_timer_is_leaving(const struct apic_clock_timer *timer)
{
	const struct leaving *of;
	bool is = false;

	lockdep_assert_held(&timer->lock);
	if (likely(list_empty(&leaving)))
		return false;
	raw_spin_lock(&leaving_lock);
	list_for_each_entry(of, &leaving, node)
		is |= apic_clock_timer_belongs_to(timer, of->module);
	raw_spin_unlock(&leaving_lock);
	return is;
}

/**
 * apic_clock_leave() - keep callbacks from arming timers of a module that is being unloaded
 * @module:	the module
 *
 * Context: Task. May sleep.
 */
void apic_clock_leave(const struct module *module)
{
	struct leaving *of = kmalloc(sizeof(*of), GFP_KERNEL | __GFP_NOFAIL);
	unsigned long flags;

	of->module = module;
	raw_spin_lock_irqsave(&leaving_lock, flags);
	list_add(&of->node, &leaving);
	raw_spin_unlock_irqrestore(&leaving_lock, flags);
}

/**
 * apic_clock_left() - undo apic_clock_leave(), when the module has no timers any more
 * @module:	the module
 *
 * Context: Task.
 */
void apic_clock_left(const struct module *module)
{
	struct leaving *of, *found = NULL;
	unsigned long flags;

	raw_spin_lock_irqsave(&leaving_lock, flags);
	list_for_each_entry(of, &leaving, node)
		if (of->module == module)
			found = of;
	if (found)
		list_del(&found->node);
	raw_spin_unlock_irqrestore(&leaving_lock, flags);
	kfree(found);
}
