// SPDX-License-Identifier: GPL-2.0
/*
 * Stop a calendar at once.
 *
 * Stopping all CPUs and units takes too long for a handler. Handlers leave it to the keeper:
 *
 *	handler						keeper
 *	  calendar_stop_by_handler()
 *	    end = error
 *	    wake_up_process()
 *							  calendar_stop_by_keeper()
 *							    running = false, end = 0
 *							    all CPUs and units
 *
 * Whoever stops the calendar first resets @end. START waits for the handlers of the previous
 * run, so that none of them can stop the next one.
 */
#include <linux/apic_timer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include <trace/events/apic_calendar.h>

#include "calendar.h"

/* The calendar whose windows a CPU runs. */
static DEFINE_PER_CPU(struct calendar *, owner);

static void disown_some(struct calendar *calendar, u32 n)
{
	while (n--)
		cmpxchg(per_cpu_ptr(&owner, calendar->cpus[n].cpu), calendar, NULL);
}

/**
 * calendar_own() - reserve the CPUs of a calendar for its windows
 * @calendar:	the calendar
 *
 * Stopping the calendar undoes it.
 *
 * Context: Task.
 * Return: 0; -EBUSY: another calendar has one of them.
 */
int calendar_own(struct calendar *calendar)
{
	u32 i;

	for (i = 0; i < calendar->n_cpus; i++) {
		if (cmpxchg(per_cpu_ptr(&owner, calendar->cpus[i].cpu), NULL, calendar)) {
			disown_some(calendar, i);
			return -EBUSY;
		}
	}
	return 0;
}

/**
 * calendar_disown() - undo calendar_own()
 * @calendar:	the calendar, none of whose CPUs runs it
 *
 * Context: Any.
 */
void calendar_disown(struct calendar *calendar)
{
	disown_some(calendar, calendar->n_cpus);
}

/**
 * calendar_del_timers() - delete all timers, and wait for their handlers
 * @calendar:	the calendar, which does not run
 *
 * Handlers arm the timers in this order. The keeper arms no timer of a stopped calendar.
 *
 * Context: Task. Sleeps.
 */
void calendar_del_timers(struct calendar *calendar)
{
	u32 i;

	for (i = 0; i < calendar->n_cpus; i++)
		del_apic_timer_sync(&calendar->cpus[i].dispatch);
	for (i = 0; i < calendar->n_cpus; i++) {
		del_apic_timer_sync(&calendar->cpus[i].timeout);
		del_apic_timer_sync(&calendar->cpus[i].backstop);
	}
}

static void stop_cpu(struct calendar_cpu *cpu)
{
	struct calendar_unit *unit, *next;
	unsigned long flags;

	raw_spin_lock_irqsave(&cpu->lock, flags);
	cpu->on = false;
	cpu->ending = false;
	cpu->position.table = NULL;
	unit = cpu->running;
	if (unit && unit->def.kind != APIC_CALENDAR_FUNCTION) {
		calendar_window_ends(unit, APIC_CALENDAR_STOPPED, apic_timer_now());
		/* A thread that was woken, but has not run yet, waits again: see stop_unit(). */
		calendar_event(unit, CALENDAR_TIMEOUT);
	}
	list_for_each_entry_safe(unit, next, &cpu->over, over)
		list_del_init(&unit->over);
	/* A handler that is running finds the calendar off on this CPU. */
	del_apic_timer(&cpu->dispatch);
	del_apic_timer(&cpu->timeout);
	del_apic_timer(&cpu->backstop);
	raw_spin_unlock_irqrestore(&cpu->lock, flags);
}

/*
 * Wake a thread that waits or is parked: it sees that the calendar has stopped. One that sleeps
 * elsewhere is left alone: sigtimedwait(2), for example, would fail with EINTR. One that was in
 * its window, or has used it up, loses its priority until it calls: nothing else would stop it,
 * and it could keep other units from the CPU in the next run.
 */
static void stop_unit(struct calendar_unit *unit)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	unit->skip = false;
	if (unit->state == CALENDAR_WAITING || unit->state == CALENDAR_PARKED) {
		calendar_unit_wake(unit);
	} else if (unit->state == CALENDAR_OVER && unit->def.kind == APIC_CALENDAR_USER) {
		WRITE_ONCE(unit->demote, true);
		wake_up_process(unit->calendar->keeper);
	}
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
}

