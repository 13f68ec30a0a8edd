// SPDX-License-Identifier: GPL-2.0
/*
 * Units: their states and receipts, the priorities and CPUs of their threads, and estimates of
 * their wake-ups.
 */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/time64.h>

#include <trace/events/apic_calendar.h>

#include "calendar.h"
#include "spin.h"

/* Initial guesses. */
#define WAKE_GUESS_NS	(10 * NSEC_PER_USEC)
#define READY_GUESS_NS	NSEC_PER_USEC
#define READY_MARGIN	50
#define BACK_GUESS	600
#define BACK_QUANTILE	9900
/*
 * The lead adds the longest wake-up's distance from the mean, shifted right by this: otherwise
 * a wake-up longer than any before would be late.
 */
#define MARGIN_SHIFT	1
/* The last part of a wait in the kernel, with interrupts off. */
#define CLOSE_NS	(2 * NSEC_PER_USEC)

static unsigned int lead_max_ns = 20000;

static int set_lead(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1000, 100000);
}

static const struct kernel_param_ops lead_ops = {
	.set = set_lead, .get = param_get_uint,
};

module_param_cb(lead_max_ns, &lead_ops, &lead_max_ns, 0644);
MODULE_PARM_DESC(lead_max_ns, "maximum time by which a thread is woken before its window, in ns (1000 to 100000)");

static unsigned int priority = 98;

static int set_priority(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, MAX_RT_PRIO - 2);
}

static const struct kernel_param_ops priority_ops = {
	.set = set_priority, .get = param_get_uint,
};

module_param_cb(priority, &priority_ops, &priority, 0644);
MODULE_PARM_DESC(priority, "SCHED_FIFO priority of units' threads (1 to 98; applies to threads that bind later)");

/**
 * calendar_priority() - return parameter priority
 *
 * Context: Any.
 * Return: a priority of SCHED_FIFO.
 */
unsigned int calendar_priority(void)
{
	return READ_ONCE(priority);
}

/**
 * calendar_set_fifo() - give a thread a priority for units
 * @task:	the thread
 * @level:	the priority
 *
 * Threads and processes that it starts do not inherit the priority: they have no budget, and
 * nothing would lower their priority again.
 *
 * Context: Task.
 * Return: 0 or an error.
 */
int calendar_set_fifo(struct task_struct *task, unsigned int level)
{
	struct sched_attr attr = {
		.size = sizeof(attr), .sched_policy = SCHED_FIFO,
		.sched_flags = SCHED_FLAG_RESET_ON_FORK,
		.sched_priority = level,
	};

	return sched_setattr_nocheck(task, &attr);
}

/**
 * calendar_learn_init() - initialise the estimates of a unit
 * @unit:	the unit
 *
 * Context: Any.
 */
void calendar_learn_init(struct calendar_unit *unit)
{
	u32 guess = unit->def.kind == APIC_CALENDAR_FUNCTION ? READY_GUESS_NS : WAKE_GUESS_NS;

	apic_timer_estimate_init(&unit->wake, apic_timer_ns_to_tsc(guess),
				 APIC_TIMER_QUANTILE_ONE);
	apic_timer_estimate_init(&unit->back, unit->def.kind == APIC_CALENDAR_USER ?
				 BACK_GUESS : 0, BACK_QUANTILE);
}

/**
 * calendar_lead() - return how long before a window to wake its thread, or expire for a function
 * @unit:	unit of the window
 *
 * Context: Any, under the CPU's lock.
 * Return: TSC cycles.
 */
u64 calendar_lead(const struct calendar_unit *unit)
{
	u64 wake = apic_timer_estimate_high(&unit->wake);
	u64 mean = apic_timer_estimate_mean(&unit->wake);

	if (mean && wake > mean)
		wake += (wake - mean) >> MARGIN_SHIFT;
	/* The time to get ready hardly varies: make sure that the wait begins before the moment. */
	if (unit->def.kind == APIC_CALENDAR_FUNCTION)
		wake += READY_MARGIN;
	return min(wake + apic_timer_estimate_high(&unit->back),
		   apic_timer_ns_to_tsc(READ_ONCE(lead_max_ns)));
}

/**
 * calendar_finish() - wait in the kernel for the rest of the time
 * @until:	TSC
 *
 * Context: Task.
 * Return: the last TSC value read.
 */
u64 calendar_finish(u64 until)
{
	u64 close = apic_timer_ns_to_tsc(CLOSE_NS), now;
	unsigned long flags;

	while ((s64)(until - rdtsc() - close) > 0)
		cpu_relax();
	/* From here on, an interrupt would not end in time. */
	local_irq_save(flags);
	now = calendar_spin(until);
	local_irq_restore(flags);
	return now;
}

/**
 * calendar_event() - change a unit's state upon an event
 * @unit:	the unit
 * @event:	the event
 *
 * Context: Any but NMI, under the CPU's lock.
 * Return: its new state; negative if the state does not change.
 */
