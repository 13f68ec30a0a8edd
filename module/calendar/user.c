// SPDX-License-Identifier: GPL-2.0
/*
 * Threads as units: they bind themselves, wait for their windows, and are stopped.
 *
 * A thread that exceeds its budget is stopped by task work before it returns to user space,
 * where it holds no lock of the kernel. It sleeps in the task work until its next window, and
 * continues where it was. The task work holds the calendar and this module.
 *
 * Others may wait for the rest of the thread's task work: the reader of a pipe that it has closed,
 * io_uring for a ring that is closed. Our work lets it pass, and interrupts a park for it:
 *
 *	task_work_run()
 *	  break_off()			the thread is PARKED, and sleeps
 *					other work arrives and wakes it
 *	    calendar_demote()
 *	    task_work_add()		our work again
 *	  other work
 *	  break_off()
 *	    calendar_restore()		sleeps again
 *	to user space
 *
 * task_work_run() takes the whole queue, runs it with the newest work first, and ends when nothing
 * was added meanwhile (kernel/task_work.c, 6.1 to 7.2). So we can't miss work, and can't go on
 * alone.
 */
#include <linux/apic_struct.h>
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/time64.h>

#include <trace/events/apic_calendar.h>

#include "calendar.h"

/* Sizes of the structures' first versions. */
#define BIND_SIZE_VER0	8
#define WAIT_SIZE_VER0	72

/* Maximum plausible time of a return to user space. */
#define BACK_MAX_NS	(20 * NSEC_PER_USEC)

static_assert(sizeof(struct apic_calendar_bind) == BIND_SIZE_VER0);
static_assert(sizeof(struct apic_calendar_wait) == WAIT_SIZE_VER0);
static_assert(offsetof(struct apic_calendar_wait, returned) == 16);
static_assert(offsetof(struct apic_calendar_wait, missed) == 56);

/*
 * A signal ends a park, other task work only interrupts it. In a call, task work must run at once,
 * too, and the call is restarted.
 */
static int interrupted(bool call)
{
	if (call)
		return signal_pending(current) ? -ERESTARTSYS : 0;
	/* Whoever adds work sets this after it. schedule() would not sleep. */
	clear_notify_signal();
	if (task_sigpending(current))
		return -ERESTARTSYS;
	return task_work_pending(current) ? -EINPROGRESS : 0;
}

/*
 * Sleep until a window begins. A stop of the calendar is reported once, by a call, not a park.
 * After -EINPROGRESS, the caller must queue the unit's work again.
 */
static int unit_sleep(struct calendar_unit *unit, bool call)
{
	struct calendar *calendar = unit->calendar;
	unsigned long flags;
	int ret = 1;
	u64 now;

	do {
		set_current_state(TASK_INTERRUPTIBLE);
		raw_spin_lock_irqsave(&unit->cpu->lock, flags);
		if (unit->task != current) {
			ret = -ESRCH;
		} else if (unit->state == CALENDAR_GO || unit->state == CALENDAR_GO_ON) {
			now = apic_timer_now();
			calendar_event(unit, CALENDAR_RESUME);
			unit->receipt.resumed = now;
			if (unit->resuming && now > unit->armed)
				apic_timer_estimate_add(&unit->wake, now - unit->armed);
			unit->resuming = false;
			ret = 0;
		} else if (READ_ONCE(calendar->stops) != unit->stops) {
			if (call)
				unit->stops = READ_ONCE(calendar->stops);
			ret = READ_ONCE(calendar->error);
		} else if ((current->flags & PF_KTHREAD) && kthread_should_stop()) {
			ret = -EINTR;
		} else {
			ret = interrupted(call) ?: 1;
		}
		if (ret == -EINPROGRESS)
			unit->queued = true;
		else if (ret < 0 && unit->task == current)
			calendar_event(unit, CALENDAR_LEAVE);
		raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
		if (ret > 0)
			schedule();
	} while (ret > 0);
	__set_current_state(TASK_RUNNING);
	return ret;
}

/* End the window of a thread that has called. Return the unit's previous state. */
static int window_over(struct calendar_unit *unit, const struct apic_calendar_wait *wait)
{
	u64 limit = apic_timer_ns_to_tsc(BACK_MAX_NS), left = unit->returned_from;
	struct calendar_cpu *cpu = unit->cpu;
	unsigned long flags;
	int was;

	raw_spin_lock_irqsave(&cpu->lock, flags);
	was = unit->state;
	if (unit->task != current) {
		raw_spin_unlock_irqrestore(&cpu->lock, flags);
		return -ESRCH;
	}
	/* The user may report anything: ignore impossible values. */
	if (left && wait->returned > left && wait->returned - left < limit)
		apic_timer_estimate_add(&unit->back, wait->returned - left);
	unit->returned_from = 0;
	/* A window in which the thread continued after a park has no first instruction. */
	unit->receipt.began = wait->began >= unit->receipt.start ? wait->began : 0;
	if (calendar_event(unit, CALENDAR_CALL) >= 0 && was == CALENDAR_RUNS) {
		calendar_window_ends(unit, APIC_CALENDAR_RAN, apic_timer_now());
		del_apic_timer(&cpu->timeout);
		calendar_cpu_free(cpu);
	}
	calendar_over_no_more(unit);
	raw_spin_unlock_irqrestore(&cpu->lock, flags);
	return was;
}

