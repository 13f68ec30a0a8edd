// SPDX-License-Identifier: GPL-2.0
/*
 * The backstop: units that don't stop, because they are in a system call.
 *
 * Task work stops a thread on its way to user space. A thread that stays in the kernel for a
 * long time keeps the CPU from the units after it. Some time after its window is over, it
 * therefore loses its priority until it stops, unless it is to be signalled or to go on. A kernel
 * thread, the keeper, takes the priority away, because an interrupt must not.
 *
 * When the calendar stops, threads in their windows lose their priority in the same way.
 *
 * A thread may lose the CPU right when it gives up its priority, under &calendar_unit.scheduling,
 * and any other thread of its CPU then keeps it from the unlock:
 *
 *	CPU0: the thread				CPU1: the keeper
 *	  calendar_demote()
 *	    rt_mutex_lock()
 *	    set_normal(): preempted			  keep(), for the same unit
 *							    rt_mutex_lock(): lends its priority
 *	    rt_mutex_unlock()
 *							    takes the lock
 *
 * The lock is therefore an rt_mutex, and each unit has its own: threads of other units, and the
 * keeper when it turns to them, do not wait for a CPU that is not theirs. Tasks whose priority may
 * be lower than that of any other thread do not wait for it at all: START needs no such lock, and
 * whoever closes the file, or takes a CPU offline, leaves it to the keeper to release the threads.
 *
 * The keeper also begins changes that a handler has announced, and stops the calendar when a
 * handler asks for it. It outranks all units. On a kernel that does not preempt itself, a unit's
 * system call may still keep its CPU from the keeper if there is no other CPU for it.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/time64.h>

#include "calendar.h"

/* Time after which the keeper tries again to take a priority away that was refused. */
#define LENT_MS		10

static unsigned int backstop_us = 50;

static int set_backstop(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, USEC_PER_SEC);
}

static const struct kernel_param_ops backstop_ops = {
	.set = set_backstop, .get = param_get_uint,
};

module_param_cb(backstop_us, &backstop_ops, &backstop_us, 0644);
MODULE_PARM_DESC(backstop_us, "time after the end of a window at which its thread, if it has not stopped, is counted as late and, with park or kill, loses its priority, in us (1 to 1000000)");

/**
 * calendar_backstop() - get parameter backstop_us
 *
 * Context: Any.
 * Return: TSC cycles.
 */
u64 calendar_backstop(void)
{
	return apic_timer_us_to_tsc(READ_ONCE(backstop_us));
}

/*
 * Take the priority of a unit's thread away. Fails with -EBUSY while a thread of SCHED_DEADLINE
 * lends its priority to this one by priority inheritance; sched_set_normal() would warn then.
 * This thread then keeps its own priority, too, until the keeper tries again: nothing reports the
 * end of the loan.
 */
static void set_normal(struct calendar_unit *unit, struct task_struct *task, int nice)
{
	struct sched_attr attr = {
		.size = sizeof(attr), .sched_policy = SCHED_NORMAL, .sched_nice = nice,
	};
	int ret;

	lockdep_assert_held(&unit->scheduling);
	ret = sched_setattr_nocheck(task, &attr);
	if (!ret)
		WRITE_ONCE(unit->demoted, true);
	smp_store_release(&unit->lent, ret == -EBUSY); /* calendar_unit_wait() */
}

static void keep(struct calendar_unit *unit)
{
	struct task_struct *task = NULL;
	unsigned long flags;
	bool overran, kill;

	/* A thread that stops meanwhile waits for us, and restores its priority. */
	rt_mutex_lock(&unit->scheduling);
	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	/*
	 * A thread whose park has ended without a window is OUT. One that calendar_demote() left
	 * its priority may still run what has interrupted its park.
	 */
	if (unit->task && ((unit->demote && unit->state == CALENDAR_OVER) ||
			   (unit->lent && (unit->state == CALENDAR_OVER ||
					   unit->state == CALENDAR_OUT ||
					   calendar_unit_works(unit)))))
		task = get_task_struct(unit->task);
	/* Otherwise the calendar has stopped, or a signal has ended a park. */
	overran = unit->state == CALENDAR_OVER &&
		  unit->receipt.result == APIC_CALENDAR_TIMED_OUT;
	kill = unit->demote && overran && unit->def.on_overrun == APIC_CALENDAR_KILL;
	unit->demote = false;
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	if (task) {
		if (kill)
			send_sig(SIGKILL, task, 1);
		/* A call that does not find @lent any more finds @demoted, and waits for us. */
		set_normal(unit, task, overran ? MAX_NICE : 0);
		put_task_struct(task);
	} else {
		WRITE_ONCE(unit->lent, false);
	}
	rt_mutex_unlock(&unit->scheduling);
}

/* Sleep. Return: whether there are threads that have kept their priority because of a loan. */
static bool sleep(const struct calendar *calendar)
{
	bool lent = false;
	u32 i;

	for (i = 0; i < READ_ONCE(calendar->n_units) && !lent; i++)
		lent = READ_ONCE(calendar->units[i].lent);
	if (lent)
		schedule_timeout(msecs_to_jiffies(LENT_MS));
	else
		schedule();
	return lent;
}

