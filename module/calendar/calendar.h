/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_CALENDAR_H
#define _APIC_CALENDAR_CALENDAR_H

#include <linux/apic_timer.h>
#include <linux/apic_timer_estimate.h>
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/rtmutex.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/wait.h>
#include <uapi/linux/apic_calendar.h>
#include <uapi/linux/sched/types.h>

#include "position.h"
#include "ring.h"
#include "state.h"

struct apic_calendar_function;
struct calendar;
struct calendar_unit;
struct task_struct;

/**
 * struct calendar_cpu - a CPU of a calendar
 * @calendar:	the calendar
 * @cpu:	the CPU
 * @slot:	the CPU's place in the calendar's tables
 * @lock:	protects the members below and those of the CPU's units
 * @on:		the calendar runs here
 * @changed_at:	boundary of the last change that was made here
 * @ending:	that change is a stop, and this CPU, the last to reach the boundary, performs it
 * @position:	next window
 * @wanted:	moment at which @dispatch should expire for the next window. @dispatch may be armed
 *		for later, because only one thread runs at a time
 * @base:	number of the major cycle in which the current table took over
 * @running:	unit whose window is open
 * @over:	units to be stopped unless they stop by themselves; the unit that has been over for
 *		the longest time is first
 * @dispatch:	timer for the next window
 * @timeout:	timer for the end of the open window
 * @backstop:	timer for the first unit of @over; pending while there is one
 *
 * Lock order: &calendar.lock, then this lock, then the locks of the timers.
 */
struct calendar_cpu {
	struct calendar *calendar;
	unsigned int cpu;
	u32 slot;
	raw_spinlock_t lock;	/* protects the members below */
	bool on;
	bool ending;
	u64 changed_at;
	struct calendar_position position;
	u64 wanted;
	u64 base;
	struct calendar_unit *running;
	struct list_head over;
	struct apic_timer_list dispatch;
	struct apic_timer_list timeout;
	struct apic_timer_list backstop;
} ____cacheline_aligned;

/**
 * struct calendar_unit - a unit
 * @calendar:	the calendar
 * @cpu:	the unit's CPU
 * @number:	the unit's number
 * @def:	definition by the user
 * @function:	function that a module registered; NULL: none
 * @thread:	kernel thread that calls @function; NULL: none
 * @state:	state; protected by @cpu's lock, like all members down to @work
 * @task:	the unit's thread, a counted reference; NULL: none
 * @resuming:	a window began, and the duration of the wake-up is not known yet
 * @queued:	@work is queued
 * @leaving:	the priority and CPUs of the last thread are still to be restored
 * @over:	entry in the list @over of the CPU, or empty
 * @skip:	the next window is lost
 * @stops:	@stops of the calendar when it was last reported
 * @status:	%APIC_CALENDAR_OVERRAN, ..., since the last call
 * @missed:	windows missed since the last call
 * @reported:	table that the last call reported; %APIC_CALENDAR_NONE: there was no call
 * @receipt:	receipt of the open window
 * @timeout:	end of the open window
 * @armed:	moment that the wake-up was armed for
 * @lead:	time from @armed to the window's start
 * @returned_from: TSC at which the thread left for user space; 0: unknown
 * @wake:	duration of wake-ups; of a function: time that its handler takes to get ready
 * @back:	duration of the return to user space
 * @count:	counters for %APIC_CALENDAR_STATUS
 * @work:	stops the thread on its way to user space
 * @demote:	the keeper must demote or kill the thread
 * @scheduling:	serialises changes of the thread's priority and CPUs while it is the unit's; lends
 *		the holder the priority of those who wait: see keeper.c
 * @demoted:	under @scheduling: the thread has lost its priority
 * @lent:	likewise: it must lose it, but another thread lends it a priority. Read without.
 * @priority:	priority that the thread was given
 * @had:	scheduling attributes that the thread had before BIND
 * @allowed:	CPUs that the thread was allowed before BIND
 * @moored:	BIND or START has bound the thread to @cpu, which has not gone offline since
 */
struct calendar_unit {
	struct calendar *calendar;
	struct calendar_cpu *cpu;
	u32 number;
	struct apic_calendar_unit def;
	struct apic_calendar_function *function;
	struct task_struct *thread;

	enum calendar_state state;
	struct task_struct *task;
	bool resuming;
	bool queued;
	bool leaving;
	struct list_head over;
	bool skip;
	unsigned int stops;
	u32 status;
	u32 missed;
	u32 reported;
	struct apic_calendar_receipt receipt;
	u64 timeout;
	u64 armed;
	u64 lead;
	u64 returned_from;
	struct apic_timer_estimate wake;
	struct apic_timer_estimate back;
	struct apic_calendar_status count;