/**
 * calendar_unit_wait() - wait for the next window
 * @unit:	a unit whose thread is the current one
 * @wait:	the user's structure, read and filled in
 *
 * Context: Task. Sleeps.
 * Return: 0 shortly before the window or in it, or an error.
 */
int calendar_unit_wait(struct calendar_unit *unit, struct apic_calendar_wait *wait)
{
	unsigned long flags;
	int was, ret;

	was = window_over(unit, wait);
	if (was < 0)
		return was;
	/* In this order: see keep(). */
	if (was == CALENDAR_OVER || smp_load_acquire(&unit->lent) ||
	    READ_ONCE(unit->demoted))
		calendar_restore(unit);
	ret = unit_sleep(unit, true);
	if (ret) {
		/* A signal's handler is no part of a window. Other task work is short. */
		if (ret == -ERESTARTSYS && task_sigpending(current))
			calendar_demote(unit);
		return ret;
	}

	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	wait->start = unit->receipt.start;
	wait->timeout = unit->timeout;
	wait->cycle = unit->receipt.cycle;
	wait->table = unit->receipt.table;
	wait->lead = unit->lead;
	wait->missed = unit->missed;
	wait->status = unit->status;
	if (unit->reported != APIC_CALENDAR_NONE && unit->reported != wait->table)
		wait->status |= APIC_CALENDAR_SWITCHED;
	unit->reported = wait->table;
	unit->missed = 0;
	unit->status = 0;
	unit->returned_from = unit->receipt.resumed;
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	return 0;
}

static struct calendar_unit *unit_of(struct calendar *calendar, u32 number)
{
	struct calendar_unit *unit;

	if (!smp_load_acquire(&calendar->n_tables)) /* calendar_load() */
		return ERR_PTR(-ENOENT);
	unit = calendar_unit_of(calendar, number);
	if (!unit || unit->def.kind != APIC_CALENDAR_USER)
		return ERR_PTR(-EINVAL);
	return unit;
}

/**
 * calendar_wait() - APIC_CALENDAR_WAIT
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_wait
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_calendar_wait.
 */
long calendar_wait(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_wait a;
	struct calendar_unit *unit;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), WAIT_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	if (a.flags & ~APIC_CALENDAR_KERNEL_FINISH)
		return -EINVAL;
	unit = unit_of(calendar, a.unit);
	if (IS_ERR(unit))
		return PTR_ERR(unit);
	a.reserved = 0;
	ret = calendar_unit_wait(unit, &a);
	if (ret)
		return ret;
	ret = apic_struct_out(argument, usize, &a, sizeof(a));
	if (!ret && a.flags & APIC_CALENDAR_KERNEL_FINISH) {
		unit->returned_from = 0;
		calendar_finish(a.start);
	}
	return ret;
}

/* Return false if other task work must run before the thread sleeps on. */
static bool park(struct calendar_unit *unit)
{
	int ret;

	calendar_restore(unit);
	ret = unit_sleep(unit, false);
	if (!ret)
		calendar_finish(unit->receipt.start);
	/*
	 * After a signal, or a stop of the calendar: nothing would stop it until it calls. Other
	 * work must not delay a window.
	 */
	else if (ret != -ESRCH)
		calendar_demote(unit);
	return ret != -EINPROGRESS;
}

/*
 * Check whether the unit is still this thread's, and the thread does not exit: no signal would
 * end a park then. do_exit() may run task work, for a tracer or for io_uring, before it sets
 * PF_EXITING.
 */
static bool is_ours(const struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	return unit->task == current && !(current->flags & (PF_EXITING | PF_POSTCOREDUMP));
}

/* Work that was queued before this one, or since task_work_run() took the queue. */
static bool has_other_work(const struct callback_head *head)
{
	return head->next || task_work_pending(current);
}

static void begin_park(struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	calendar_event(unit, CALENDAR_STOP);
	unit->status |= APIC_CALENDAR_BROKE;
	trace_apic_calendar_park(unit->number, unit->receipt.cycle,
				 apic_timer_now() - unit->timeout);
}

/* Return false if the work must be queued again, behind the rest of the thread's task work. */
static bool stop(struct calendar_unit *unit, struct callback_head *head)
{
	bool over, parked, parks, passes;
	unsigned long flags;

	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	over = is_ours(unit) && unit->state == CALENDAR_OVER;
	/* It has interrupted its park, and a window may have begun meanwhile. */
	parked = is_ours(unit) &&
		 (unit->state == CALENDAR_PARKED || unit->state == CALENDAR_GO_ON);
	parks = parked || (over && unit->def.on_overrun == APIC_CALENDAR_PARK);
	passes = parks && has_other_work(head);
	unit->queued = passes;
	if (parks && !passes) {
		/* Learn nothing from a window that began while it ran other work. */
		unit->resuming = false;
		if (over)
			begin_park(unit);
	}
	/* The overrun is handled in time, even if the thread continues to run. */
	if (over && !passes)
		calendar_over_no_more(unit);
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	if (parks)
		return !passes && park(unit);
	if (over && unit->def.on_overrun == APIC_CALENDAR_SIGNAL) {
		send_sig(unit->def.signal, current, 1);
	} else if (over && unit->def.on_overrun == APIC_CALENDAR_KILL) {
		/* The thread may take long to exit, and other units have windows meanwhile. */
		calendar_demote(unit);
		send_sig(SIGKILL, current, 1);
	}
	return true;
}

