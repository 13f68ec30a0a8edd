// SPDX-License-Identifier: GPL-2.0
/*
 * Change to another table, or stop the calendar, at a boundary that all CPUs share.
 *
 *	CPU0: calendar_change_to()            CPU1
 *	  change.table, change_base             window of a cycle before change.at
 *	  release change.at  ---------------->  acquire change.at
 *	  next cycle starts at change.at:       next cycle starts at change.at:
 *	    new table, unchanged 2 -> 1           new table, unchanged 1 -> 0
 *	                                          calendar_changed()
 *
 * The boundary is two major cycles ahead, and no CPU looks further ahead than one cycle, so
 * each CPU sees the change before it reaches the boundary. On a CPU that has no windows in the
 * old table, no handler reaches the boundary. The keeper gives such CPUs their first window of
 * the new table soon after change.at is set, one CPU at a time. Only then is the change complete.
 */
#include <linux/math64.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include <trace/events/apic_calendar.h>

#include "calendar.h"

static u64 major_of(const struct calendar_table *table)
{
	return calendar_cycle_start(table, 0, 1);
}

/* Begin a change on a CPU that has no windows before it. Return true if the change is complete. */
static bool begin(struct calendar_cpu *cpu, const struct calendar_change *change)
	__must_hold(&cpu->lock)
{
	bool complete = calendar_cpu_changed(cpu, change->at);

	calendar_position_begin(&cpu->position, change->table, cpu->slot, change->at);
	/* If the CPU is going offline, arm this one: dispatched() notices the wrong CPU. */
	if (calendar_cpu_arm(cpu, false) && calendar_cpu_arm(cpu, true))
		cpu->on = false;
	return complete;
}

/* Begin a change if the CPU has no windows before it and has not made the change yet. */
static bool begin_if_idle(struct calendar_cpu *cpu, u64 at)
	__must_hold(&cpu->calendar->lock)
{
	struct calendar *calendar = cpu->calendar;
	bool complete = false;

	/* The calendar may have been stopped, and even started again, since: start(). */
	if (!calendar->running || calendar->change.at != at)
		return false;
	raw_spin_lock(&cpu->lock);
	if (calendar_change_at(cpu) == at && !cpu->position.table)
		complete = begin(cpu, &calendar->change);
	raw_spin_unlock(&cpu->lock);
	return complete;
}

/**
 * calendar_change_begin() - begin a change on CPUs that have nothing to do before it
 * @calendar:	the calendar
 *
 * Turns interrupts off for one CPU at a time.
 *
 * Context: Task.
 */
void calendar_change_begin(struct calendar *calendar)
{
	u64 at = READ_ONCE(calendar->change.at);
	bool complete = false;
	unsigned long flags;
	u32 i;

	/* If no CPU was idle, the change may be complete by now. */
	if (at == CALENDAR_NEVER)
		return;
	for (i = 0; i < calendar->n_cpus; i++) {
		raw_spin_lock_irqsave(&calendar->lock, flags);
		complete |= begin_if_idle(&calendar->cpus[i], at);
		raw_spin_unlock_irqrestore(&calendar->lock, flags);
	}
	if (complete)
		calendar_changed(calendar, at);
}

static void announce(struct calendar *calendar, const struct calendar_table *table, u64 at,
		     u64 cycles)
	__must_hold(&calendar->lock)
{
	lockdep_assert_held(&calendar->lock);
	atomic_set(&calendar->unchanged, calendar->n_cpus);
	calendar->change.table = table;
	calendar->change_base = calendar->base + cycles;
	smp_store_release(&calendar->change.at, at); /* calendar_change_at() */
}

/* Have the keeper begin the change: a handler must not visit all CPUs itself. */
static void wake_keeper(struct calendar *calendar)
{
	smp_store_release(&calendar->begin, true); /* keeper(): sees change.at */
	wake_up_process(calendar->keeper);
}

