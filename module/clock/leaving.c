// SPDX-License-Identifier: GPL-2.0
/*
 * Modules that are being unloaded: no timer of theirs comes near any more. Why, unload.c says.
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
 * @node:	of the list of all
 * @module:	the module
 */
struct leaving {
	struct list_head node;
	const struct module *module;
};

static DEFINE_RAW_SPINLOCK(leaving_lock);
static LIST_HEAD(leaving);

/**
 * apic_clock_timer_belongs_to() - check whether a timer is of a module
 * @timer:	the timer
 * @module:	the module
 *
 * Its memory may be the module's, and its function another's.
 *
 * Context: Any.
 * Return: true if it must not be left when the module is gone.
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
 * Asked by callbacks, so that who arms pays nothing.
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: true if it must not come near.
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
 * apic_clock_leave() - a module is being unloaded: no callback arms a timer of it from here on
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
 * apic_clock_left() - a module that is being unloaded has no timers any more
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
