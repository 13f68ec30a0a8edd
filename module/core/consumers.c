// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers: modules that may have timers, as they use symbols of apic_timer, or those
 * of such a module. When one is unloaded, its timers are searched for on all CPUs; the
 * unloading of any other module must cost nothing.
 *
 * Modules cannot read the kernel's lists of who uses whom, as the type of their elements
 * is private in newer kernels. But each module has a directory in sysfs with a link for
 * each module that uses its symbols.
 *
 * A module that has the symbols by symbol_get() only is not listed there, and has to
 * delete its timers itself.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>

#include "consumers.h"

#if defined(MODULE) && defined(CONFIG_SYSFS) && defined(CONFIG_MODULE_UNLOAD)

/* More are taken for any module. */
#define CONSUMERS	64

static DEFINE_MUTEX(lock);
static const struct module *consumers[CONSUMERS];
static unsigned int count;
static bool overflowed;

/* Whether @module uses symbols of @other. */
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

	/* Its load failed before it was linked, but a parameter may be a call. */
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
 * apic_timer_consumers_going() - whether a module that is unloaded may have timers
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

/* Nothing is known of them: built into the kernel, we are no module. */
void apic_timer_consumers_live(const struct module *module)
{
}

bool apic_timer_consumers_going(const struct module *module)
{
	return true;
}

#endif
