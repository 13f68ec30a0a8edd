// SPDX-License-Identifier: GPL-2.0
/*
 * End the binding of a thread, and restore its priority and CPUs.
 */
#include <linux/cpumask.h>
#include <linux/lockdep.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "calendar.h"

static bool gone(const struct task_struct *task)
{
	return !task || task->flags & PF_EXITING;
}

/*
 * Check whether to restore a thread's CPUs: it has its unit's only, or that one is going offline.
 * Some time before cpu_goes() is called, the scheduler lets the thread run on all CPUs.
 */
static bool is_moored(const struct calendar_unit *unit, const struct task_struct *task)
{
	unsigned int cpu = unit->cpu->cpu;

	/*
	 * In this order: the scheduler may do so meanwhile, once the CPU is no longer active. Not
	 * cpus_ptr: a thread may be kept on its CPU for a moment.
	 */
	return cpumask_equal(&task->cpus_mask, cpumask_of(cpu)) ||
	       (READ_ONCE(unit->moored) && !cpu_active(cpu));
}

static struct task_struct *unbind(struct calendar_unit *unit, struct task_struct *only)
{
	struct task_struct *task;
	unsigned long flags;

	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	task = unit->task;
	if (task && (!only || task == only)) {
		if (unit->cpu->running == unit) {
			/* UNBIND ends a window as WAIT does. A thread may die before it runs. */
			calendar_window_ends(unit, unit->state == CALENDAR_RUNS ?
					     APIC_CALENDAR_RAN : APIC_CALENDAR_NEVER_RAN,
					     apic_timer_now());
			del_apic_timer(&unit->cpu->timeout);
			calendar_cpu_free(unit->cpu);
		}
		calendar_over_no_more(unit);
		/* It may be parked, but does not wait in a call, which would hold the file. */
		if (unit->state == CALENDAR_PARKED)
			calendar_unit_wake(unit);
		calendar_event(unit, CALENDAR_LEAVE);
		unit->task = NULL;
		unit->leaving = true;
		unit->demote = false;
	} else {
		task = NULL;
	}
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	return task;
}

/**
 * calendar_unit_unbind() - end the binding of this thread
 * @unit:	the unit
 *
 * Context: Task.
 * Return: this thread, for calendar_unit_give_back(); NULL: it is not the unit's.
 */
struct task_struct *calendar_unit_unbind(struct calendar_unit *unit)
	__must_hold(&unit->calendar->loading)
{
	lockdep_assert_held(&unit->calendar->loading);
	return unbind(unit, current);
}

/**
 * calendar_unit_give_back() - restore a thread's CPUs and priority, unless they were changed since
 * @unit:	the unit that it had
 * @task:	the thread; the unit's reference is dropped
 *
 * Without &calendar.loading: a thread that does this itself may lose the CPU meanwhile. Until the
 * end of it the unit is not free.
 *
 * Context: Task. Sleeps.
 */
void calendar_unit_give_back(struct calendar_unit *unit, struct task_struct *task)
{
	bool ended = gone(task);
	unsigned long flags;

	/*
	 * First, while it outranks others: a thread that must not be moved at the moment keeps us
	 * waiting, and so would those that keep it from its CPU.
	 */
	if (!ended && is_moored(unit, task))
		set_cpus_allowed_ptr(task, &unit->allowed);
	rt_mutex_lock(&unit->scheduling);
	if (!ended && (unit->demoted || (task->policy == SCHED_FIFO &&
					 task->rt_priority == unit->priority)))
		sched_setattr_nocheck(task, &unit->had);
	/* A policy of real time leaves the nice value as it is. */
	if (!ended && unit->demoted)
		set_user_nice(task, unit->had.sched_nice);
	/* This was about the old thread: the next one begins anew. */
	unit->demoted = false;
	WRITE_ONCE(unit->lent, false);
	rt_mutex_unlock(&unit->scheduling);
	put_task_struct(task);
	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	unit->leaving = false;
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
}

/**
 * calendar_unit_release() - release a unit's thread
 * @unit:	the unit
 *
 * Context: Task. Sleeps.
 */
void calendar_unit_release(struct calendar_unit *unit)
{
	struct task_struct *task;

	if (unit->def.kind != APIC_CALENDAR_USER)
		return;
	task = unbind(unit, NULL);
	if (task)
		calendar_unit_give_back(unit, task);
}

/**
 * calendar_unit_is_free() - check that no thread of a unit can still run
 * @unit:	the unit
 *
 * Context: Any.
 * Return: true if that is so, and no break_off() is queued, and the last thread has what it had.
 */
bool calendar_unit_is_free(struct calendar_unit *unit)
{
	unsigned long flags;
	bool free;

	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	free = gone(unit->task) && !unit->queued && !unit->leaving;
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	return free;
}
