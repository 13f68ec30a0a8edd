/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Register functions of kernel modules as units of calendars, see
 * <uapi/linux/apic_calendar.h>.
 *
 *	static struct apic_calendar_function pulse = {
 *		.name = "pulse", .function = toggle,
 *	};
 *
 *	ret = apic_calendar_register(&pulse);
 *
 * A table whose unit names "pulse" then calls toggle() at the start of each window.
 */
#ifndef _LINUX_APIC_CALENDAR_H
#define _LINUX_APIC_CALENDAR_H

#include <linux/apic_timer.h>	/* for the number of the interface */
#include <linux/list.h>
#include <linux/types.h>

struct module;

/* &struct apic_calendar_function.flags */
/* Call the function in a kernel thread instead: it may sleep, and starts less exactly. */
#define APIC_CALENDAR_IN_THREAD	0x0001U

/**
 * struct apic_calendar_function - a function that calendars may call
 * @name:	its name in tables, less than APIC_CALENDAR_NAME bytes
 * @function:	called at the start of each window. @now is the last TSC value read
 *		before the call, as for a timer's handler; @data as below. Called in
 *		hard interrupt context on the unit's CPU, with interrupts off, under
 *		the rules for handlers in <linux/apic_timer.h>, unless @flags say
 *		otherwise. A function that uses up its budget is counted, not
 *		stopped. Functions that together keep a CPU busy for the parameter
 *		busy_us of apic_timer are throttled, as any handlers are: windows are
 *		late or missed then.
 * @data:	passed to @function
 * @flags:	APIC_CALENDAR_IN_THREAD
 */
struct apic_calendar_function {
	const char *name;
	void (*function)(unsigned long long now, unsigned long data);
	unsigned long data;
	unsigned int flags;

	/* private: */
	struct module *owner;
	struct list_head node;
	unsigned int users;
};

/*
 * Register and unregister; task context. The module that registers a function owns it, and stays
 * loaded as long as a calendar uses it. Calendars can use it once the module's init function has
 * returned 0. Unregister in the module's exit function at the latest, and in an init function that
 * fails. What is registered after that is unregistered, and the kernel log names the module and the
 * function. That is a safety net, not an interface. Return:
 *   0		done
 *   -EEXIST	the name is taken, or the function is registered already
 *   -EBUSY	unregister: a calendar uses the function; cannot happen in the module's init and
 *		exit functions
 *   -ENOENT	unregister: the function is not registered
 *   -EINVAL	no name, a name that is too long, no function, or unknown flags
 */
#define apic_calendar_register(function)	__apic_calendar_register(function, THIS_MODULE)

int __apic_calendar_register(struct apic_calendar_function *function, struct module *owner);
int apic_calendar_unregister(struct apic_calendar_function *function);

#endif /* _LINUX_APIC_CALENDAR_H */