static void release_all(struct calendar *calendar)
{
	u32 i;

	WRITE_ONCE(calendar->leave, false);
	for (i = 0; i < calendar->n_units; i++)
		calendar_unit_release(&calendar->units[i]);
	complete(&calendar->left);
}

static void cast_off(struct calendar *calendar, const struct calendar_cpu *cpu)
{
	u32 i;

	WRITE_ONCE(calendar->goes, NULL);
	for (i = 0; i < calendar->n_units; i++) {
		if (calendar->units[i].cpu == cpu)
			calendar_unit_cast_off(&calendar->units[i]);
	}
	complete(&calendar->gone);
}

static int keeper(void *data)
{
	struct calendar *calendar = data;
	const struct calendar_cpu *goes;
	bool begin, end, leave, found;
	u32 i;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		begin = READ_ONCE(calendar->begin);
		end = READ_ONCE(calendar->end);
		leave = READ_ONCE(calendar->leave);
		goes = READ_ONCE(calendar->goes);
		found = begin || end || leave || goes;
		for (i = 0; i < READ_ONCE(calendar->n_units) && !found; i++)
			found = READ_ONCE(calendar->units[i].demote);
		if (!found) {
			if (!sleep(calendar))
				continue;
			for (i = 0; i < calendar->n_units; i++)
				if (READ_ONCE(calendar->units[i].lent))
					keep(&calendar->units[i]);
			continue;
		}
		__set_current_state(TASK_RUNNING);
		if (begin) {
			smp_store_mb(calendar->begin, false);	/* later requests count anew */
			calendar_change_begin(calendar);
		} else if (end) {
			calendar_stop_by_keeper(calendar);
		} else if (leave) {
			release_all(calendar);
		} else if (goes) {
			cast_off(calendar, goes);
		} else {
			keep(&calendar->units[i - 1]);
		}
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/**
 * calendar_restore() - restore the priority of a thread that stops
 * @unit:	its unit
 *
 * Context: Task, that thread. Sleeps.
 */
void calendar_restore(struct calendar_unit *unit)
{
	rt_mutex_lock(&unit->scheduling);
	WRITE_ONCE(unit->lent, false);
	/* If this fails as set_normal() may, the next call tries again. */
	if (unit->demoted && !calendar_set_fifo(current, unit->priority)) {
		unit->demoted = false;
		/* It shows this, and would have it with another policy. */
		set_user_nice(current, unit->had.sched_nice);
	}
	rt_mutex_unlock(&unit->scheduling);
}

/**
 * calendar_demote() - take this thread's priority away until its next call
 * @unit:	its unit
 *
 * Context: Task, that thread. Sleeps.
 */
void calendar_demote(struct calendar_unit *unit)
{
	rt_mutex_lock(&unit->scheduling);
	if (READ_ONCE(unit->task) == current) {
		set_normal(unit, current, 0);
		/* It exists: it waits for us before it ends. */
		if (unit->lent)
			wake_up_process(unit->calendar->keeper);
	}
	rt_mutex_unlock(&unit->scheduling);
}

/**
 * calendar_keeper_start() - start the keeper of a calendar
 * @calendar:	the calendar
 *
 * Context: Task. Sleeps.
 * Return: 0 or an error.
 */
int calendar_keeper_start(struct calendar *calendar)
{
	struct sched_attr attr = {
		.size = sizeof(attr), .sched_policy = SCHED_FIFO,
		.sched_priority = MAX_RT_PRIO - 1,
	};
	struct task_struct *thread;
	int ret;

	thread = kthread_create(keeper, calendar, "apic_cal/keeper");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	ret = sched_setattr_nocheck(thread, &attr);
	if (ret) {
		kthread_stop(thread);
		return ret;
	}
	calendar->keeper = thread;
	wake_up_process(thread);
	return 0;
}

/**
 * calendar_keeper_stop() - undo calendar_keeper_start()
 * @calendar:	the calendar, which does not run
 *
 * Context: Task. Sleeps.
 */
void calendar_keeper_stop(struct calendar *calendar)
{
	if (calendar->keeper)
		kthread_stop(calendar->keeper);
	calendar->keeper = NULL;
}

/**
 * calendar_keeper_release() - have the keeper release the threads of all units
 * @calendar:	the calendar, which does not run
 *
 * Context: Task. Sleeps. The file has no users.
 */
void calendar_keeper_release(struct calendar *calendar)
{
	if (!calendar->keeper)
		return;
	WRITE_ONCE(calendar->leave, true);
	wake_up_process(calendar->keeper);
	wait_for_completion(&calendar->left);
}

/**
 * calendar_keeper_cast_off() - have the keeper release threads from a CPU that goes offline
 * @calendar:	the calendar, which has stopped
 * @cpu:	the CPU
 *
 * Context: Task, one at a time. Sleeps. The calendar has a table, and its file is not closed yet.
 */
void calendar_keeper_cast_off(struct calendar *calendar, struct calendar_cpu *cpu)
{
	WRITE_ONCE(calendar->goes, cpu);
	wake_up_process(calendar->keeper);
	wait_for_completion(&calendar->gone);
}