/* Stop the unit of this thread, or all others. */
static void stop_units(struct calendar *calendar, bool own)
{
	u32 i;

	for (i = 0; i < calendar->n_units; i++) {
		if ((READ_ONCE(calendar->units[i].task) == current) == own)
			stop_unit(&calendar->units[i]);
	}
}

/*
 * Stop the calendar if it runs, and all units but that of this thread. With @error 0, only if a
 * handler has left a reason.
 *
 * Turns interrupts off for one CPU, or one unit, at a time. START fails with -EBUSY until the
 * first CPU, which is released last, is free. Return true if the calendar ran.
 */
static bool stop(struct calendar *calendar, int error)
{
	unsigned long flags;
	bool ran;
	u32 i;

	raw_spin_lock_irqsave(&calendar->lock, flags);
	error = error ?: calendar->end;
	ran = calendar->running && error;
	if (ran) {
		calendar->running = false;
		WRITE_ONCE(calendar->end, 0);
		calendar->error = error;
		trace_apic_calendar_stop(error);
	}
	raw_spin_unlock_irqrestore(&calendar->lock, flags);
	if (!ran)
		return false;
	for (i = 0; i < calendar->n_cpus; i++)
		stop_cpu(&calendar->cpus[i]);
	/*
	 * Not earlier: a thread that has seen this stop, and calls again, must find no CPU on.
	 *
	 *	CPU0: stop()				CPU1: a unit's thread
	 *	  stops++
	 *						  call: -ECANCELED
	 *						  call: WAITING, sleeps
	 *						dispatched(): GO
	 *						  call: 0, in a calendar that stops
	 *	  stop_cpu(1)
	 */
	WRITE_ONCE(calendar->stops, calendar->stops + 1);
	stop_units(calendar, false);
	calendar_disown(calendar);
	/* Those who are woken may start the calendar again. */
	WRITE_ONCE(calendar->urgent, true);
	calendar_wake_pollers(calendar);
	return true;
}

/**
 * calendar_stop_by_handler() - have the keeper stop a calendar
 * @calendar:	the calendar
 * @error:	reason, negative
 *
 * Context: Handler of @dispatch of one of its CPUs, without the lock of any CPU.
 */
void calendar_stop_by_handler(struct calendar *calendar, int error)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&calendar->lock, flags);
	if (calendar->running && !calendar->end)
		WRITE_ONCE(calendar->end, error);
	raw_spin_unlock_irqrestore(&calendar->lock, flags);
	wake_up_process(calendar->keeper);
}

/**
 * calendar_stop_by_keeper() - stop a calendar if a handler has asked for it
 * @calendar:	the calendar
 *
 * Other tasks that stop it do not wait for the keeper, and the keeper does not wait for them: a
 * unit that the keeper must demote may keep them from the CPU.
 *
 * Context: The keeper.
 */
void calendar_stop_by_keeper(struct calendar *calendar)
{
	stop(calendar, 0);
}

/**
 * calendar_stop_by_task() - stop a calendar at once, and wait for other tasks that stop it
 * @calendar:	the calendar
 * @error:	reason, negative
 *
 * Context: Task. Sleeps.
 * Return: true if the calendar ran.
 */
bool calendar_stop_by_task(struct calendar *calendar, int error)
{
	bool ran;

	mutex_lock(&calendar->stopping);
	ran = stop(calendar, error);
	mutex_unlock(&calendar->stopping);
	/* Last: it loses its priority, perhaps the CPU as well, and others wait for the above. */
	if (ran)
		stop_units(calendar, true);
	return ran;
}

/**
 * calendar_stop_sync() - stop a calendar at once, and wait for tasks that stop it and handlers
 * @calendar:	the calendar
 * @error:	reason, negative
 *
 * The keeper may still be stopping it.
 *
 * Context: Task. Sleeps.
 */
void calendar_stop_sync(struct calendar *calendar, int error)
{
	calendar_stop_by_task(calendar, error);
	calendar_del_timers(calendar);
}