	struct callback_head work;
	bool demote;
	struct rt_mutex scheduling;	/* protects the members below */
	bool demoted;
	bool lent;
	unsigned int priority;
	struct sched_attr had;
	struct cpumask allowed;
	bool moored;
};

/**
 * struct calendar_pollers - threads that poll a calendar
 * @wait:	their wait queue
 * @wake:	wakes them
 *
 * Never freed. @wake may run on two CPUs at a time; when the first one ends, @wake looks idle,
 * and PREEMPT_RT uses it once more after that. Because irq_work_sync() does not wait for all of
 * this, @wake must not be part of a structure that is freed.
 */
struct calendar_pollers {
	wait_queue_head_t wait;
	struct irq_work wake;
};

/**
 * struct calendar - a calendar, which is an open file
 * @kref:	one reference for the file, and one for each queued @work
 * @node:	entry in the list of all calendars
 * @loading:	serialises LOAD, BIND, START, ...
 * @stopping:	serialises tasks that stop the calendar; @keeper may stop it at the same time
 * @lock:	protects @running, @error, @end, @overruns, the change, and START, SWITCH and STOP
 * @running:	the calendar runs
 * @starting:	it runs, and some of its CPUs are not armed yet
 * @error:	reason of the last stop, negative; 0: it was not stopped
 * @stops:	number of stops
 * @n_units:	number of units
 * @n_cpus:	number of CPUs
 * @n_tables:	number of tables; read without a lock
 * @units:	the units
 * @cpus:	the CPUs
 * @tables:	the tables; they live as long as the calendar
 * @table:	the table in force
 * @origin:	start of its first major cycle, TSC
 * @base:	number of that cycle
 * @change:	change at the next boundary; @change.at is read without a lock
 * @change_base: number of the major cycle that begins at the boundary
 * @unchanged:	number of CPUs that have not reached the boundary yet
 * @begin:	@keeper must begin the change on CPUs that have nothing to do before it
 * @leave:	@keeper must release the threads of all units
 * @left:	it has
 * @goes:	CPU that goes offline: @keeper must release its units' threads from it; NULL: none
 * @gone:	it has
 * @end:	reason for which @keeper must stop the calendar, negative; 0: it must not
 * @overruns:	number of overruns in windows of @table since it took over
 * @urgent:	an overrun, or a stop, has not been reported by STATUS
 * @ring:	receipts
 * @pollers:	threads in poll(); reserved for this calendar while it exists
 * @keeper:	thread that handles units that don't stop by themselves, begins changes, stops
 *		the calendar for handlers, and releases units' threads when the file is closed, or
 *		from a CPU that goes offline
 */
struct calendar {
	struct kref kref;
	struct list_head node;
	struct mutex loading;		/* see above */
	struct mutex stopping;		/* see above */
	raw_spinlock_t lock;		/* see above */
	bool running;
	bool starting;
	int error;
	unsigned int stops;
	u32 n_units;
	u32 n_cpus;
	u32 n_tables;
	struct calendar_unit *units;
	struct calendar_cpu *cpus;
	struct calendar_table *tables[APIC_CALENDAR_TABLES];
	const struct calendar_table *table;
	u64 origin;
	u64 base;
	struct calendar_change change;
	u64 change_base;
	atomic_t unchanged;
	bool begin;
	bool leave;
	struct completion left;
	struct calendar_cpu *goes;
	struct completion gone;
	int end;
	u32 overruns;
	bool urgent;
	struct calendar_ring ring;
	struct calendar_pollers *pollers;
	struct task_struct *keeper;
};

/*
 * Return a unit by its number, which a user has chosen, or NULL. Units exist before a table does:
 * the caller has seen one.
 */
static inline struct calendar_unit *calendar_unit_of(struct calendar *calendar, u32 number)
{
	if (number >= calendar->n_units)
		return NULL;
	return &calendar->units[array_index_nospec(number, calendar->n_units)];
}

/* unit.c */
int calendar_event(struct calendar_unit *unit, enum calendar_event event);
bool calendar_unit_works(const struct calendar_unit *unit);
void calendar_unit_wake(const struct calendar_unit *unit);
void calendar_add_receipt(struct calendar *calendar, struct apic_calendar_receipt *receipt);
void calendar_window_ends(struct calendar_unit *unit, u32 result, u64 now);
u64 calendar_lead(const struct calendar_unit *unit);
void calendar_learn_init(struct calendar_unit *unit);
u64 calendar_finish(u64 until);
int calendar_set_fifo(struct task_struct *task, unsigned int level);
unsigned int calendar_priority(void);
void calendar_unit_moor(struct calendar_unit *unit);
void calendar_unit_cast_off(struct calendar_unit *unit);