/* Begin a change; the errors are those of calendar_change_to(). */
static int change_to(struct calendar *calendar, const struct calendar_table *table,
		     u64 not_before, u64 *at)
	__must_hold(&calendar->lock)
{
	u64 earliest, boundary, cycles;

	lockdep_assert_held(&calendar->lock);
	if (!calendar->running)
		return -ESRCH;
	if (calendar->starting || calendar->change.at != CALENDAR_NEVER)
		return -EBUSY;
	earliest = max(apic_timer_now(), calendar->origin) + 2 * major_of(calendar->table);
	boundary = calendar_boundary(calendar->table, calendar->origin,
				     max(earliest, not_before), &cycles);
	if (boundary == CALENDAR_NEVER)
		return -EINVAL;
	*at = boundary;
	trace_apic_calendar_change(calendar->table->number,
				   table ? table->number : APIC_CALENDAR_NONE, boundary);
	announce(calendar, table, boundary, cycles);
	return 0;
}

/**
 * calendar_change_to() - change to another table, or stop
 * @calendar:	the calendar
 * @table:	the table; NULL: stop
 * @not_before:	earliest TSC of the boundary
 * @at:		set to the boundary, TSC
 *
 * Context: Task.
 * Return: 0; -ESRCH: the calendar does not run; -EBUSY: its start, or another change, is in
 * progress; -EINVAL: the boundary is too far ahead.
 */
int calendar_change_to(struct calendar *calendar, const struct calendar_table *table,
		       u64 not_before, u64 *at)
{
	unsigned long flags;
	int ret;

	/* Threads of the calendar do not hold a task up in here until after the boundary. */
	preempt_disable();
	raw_spin_lock_irqsave(&calendar->lock, flags);
	ret = change_to(calendar, table, not_before, at);
	raw_spin_unlock_irqrestore(&calendar->lock, flags);
	if (!ret)
		calendar_change_begin(calendar);
	preempt_enable();
	return ret;
}

/**
 * calendar_count_overrun() - count an overrun; after too many, change to the degraded table
 * @calendar:	the calendar
 * @number:	number of the table that the window was of
 *
 * The change to a table completes while the last windows before it are still open. If they
 * counted for the new table, it might degrade to the old one at once:
 *
 *	CPU0					CPU1: the last to plan past the boundary
 *	  dispatched(): last window
 *						  dispatched(): last window
 *						    calendar_changed()
 *						      table = the new one, overruns = 0
 *	  timed_out(): that window
 *						  timed_out(): that window
 *
 * Context: Handler of a timer, without the lock of any CPU.
 */
void calendar_count_overrun(struct calendar *calendar, u32 number)
{
	const struct calendar_table *table;
	unsigned long flags;
	int ret = -ESRCH;
	u64 at;

	raw_spin_lock_irqsave(&calendar->lock, flags);
	table = calendar->table;
	/* If another change is in progress, the next overrun tries again. */
	if (table && table->number == number && table->max_overruns &&
	    ++calendar->overruns >= table->max_overruns)
		ret = change_to(calendar, calendar->tables[table->degraded], 0, &at);
	raw_spin_unlock_irqrestore(&calendar->lock, flags);
	if (!ret)
		wake_keeper(calendar);
}

/**
 * calendar_changed() - complete a change that has been made on all CPUs
 * @calendar:	the calendar
 * @at:		the boundary
 *
 * Context: Any but NMI, without the lock of any CPU.
 */
void calendar_changed(struct calendar *calendar, u64 at)
{
	bool stop = false;
	unsigned long flags;

	raw_spin_lock_irqsave(&calendar->lock, flags);
	if (calendar->running && calendar->change.at == at) {
		stop = !calendar->change.table;
		if (!stop) {
			calendar->table = calendar->change.table;
			calendar->origin = calendar->change.at;
			calendar->base = calendar->change_base;
			calendar->overruns = 0;
			WRITE_ONCE(calendar->change.at, CALENDAR_NEVER);
		}
	}
	raw_spin_unlock_irqrestore(&calendar->lock, flags);
	if (stop)
		calendar_stop_by_handler(calendar, -ECANCELED);
}
