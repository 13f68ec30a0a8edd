// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers: modules that may have timers, because they use symbols of apic_timer or
 * of another consumer. When a consumer is unloaded, its timers are searched for on all
 * CPUs; unloading any other module must cost nothing.
 *
 * Modules cannot read the kernel's lists of module users, because the type of their
 * elements is private in newer kernels. But each module has a directory in sysfs with a
 * link for each module that uses its symbols.
 *
 * A module that gets the symbols only by symbol_get() is not listed there, and has
 * to delete its timers itself.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>

#include "consumers.h"

#if defined(MODULE) && defined(CONFIG_SYSFS) && defined(CONFIG_MODULE_UNLOAD)

/* With more consumers, every module counts as one. */
#define CONSUMERS	64

static DEFINE_MUTEX(lock);
static const struct module *consumers[CONSUMERS];
static unsigned int count;
static bool overflowed;

/* Check whether @module uses symbols of @other. */
static bool uses(const struct module *module, const struct module *other)
{
	struct kernfs_node *link;

	link = sysfs_get_dirent(other->holders_dir->sd, module->name);
	sysfs_put(link);
	return link;
}

static bool may_have_timers(const struct module *module)
{
	unsigned int i;

	lockdep_assert_held(&lock);

	/* Its load failed before it was linked, but setting a parameter may have run its code. */
	if (overflowed || !module->mkobj.kobj.state_in_sysfs)
		return true;
	if (uses(module, THIS_MODULE))
		return true;
	for (i = 0; i < count; i++)
		if (uses(module, consumers[i]))
			return true;
	return false;
}

/**
 * apic_timer_consumers_live() - note a module that was loaded
 * @module:	the module, past its init function
 *
 * Context: Task, the module notifier.
 */
void apic_timer_consumers_live(const struct module *module)
{
	mutex_lock(&lock);
	if (may_have_timers(module)) {
		if (count < CONSUMERS)
			consumers[count++] = module;
		else
			overflowed = true;
	}
	mutex_unlock(&lock);
}

/**
 * apic_timer_consumers_going() - check whether a module that is being unloaded may have timers
 * @module:	the module, past its exit function, or past its failed init function
 *
 * Context: Task, the module notifier.
 * Return: false if it certainly has none.
 */
bool apic_timer_consumers_going(const struct module *module)
{
	unsigned int i;
	bool may;

	mutex_lock(&lock);
	may = may_have_timers(module);
	for (i = 0; i < count; i++)
		if (consumers[i] == module)
			consumers[i--] = consumers[--count];
	mutex_unlock(&lock);
	return may;
}

#else

/* Built into the kernel, apic_timer is not a module: its consumers are unknown. */
void apic_timer_consumers_live(const struct module *module)
{
}

bool apic_timer_consumers_going(const struct module *module)
{
	return true;
}

#endif