/* object.c */
struct calendar *calendar_new(void);
void calendar_put(struct calendar *calendar);
void calendar_wake_pollers(struct calendar *calendar);
void calendar_pollers_init(void);
void calendar_pollers_exit(void);

/* cpu.c */
int calendar_cpu_arm(struct calendar_cpu *cpu, bool here);
void calendar_cpu_free(struct calendar_cpu *cpu);
void calendar_over_no_more(struct calendar_unit *unit);
bool calendar_cpu_changed(struct calendar_cpu *cpu, u64 at);

/* stop.c */
int calendar_own(struct calendar *calendar);
void calendar_disown(struct calendar *calendar);
void calendar_stop_by_handler(struct calendar *calendar, int error);
void calendar_stop_by_keeper(struct calendar *calendar);
bool calendar_stop_by_task(struct calendar *calendar, int error);
void calendar_stop_sync(struct calendar *calendar, int error);
void calendar_del_timers(struct calendar *calendar);

/* change.c */
int calendar_change_to(struct calendar *calendar, const struct calendar_table *table,
		       u64 not_before, u64 *at);
void calendar_changed(struct calendar *calendar, u64 at);
void calendar_change_begin(struct calendar *calendar);
void calendar_count_overrun(struct calendar *calendar, u32 number);

/*
 * The boundary of a change that has not been made here yet. The rest of the change was written
 * before.
 */
static inline u64 calendar_change_at(const struct calendar_cpu *cpu)
	__must_hold(&cpu->lock)
{
	u64 at = smp_load_acquire(&cpu->calendar->change.at);	/* announce() */

	return at == cpu->changed_at ? CALENDAR_NEVER : at;
}

/* keeper.c */
int calendar_keeper_start(struct calendar *calendar);
void calendar_keeper_stop(struct calendar *calendar);
void calendar_keeper_release(struct calendar *calendar);
void calendar_keeper_cast_off(struct calendar *calendar, struct calendar_cpu *cpu);
u64 calendar_backstop(void);
void calendar_restore(struct calendar_unit *unit);
void calendar_demote(struct calendar_unit *unit);

/* outside.c */
int calendar_outside_init(void);
void calendar_outside_exit(void);
void calendar_outside_add(struct calendar *calendar);
void calendar_outside_del(struct calendar *calendar);
bool calendar_outside_has(const struct task_struct *task);
bool calendar_outside_sleeps(void);
bool calendar_outside_usable(struct calendar *calendar);

/* user.c */
long calendar_bind(struct calendar *calendar, void __user *argument);
long calendar_unbind(struct calendar *calendar, void __user *argument);
long calendar_wait(struct calendar *calendar, void __user *argument);
int calendar_unit_wait(struct calendar_unit *unit, struct apic_calendar_wait *wait);
void calendar_unit_break(struct calendar_unit *unit);

/* release.c */
void calendar_unit_release(struct calendar_unit *unit);
struct task_struct *calendar_unit_unbind(struct calendar_unit *unit);
void calendar_unit_give_back(struct calendar_unit *unit, struct task_struct *task);
bool calendar_unit_is_free(struct calendar_unit *unit);

/* function.c */
int calendar_functions_init(void);
void calendar_functions_exit(void);
bool calendar_function_known(const char *name, u32 kind);
struct apic_calendar_function *calendar_function_get(const char *name, u32 kind);
void calendar_function_put(struct apic_calendar_function *function);
int calendar_thread_start(struct calendar_unit *unit);

/* run.c */
long calendar_start(struct calendar *calendar, void __user *argument);
long calendar_switch(struct calendar *calendar, void __user *argument);
long calendar_stop_by_user(struct calendar *calendar, void __user *argument);
u32 calendar_epoch(void);

/* dispatch.c */
void calendar_dispatch_init(void);
void calendar_cpu_init(struct calendar_cpu *cpu);

/* load.c */
struct calendar_limits;
void calendar_limits_ns(struct calendar_limits *limits);
long calendar_load(struct calendar *calendar, void __user *argument);
void calendar_unload(struct calendar *calendar);

#endif /* _APIC_CALENDAR_CALENDAR_H */
