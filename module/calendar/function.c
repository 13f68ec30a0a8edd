// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of other modules, and kernel threads that call them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_calendar.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "calendar.h"

static LIST_HEAD(functions);
static DEFINE_MUTEX(functions_lock);	/* the list, and @users */

static struct apic_calendar_function *find(const char *name)
	__must_hold(&functions_lock)
{
	struct apic_calendar_function *function;

	lockdep_assert_held(&functions_lock);
	list_for_each_entry(function, &functions, node) {
		if (!strcmp(function->name, name))
			return function;
	}
	return NULL;
}

static bool is_kind(const struct apic_calendar_function *function, u32 kind)
{
	u32 has = function->flags & APIC_CALENDAR_IN_THREAD ? APIC_CALENDAR_THREAD :
							      APIC_CALENDAR_FUNCTION;

	return has == kind;
}

/**
 * __apic_calendar_register() - let calendars call a function
 * @function:	the function; its memory must stay valid until it is unregistered
 * @owner:	THIS_MODULE, which apic_calendar_register() passes
 *
 * Context: Task. Sleeps.
 * Return: 0, -EEXIST or -EINVAL, see <linux/apic_calendar.h>.
 */
int __apic_calendar_register(struct apic_calendar_function *function, struct module *owner)
{
	int ret = 0;

	if (!function || !function->name || !function->function || !function->name[0] ||
	    strlen(function->name) >= APIC_CALENDAR_NAME ||
	    function->flags & ~APIC_CALENDAR_IN_THREAD)
		return -EINVAL;
	mutex_lock(&functions_lock);
	if (find(function->name)) {
		ret = -EEXIST;
	} else {
		function->owner = owner;
		function->users = 0;
		list_add_tail(&function->node, &functions);
	}
	mutex_unlock(&functions_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(__apic_calendar_register);

/**
 * apic_calendar_unregister() - undo apic_calendar_register()
 * @function:	the function
 *
 * Context: Task. Sleeps.
 * Return: 0, -EBUSY, -ENOENT or -EINVAL, see <linux/apic_calendar.h>.
 */
int apic_calendar_unregister(struct apic_calendar_function *function)
{
	int ret = 0;

	if (!function || !function->name)
		return -EINVAL;
	mutex_lock(&functions_lock);
	if (find(function->name) != function)
		ret = -ENOENT;
	else if (function->users)
		ret = -EBUSY;
	else
		list_del(&function->node);
	mutex_unlock(&functions_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_calendar_unregister);

#ifdef CONFIG_MODULES	/* in a kernel tree there may be none */
/*
 * Unregister what a module has left behind, while its memory is still there. No calendar uses
 * these functions: it would hold the module.
 */
static int module_goes(struct notifier_block *block, unsigned long state, void *module)
{
	struct apic_calendar_function *function, *next;
	const struct module *going = module;

	if (state != MODULE_STATE_GOING)
		return NOTIFY_OK;
	mutex_lock(&functions_lock);
	list_for_each_entry_safe(function, next, &functions, node) {
		if (function->owner != going)
			continue;
		pr_warn("module %s left function %s registered: unregistered\n", going->name,
			function->name);
		list_del(&function->node);
	}
	mutex_unlock(&functions_lock);
	return NOTIFY_OK;
}

static struct notifier_block module_block = { .notifier_call = module_goes };
#endif

/**
 * calendar_functions_init() - start to unregister what modules leave behind
 *
 * Context: Task, before a function is registered. Sleeps.
 * Return: 0 or an error.
 */
int calendar_functions_init(void)
{
#ifdef CONFIG_MODULES
	return register_module_notifier(&module_block);
#else
	return 0;
#endif
}

/**
 * calendar_functions_exit() - undo calendar_functions_init()
 *
 * Context: Task. Sleeps. No function is registered any more.
 */
void calendar_functions_exit(void)
{
#ifdef CONFIG_MODULES
	unregister_module_notifier(&module_block);
#endif
}

/*
 * Check that a function's module has been loaded, and is not only being loaded. A reference does
 * not keep a module whose init function fails:
 *
 *	CPU0: insmod				CPU1
 *	  init: apic_calendar_register()
 *						  LOAD: try_module_get()
 *						  START
 *	  init: apic_calendar_unregister()
 *	    returns -EBUSY
 *	  init returns an error
 *	  the module's memory is freed
 *						  the calendar calls the function
 */
static bool is_loaded(const struct apic_calendar_function *function)
{
#ifdef CONFIG_MODULES	/* in a kernel tree there may be none */
	return !function->owner || READ_ONCE(function->owner->state) == MODULE_STATE_LIVE;
#else
	return true;
#endif
}

static bool is_usable(const struct apic_calendar_function *function, u32 kind)
{
	return is_kind(function, kind) && is_loaded(function);
}

/**
 * calendar_function_known() - check whether a function is registered, and its module loaded
 * @name:	its name
 * @kind:	APIC_CALENDAR_FUNCTION or APIC_CALENDAR_THREAD
 *
 * Context: Task. Sleeps.
 * Return: true if calendars can use it.
 */
bool calendar_function_known(const char *name, u32 kind)
{
	const struct apic_calendar_function *function;
	bool known;

	mutex_lock(&functions_lock);
	function = find(name);
	known = function && is_usable(function, kind);
	mutex_unlock(&functions_lock);
	return known;
}

/**
 * calendar_function_get() - get a function, with a reference
 * @name:	its name
 * @kind:	APIC_CALENDAR_FUNCTION or APIC_CALENDAR_THREAD
 *
 * Context: Task. Sleeps.
 * Return: the function, to be released by calendar_function_put(), or NULL.
 */
struct apic_calendar_function *calendar_function_get(const char *name, u32 kind)
{
	struct apic_calendar_function *function;

	mutex_lock(&functions_lock);
	function = find(name);
	if (function && is_usable(function, kind) && try_module_get(function->owner))
		function->users++;
	else
		function = NULL;
	mutex_unlock(&functions_lock);
	return function;
}

/**
 * calendar_function_put() - release a function
 * @function:	the function, or NULL
 *
 * Context: Task. Sleeps.
 */
void calendar_function_put(struct apic_calendar_function *function)
{
	struct module *owner;

	if (!function)
		return;
	mutex_lock(&functions_lock);
	owner = function->owner;
	function->users--;
	mutex_unlock(&functions_lock);
	module_put(owner);
}

static int run(void *data)
{
	struct calendar_unit *unit = data;
	struct apic_calendar_wait wait = { };
	int ret;

	while (!kthread_should_stop()) {
		ret = calendar_unit_wait(unit, &wait);
		if (ret)
			continue;	/* stopped: wait for the next start */
		wait.began = calendar_finish(wait.start);
		unit->function->function(wait.began, unit->function->data);
	}
	return 0;
}

/**
 * calendar_thread_start() - start the thread of a unit
 * @unit:	the unit, whose function the thread calls
 *
 * Context: Task. Sleeps.
 * Return: 0 or an error.
 */
int calendar_thread_start(struct calendar_unit *unit)
{
	struct task_struct *thread;
	int ret;

	thread = kthread_create(run, unit, "apic_cal/%u:%.8s", unit->cpu->cpu, unit->def.name);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, unit->cpu->cpu);
	unit->priority = calendar_priority();
	ret = calendar_set_fifo(thread, unit->priority);
	if (ret) {
		kthread_stop(thread);
		return ret;
	}
	unit->thread = get_task_struct(thread);
	unit->task = thread;
	wake_up_process(thread);
	return 0;
}