static void never_last(struct kref *kref)
{
}

/* Runs in the thread that has overrun, before it returns to user space. */
static void break_off(struct callback_head *head)
{
	struct calendar_unit *unit = container_of(head, struct calendar_unit, work);
	struct calendar *calendar = unit->calendar;

	/* This thread does not exit, so the work is accepted. It keeps its references. */
	if (!stop(unit, head) && !task_work_add(current, head, TWA_RESUME))
		return;
	calendar_put(calendar);
	/* main.c waits until this thread has left this function. */
	module_put(THIS_MODULE);
}

/**
 * calendar_unit_break() - stop a unit's thread before it returns to user space
 * @unit:	the unit
 *
 * Context: Hard interrupt, under the CPU's lock.
 */
void calendar_unit_break(struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	lockdep_assert_held(&unit->cpu->lock);
	if (unit->queued)
		return;
	init_task_work(&unit->work, break_off);
	/* The open file, which exists as long as the timers do, holds both. */
	kref_get(&unit->calendar->kref);
	__module_get(THIS_MODULE);
	unit->queued = true;
	if (task_work_add(unit->task, &unit->work, TWA_RESUME)) {
		/* The thread exits. These are not the last references. */
		unit->queued = false;
		kref_put(&unit->calendar->kref, never_last);
		module_put(THIS_MODULE);
	}
}

static int bind(struct calendar_unit *unit)
	__must_hold(&unit->calendar->loading)
{
	unsigned long flags;
	int ret;

	/* A thread can have only one unit: it runs on one CPU, at one priority. */
	if (calendar_outside_has(current))
		return -EBUSY;
	if (!calendar_unit_is_free(unit))
		return -EBUSY;
	if (current->policy == SCHED_DEADLINE)
		return -EINVAL;
	/* The thread that had the unit is gone. */
	calendar_unit_release(unit);
	cpumask_copy(&unit->allowed, &current->cpus_mask);
	unit->had = (struct sched_attr) {
		.size = sizeof(unit->had), .sched_policy = current->policy,
		.sched_flags = current->sched_reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0,
		.sched_priority = current->rt_priority, .sched_nice = task_nice(current),
	};
	/* The parameter may change: this value is restored later, and recognised then. */
	unit->priority = calendar_priority();
	/* In this order: another thread may keep the unit's CPU from this one. */
	ret = calendar_set_fifo(current, unit->priority);
	if (ret)
		return ret;
	ret = set_cpus_allowed_ptr(current, cpumask_of(unit->cpu->cpu));
	if (ret) {
		sched_setattr_nocheck(current, &unit->had);
		return ret;
	}
	WRITE_ONCE(unit->moored, true);
	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	unit->skip = false;
	unit->status = 0;
	unit->missed = 0;
	unit->reported = APIC_CALENDAR_NONE;
	unit->returned_from = 0;
	unit->stops = READ_ONCE(unit->calendar->stops);
	unit->task = get_task_struct(current);
	calendar_learn_init(unit);
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	return 0;
}

/**
 * calendar_bind() - APIC_CALENDAR_BIND
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_bind
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_calendar_bind.
 */
long calendar_bind(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_bind a;
	struct calendar_unit *unit;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), BIND_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	/* In the initial user namespace. */
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	unit = unit_of(calendar, a.unit);
	if (IS_ERR(unit))
		return PTR_ERR(unit);
	if (mutex_lock_interruptible(&calendar->loading))
		return -ERESTARTSYS;
	/* cpu_goes() finds the thread, or the CPU is offline before bind() begins. */
	cpus_read_lock();
	ret = bind(unit);
	cpus_read_unlock();
	mutex_unlock(&calendar->loading);
	return ret;
}

/**
 * calendar_unbind() - APIC_CALENDAR_UNBIND
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_bind
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_calendar_bind.
 */
long calendar_unbind(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_bind a;
	struct calendar_unit *unit;
	struct task_struct *task;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), BIND_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	unit = unit_of(calendar, a.unit);
	if (IS_ERR(unit))
		return PTR_ERR(unit);
	if (mutex_lock_interruptible(&calendar->loading))
		return -ERESTARTSYS;
	task = calendar_unit_unbind(unit);
	mutex_unlock(&calendar->loading);
	if (!task)
		return -ESRCH;
	/* As soon as this thread has no priority any more, it may lose the CPU for any time. */
	calendar_unit_give_back(unit, task);
	return 0;
}