int calendar_event(struct calendar_unit *unit, enum calendar_event event)
	__must_hold(&unit->cpu->lock)
{
	int next = calendar_next_state(unit->state, event);

	lockdep_assert_held(&unit->cpu->lock);
	if (next == -EINVAL)
		pr_err_once("apic_calendar: unit %s: unexpected event %d in state %d\n",
			    unit->def.name, event, unit->state);
	if (next >= 0)
		unit->state = next;
	return next;
}

/**
 * calendar_unit_works() - check whether a unit's thread has interrupted its park
 * @unit:	the unit
 *
 * Context: Any, under the CPU's lock.
 * Return: true while the thread runs other task work.
 */
bool calendar_unit_works(const struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	lockdep_assert_held(&unit->cpu->lock);
	return unit->queued &&
	       (unit->state == CALENDAR_PARKED || unit->state == CALENDAR_GO_ON);
}

/**
 * calendar_unit_wake() - wake a unit's thread, which waits or is parked
 * @unit:	the unit
 *
 * If it runs other task work, it may sleep there for another reason, and returns to its park by
 * itself.
 *
 * Context: Any but NMI, under the CPU's lock.
 */
void calendar_unit_wake(const struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	if (!calendar_unit_works(unit))
		wake_up_process(unit->task);
}

/**
 * calendar_add_receipt() - add the receipt of a window
 * @calendar:	the calendar
 * @receipt:	the receipt; its number is filled in
 *
 * Context: Any.
 */
void calendar_add_receipt(struct calendar *calendar, struct apic_calendar_receipt *receipt)
{
	calendar_ring_add(&calendar->ring, receipt);
	trace_apic_calendar_window(receipt);
	calendar_wake_pollers(calendar);
}

/**
 * calendar_window_ends() - end the open window of a unit
 * @unit:	the unit
 * @result:	result for the receipt
 * @now:	present TSC
 *
 * Context: Any but NMI, under the CPU's lock.
 */
void calendar_window_ends(struct calendar_unit *unit, u32 result, u64 now)
	__must_hold(&unit->cpu->lock)
{
	lockdep_assert_held(&unit->cpu->lock);
	unit->receipt.ended = now;
	unit->receipt.result = result;
	if (unit->cpu->running == unit)
		unit->cpu->running = NULL;
	switch (result) {
	case APIC_CALENDAR_RAN:
		unit->count.run++;
		if (unit->timeout > now)
			unit->count.slack_min = min(unit->count.slack_min, unit->timeout - now);
		break;
	case APIC_CALENDAR_TIMED_OUT:
		unit->count.run++;
		unit->count.overran++;
		unit->count.slack_min = 0;
		break;
	case APIC_CALENDAR_NEVER_RAN:
		unit->count.never_ran++;
		unit->missed++;
		break;
	}
	calendar_add_receipt(unit->calendar, &unit->receipt);
}

static struct task_struct *get_task(struct calendar_unit *unit)
{
	struct task_struct *task;
	unsigned long flags;

	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	task = unit->task;
	if (task)
		get_task_struct(task);
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	return task;
}

/* Return false if there is no thread, or none of the CPUs is online. */
static bool allow(struct calendar_unit *unit, const struct cpumask *cpus)
{
	struct task_struct *task = get_task(unit);
	int ret;

	if (!task)
		return false;
	ret = set_cpus_allowed_ptr(task, cpus);
	put_task_struct(task);
	return !ret;
}

/**
 * calendar_unit_moor() - bind a unit's thread to its CPU again
 * @unit:	the unit
 *
 * While the CPU was offline, the scheduler let the thread run elsewhere, and it does not move
 * the thread back. Takes no lock that the thread may hold: see keeper.c. Nothing releases the
 * thread, or casts it off, meanwhile.
 *
 * Context: Task. Sleeps. The CPU cannot go offline meanwhile; if it is offline, START fails.
 */
void calendar_unit_moor(struct calendar_unit *unit)
	__must_hold(&unit->calendar->loading)
{
	lockdep_assert_held(&unit->calendar->loading);
	if (allow(unit, cpumask_of(unit->cpu->cpu)))
		WRITE_ONCE(unit->moored, true);
}

/**
 * calendar_unit_cast_off() - release a unit's thread from a CPU that goes offline
 * @unit:	the unit, whose calendar has stopped
 *
 * A user's thread gets back the CPUs that it had: the scheduler would let it run on all.
 *
 * Context: The keeper: it lends its priority to a thread that holds the lock.
 */
void calendar_unit_cast_off(struct calendar_unit *unit)
{
	if (unit->def.kind != APIC_CALENDAR_USER)
		return;
	/*
	 * calendar_unit_give_back() waits for us before it ends: we cannot overwrite what the
	 * thread sets after UNBIND.
	 */
	rt_mutex_lock(&unit->scheduling);
	if (allow(unit, &unit->allowed))
		WRITE_ONCE(unit->moored, false);
	rt_mutex_unlock(&unit->scheduling);
}
