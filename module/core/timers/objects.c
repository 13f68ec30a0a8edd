// SPDX-License-Identifier: GPL-2.0
/*
 * Report timers to the kernel's debugobjects.
 */
#include <linux/debugobjects.h>
#include <linux/sched/task_stack.h>

#include "timers/objects.h"
#include "timers/state.h"

/* Deletes a timer: see apic_timer_objects_setup() */
static int (*delete)(struct apic_timer_list *timer);

static const struct debug_obj_descr description;

static void *hint(void *address)
{
	return ((struct apic_timer_list *)address)->function;
}

/* Check for a timer that was never passed to init_apic_timer(): one of DEFINE_APIC_TIMER(). */
static bool is_static(void *address)
{
	return apic_timer_state_known(address);
}

/*
 * A pending timer is being initialised or freed: delete it.
 *
 * If its memory has been overwritten, it is no longer recognised as a timer, and stays
 * in its queue. It must not stay active, or this function is called again forever.
 */
static bool remove_pending(void *address, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	if (delete(address) != 1)
		debug_object_deactivate(address, &description);
	return true;
}

static bool reinitialised(void *address, enum debug_obj_state state)
{
	bool removed = remove_pending(address, state);

	if (removed)
		apic_timer_objects_init(address);
	return removed;
}

static const struct debug_obj_descr description = {
	.name = "apic_timer",
	.debug_hint = hint,
	.is_static_object = is_static,
	.fixup_init = reinitialised,
	.fixup_free = remove_pending,
};

/**
 * apic_timer_objects_setup() - get ready
 * @del:	del_apic_timer(), which this file must not refer to
 */
void apic_timer_objects_setup(int (*del)(struct apic_timer_list *timer))
{
	delete = del;
}

/**
 * apic_timer_objects_init() - a timer is being initialised
 * @timer:	the timer, as it was before
 *
 * Context: Any but NMI, as init_apic_timer(): takes a lock of the kernel.
 */
void apic_timer_objects_init(struct apic_timer_list *timer)
{
	if (object_is_on_stack(timer))
		debug_object_init_on_stack(timer, &description);
	else
		debug_object_init(timer, &description);
}

/**
 * apic_timer_objects_activate() - a timer becomes pending
 * @timer:	the timer
 *
 * Context: The lock of its base is held.
 */
void apic_timer_objects_activate(struct apic_timer_list *timer)
{
	debug_object_activate(timer, &description);
}

/**
 * apic_timer_objects_deactivate() - a timer is not pending any more
 * @timer:	the timer
 *
 * Context: The lock of its base is held.
 */
void apic_timer_objects_deactivate(struct apic_timer_list *timer)
{
	debug_object_deactivate(timer, &description);
}
