/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/apic_calendar: a time-driven system, run from a table.
 *
 * An open file is a calendar. It has units, each of which belongs to one CPU: a thread
 * of a program, or a function of a kernel module. A table divides a cycle, the major
 * cycle, into windows: the offset at which each starts, the unit that runs in it, and
 * its length, the unit's budget. A calendar may have several tables. One of them is in
 * force; another one replaces it at a boundary of the major cycle, on all CPUs at the
 * same TSC value.
 *
 * Each command takes a structure that begins with its own size as the caller knows it.
 * A structure longer than the kernel's is accepted if the fields that the kernel does
 * not know are zero (otherwise -E2BIG); fields that a shorter structure lacks read as
 * zero. Layouts are the same for 32-bit callers.
 */
#ifndef _UAPI_LINUX_APIC_CALENDAR_H
#define _UAPI_LINUX_APIC_CALENDAR_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define APIC_CALENDAR_IOC	0xD7	/* from 16 on; apic_timer.h has the others */

/* The structures carry their size, hence not _IOWR(). */
#define APIC_CALENDAR_QUERY	_IO(APIC_CALENDAR_IOC, 16)
#define APIC_CALENDAR_LOAD	_IO(APIC_CALENDAR_IOC, 17)
#define APIC_CALENDAR_START	_IO(APIC_CALENDAR_IOC, 18)
#define APIC_CALENDAR_SWITCH	_IO(APIC_CALENDAR_IOC, 19)
#define APIC_CALENDAR_STOP	_IO(APIC_CALENDAR_IOC, 20)
#define APIC_CALENDAR_BIND	_IO(APIC_CALENDAR_IOC, 21)
#define APIC_CALENDAR_UNBIND	_IO(APIC_CALENDAR_IOC, 22)
#define APIC_CALENDAR_WAIT	_IO(APIC_CALENDAR_IOC, 23)
#define APIC_CALENDAR_STATUS	_IO(APIC_CALENDAR_IOC, 24)

#define APIC_CALENDAR_UNITS	64	/* of a calendar, at most */
#define APIC_CALENDAR_ENTRIES	4096	/* of a table, at most */
#define APIC_CALENDAR_TABLES	16	/* of a calendar, at most */
#define APIC_CALENDAR_NAME	32	/* bytes of a name, with the 0 at its end */
#define APIC_CALENDAR_NONE	0xffffffffU	/* no entry, no table */

/* &struct apic_calendar_unit.kind */
#define APIC_CALENDAR_USER	0	/* a thread that calls APIC_CALENDAR_WAIT */
#define APIC_CALENDAR_FUNCTION	1	/* <linux/apic_calendar.h>, in hard interrupt */
#define APIC_CALENDAR_THREAD	2	/* the same, in a kernel thread */
#define APIC_CALENDAR_KINDS	3

/* &struct apic_calendar_unit.on_overrun: action on a thread that has used up its budget */
#define APIC_CALENDAR_PARK	0	/* stops, and continues in its next window */
#define APIC_CALENDAR_SIGNAL	1	/* gets a signal, and continues */
#define APIC_CALENDAR_KILL	2	/* its process is killed */
#define APIC_CALENDAR_SKIP	3	/* continues, and loses its next window */
#define APIC_CALENDAR_POLICIES	4

/**
 * struct apic_calendar_unit - a unit
 * @name:	name, for display; unique among the units
 * @function:	name that a module has registered; for user units: empty
 * @kind:	%APIC_CALENDAR_USER, %APIC_CALENDAR_FUNCTION or %APIC_CALENDAR_THREAD
 * @cpu:	CPU that it runs on
 * @on_overrun:	for user units: %APIC_CALENDAR_PARK, ...; for others 0: an overrun is only
 *		counted
 * @signal:	number of the signal for %APIC_CALENDAR_SIGNAL, otherwise 0
 * @reserved:	0
 */
struct apic_calendar_unit {
	char name[APIC_CALENDAR_NAME];
	char function[APIC_CALENDAR_NAME];
	__u32 kind;
	__u32 cpu;
	__u32 on_overrun;
	__u32 signal;
	__u64 reserved[2];
};

/**
 * struct apic_calendar_entry - a window of a unit
 * @offset:	its start, from the start of the major cycle
 * @budget:	its length
 * @unit:	number of the unit
 * @flags:	0
 */
struct apic_calendar_entry {
	__u64 offset;
	__u64 budget;
	__u32 unit;
	__u32 flags;
};

/*
 * &struct apic_calendar_load.reason: why a table is refused with -EINVAL. @bad is the
 * number of the entry, or, where "unit" is written below, of the unit; @other that of the
 * entry or unit it conflicts with.
 */
#define APIC_CALENDAR_OK		0
#define APIC_CALENDAR_BAD_MAJOR		1	/* shorter or longer than allowed */
#define APIC_CALENDAR_BAD_COUNT		2	/* no unit, no entry, or too many */
#define APIC_CALENDAR_BAD_NAME		3	/* unit: none, unterminated, or taken by @other */
#define APIC_CALENDAR_BAD_KIND		4	/* unit: no such kind; reserved field not 0 */
#define APIC_CALENDAR_BAD_POLICY	5	/* unit: no such policy, or not for this kind */
#define APIC_CALENDAR_BAD_CPU		6	/* unit: no such CPU, or not online */
#define APIC_CALENDAR_BAD_FUNCTION	7	/* unit: none, or not registered */
#define APIC_CALENDAR_BAD_UNIT		8	/* no such unit; or unknown flags */
#define APIC_CALENDAR_BAD_ORDER		9	/* begins before @other, the previous entry */
#define APIC_CALENDAR_BAD_BUDGET	10	/* too short */
#define APIC_CALENDAR_BAD_END		11	/* ends after the major cycle */
#define APIC_CALENDAR_OVERLAP		12	/* begins before @other on its CPU ends */
#define APIC_CALENDAR_GAP		13	/* too close to the end of @other on its CPU */
#define APIC_CALENDAR_LOAD_SHARE	14	/* exceeds the share of the CPU */
#define APIC_CALENDAR_BAD_DEGRADED	15	/* no such table */
#define APIC_CALENDAR_REASONS		16

/* &struct apic_calendar_load.flags */
#define APIC_CALENDAR_CYCLES	0x0001	/* offsets, budgets and @major are TSC cycles, not ns */

/**
 * struct apic_calendar_load - %APIC_CALENDAR_LOAD: add a table
 * @size:	in: sizeof(struct apic_calendar_load)
 * @flags:	in: %APIC_CALENDAR_CYCLES
 * @major:	in: length of the major cycle
 * @units:	in: array of &struct apic_calendar_unit
 * @entries:	in: array of &struct apic_calendar_entry, by ascending offset
 * @n_units:	in: number of units. A calendar has the units of the table that was
 *		loaded first; with later ones this is 0, and so is @units
 * @n_entries:	in: number of entries
 * @max_overruns: in: number of overruns, in windows of this table since it took over,
 *		after which the table @degraded replaces it as by SWITCH, 0: never. While a
 *		switch is pending, it does not, and the next overrun tries again
 * @degraded:	in: number of that table; 0 if @max_overruns is 0
 * @table:	out: number of this table
 * @reason:	out: %APIC_CALENDAR_OK, or why it is wrong
 * @bad:	out: entry or unit that is wrong, %APIC_CALENDAR_NONE: none
 * @other:	out: entry or unit that it conflicts with, %APIC_CALENDAR_NONE:
 *		none
 *
 * Errors: -EINVAL with @reason; with %APIC_CALENDAR_OK: unknown flags, or units with a later
 * table; -ENOENT: a function was unregistered meanwhile; -ENOSPC: too many tables; -EINTR: a
 * signal was handled while the call waited for another one of the file, and its action has no
 * SA_RESTART: nothing was loaded; -ENOMEM; -E2BIG, -EFAULT.
 *
 * Times in ns are converted at once. The kernel may refine its value of the TSC's rate once, a
 * second or two after boot, by less than 1 %: a table that was loaded before that should be
 * loaded again.
 */
struct apic_calendar_load {
	__u32 size;
	__u32 flags;
	__u64 major;
	__aligned_u64 units;
	__aligned_u64 entries;
	__u32 n_units;
	__u32 n_entries;
	__u32 max_overruns;
	__u32 degraded;
	__u32 table;
	__u32 reason;
	__u32 bad;
	__u32 other;
};

/**
 * struct apic_calendar_start - %APIC_CALENDAR_START, %APIC_CALENDAR_SWITCH
 * @size:	in: sizeof(struct apic_calendar_start)
 * @table:	in: number of the table
 * @when:	in: START: start of the table's first major cycle, 0: soon; SWITCH:
 *		earliest moment, 0: as soon as possible; out: the moment at which it
 *		takes effect, TSC
 * @clock:	in: clock of @when: %APIC_TIMER_CLOCK_TSC, _MONOTONIC or _TAI of
 *		apic_timer.h, in the caller's time namespace. @when is converted once: a
 *		calendar does not follow later changes of the clock
 * @epoch:	in: epoch that a TSC value belongs to, 0: the present one; out: the
 *		present one
 *
 * SWITCH takes effect at a boundary of the major cycle, at least two cycles ahead.
 * Errors: -ETIME: START: the moment is less than 200 us ahead, or past; -EBUSY: START:
 * the calendar is running, or another one uses one of its CPUs; SWITCH: an earlier
 * switch is still pending; -ESRCH: SWITCH: the calendar is not running; -ENODEV: a CPU
 * has no timer; -ENXIO: the TSCs of the CPUs are not comparable; -EAGAIN: the machine
 * is about to sleep; -ECANCELED: START: the calendar was stopped meanwhile; -EINTR: START:
 * as for LOAD, nothing was started; -EPERM: the caller lacks CAP_SYS_NICE; -ESTALE: the
 * present epoch is not @epoch; -EINVAL: no such table or clock, or the moment is years
 * ahead.
 */
struct apic_calendar_start {
	__u32 size;
	__u32 table;
	__u64 when;
	__u32 clock;
	__u32 epoch;
};

/* &struct apic_calendar_stop.flags */
#define APIC_CALENDAR_AT_BOUNDARY	0x0001	/* of the major cycle, as SWITCH; else at once */

/**
 * struct apic_calendar_stop - %APIC_CALENDAR_STOP
 * @size:	in: sizeof(struct apic_calendar_stop)
 * @flags:	in: %APIC_CALENDAR_AT_BOUNDARY
 * @when:	out: TSC at which it stops, or has stopped
 *
 * Threads that wait return -ECANCELED; threads that are parked, or in their window,
 * continue, without their priority until they call WAIT. Errors: -ESRCH: the calendar is
 * not running; -EBUSY: with %APIC_CALENDAR_AT_BOUNDARY: a switch is still pending; -EINVAL:
 * unknown flags.
 */
struct apic_calendar_stop {
	__u32 size;
	__u32 flags;
	__u64 when;
};

/**
 * struct apic_calendar_bind - %APIC_CALENDAR_BIND, %APIC_CALENDAR_UNBIND
 * @size:	in: sizeof(struct apic_calendar_bind)
 * @unit:	in: number of a user unit
 *
 * BIND makes the caller the thread of the unit: it moves to the unit's CPU, stays there, and
 * gets SCHED_FIFO at the calendar's priority. UNBIND by the same thread, or the end of the
 * calendar, restores its former CPUs and policy. A thread or process that it starts
 * meanwhile gets the same CPU, and SCHED_OTHER at nice 0, or at nice 19 if it is started
 * after a late break has taken the thread's priority, and before it stops. Errors: -EBUSY:
 * the unit already has a thread, perhaps one that has not quite ended or is in UNBIND, or the
 * thread has a unit; -EPERM: the caller lacks CAP_SYS_NICE; -ENOENT: no table is loaded;
 * -EINVAL: no such unit, or no user unit, the CPU is offline, or the thread has SCHED_DEADLINE;
 * UNBIND: -ESRCH: the caller is not the unit's thread; -ENOENT, -EINVAL: likewise. Both:
 * -EINTR: as for LOAD. Nothing was done, and the thread still has the unit, or has none: call
 * again.
 *
 * A thread should call UNBIND before it ends. If it does not, and ends in its last window or
 * later, the unit may become free only a moment after pthread_join() has returned.
 *
 * BIND and START do not check the thread's cpuset. If the cpuset is changed afterwards, or one
 * of its CPUs goes offline or online, it moves the thread to its own CPUs; the next START
 * moves it back. Nor does BIND ask for a real-time budget of the thread's cgroup, in kernels
 * with CONFIG_RT_GROUP_SCHED: where there is none, the thread does not run.
 */
struct apic_calendar_bind {
	__u32 size;
	__u32 unit;
};

/* &struct apic_calendar_wait.flags */
#define APIC_CALENDAR_KERNEL_FINISH	0x0001	/* the kernel waits for @start itself */

/* &struct apic_calendar_wait.status */
#define APIC_CALENDAR_OVERRAN	0x0001	/* used up its budget */
#define APIC_CALENDAR_BROKE	0x0002	/* was parked */
#define APIC_CALENDAR_LATE_BREAK 0x0004	/* stopped late: it was in a system call */
#define APIC_CALENDAR_SWITCHED	0x0008	/* the table is not that of the previous call */

/**
 * struct apic_calendar_wait - %APIC_CALENDAR_WAIT: end the window, wait for the next
 * @size:	in: sizeof(struct apic_calendar_wait)
 * @unit:	in: the caller's unit
 * @flags:	in: %APIC_CALENDAR_KERNEL_FINISH
 * @status:	out: events since the last call: %APIC_CALENDAR_OVERRAN, ...
 * @returned:	in: TSC read right after the last call, 0: not read. The kernel learns
 *		from it how long its way out takes
 * @began:	in: TSC at the first instruction of the window that ends, 0: not read;
 *		copied to the receipt
 * @start:	out: start of the window, TSC
 * @timeout:	out: end of the window, TSC
 * @cycle:	out: number of the major cycle since START
 * @missed:	out: windows missed since the last call, except those of major cycles that were
 *		passed over: @cycle shows them
 * @table:	out: the table in force
 * @lead:	out: TSC cycles from the armed moment to @start
 * @reserved:	out: 0
 *
 * The thread returns early, and must wait until the TSC reaches @start: see
 * at_calendar_wait() in user/apic_calendar_user.h. When a signal interrupts the call, it is
 * restarted after the handler, or fails with -EINTR if the signal's action has no
 * SA_RESTART. SIGSTOP and SIGCONT have no effect except missed windows. Errors: -ECANCELED:
 * the calendar was stopped, or the machine slept; -ENODEV: a CPU of the calendar went
 * offline; -ENXIO: the TSC became unstable; -ESRCH: the caller is not the unit's thread;
 * -ENOENT: no table is loaded; -EINVAL: no such unit, or no user unit, or unknown flags.
 */
struct apic_calendar_wait {
	__u32 size;
	__u32 unit;
	__u32 flags;
	__u32 status;
	__u64 returned;
	__u64 began;
	__u64 start;
	__u64 timeout;
	__u64 cycle;
	__u32 missed;
	__u32 table;
	__u32 lead;
	__u32 reserved;
};

/* &struct apic_calendar_query.outranked_by: what else may run on a unit's CPU in its window. */
#define APIC_CALENDAR_OUTRANKED_INTERRUPTS	0x0001	/* of devices, and NMIs */
#define APIC_CALENDAR_OUTRANKED_SOFTIRQS	0x0002	/* unless PREEMPT_RT */
#define APIC_CALENDAR_OUTRANKED_STOP		0x0004	/* the migration thread */
#define APIC_CALENDAR_OUTRANKED_DEADLINE	0x0008	/* threads of SCHED_DEADLINE */
#define APIC_CALENDAR_OUTRANKED_FIFO		0x0010	/* SCHED_FIFO above @priority */
#define APIC_CALENDAR_OUTRANKED_THROTTLING	0x0020	/* sched_rt_runtime_us */

/**
 * struct apic_calendar_query - %APIC_CALENDAR_QUERY: describe the device
 * @size:	in: sizeof(struct apic_calendar_query)
 * @epoch:	out: present epoch of the TSC
 * @tsc_khz:	out: frequency of the TSC in kHz
 * @priority:	out: SCHED_FIFO priority of a unit's thread
 * @outranked_by: out: %APIC_CALENDAR_OUTRANKED_*
 * @major_min:	out: shortest major cycle, ns
 * @budget_min:	out: shortest budget, ns
 * @gap_user:	out: shortest gap before a window of a thread, ns
 * @gap_function: out: shortest gap before a window of a function, ns
 * @share:	out: maximum percentage of a CPU that windows and gaps may take
 */
struct apic_calendar_query {
	__u32 size;
	__u32 epoch;
	__u32 tsc_khz;
	__u32 priority;
	__u32 outranked_by;
	__u32 major_min;
	__u32 budget_min;
	__u32 gap_user;
	__u32 gap_function;
	__u32 share;
};

/* &struct apic_calendar_status.state */
#define APIC_CALENDAR_IDLE	0
#define APIC_CALENDAR_RUNNING	1

/**
 * struct apic_calendar_status - %APIC_CALENDAR_STATUS: state of the calendar and of a unit
 * @size:	in: sizeof(struct apic_calendar_status)
 * @unit:	in: number of the unit
 * @state:	out: state of the calendar: %APIC_CALENDAR_IDLE or _RUNNING
 * @error:	out: why the calendar is not running: ECANCELED, ENODEV, ENXIO; 0: not
 *		started so far
 * @table:	out: table in force, %APIC_CALENDAR_NONE: none. The next table is shown here as
 *		soon as all CPUs have planned their first window of it, up to a major cycle
 *		before the moment that SWITCH has returned
 * @next:	out: table that will replace it, %APIC_CALENDAR_NONE: none
 * @tid:	out: thread of the unit, as numbered in the caller's PID namespace; 0: none
 *		there, or it has ended
 * @reserved:	out: 0
 * @run:	out: windows in which the unit ran
 * @missed:	out: windows at whose start the unit was not ready, or that the dispatcher came
 *		too late for, except those of major cycles that were passed over
 * @never_ran:	out: windows in which the unit was ready but did not get the CPU
 * @overran:	out: windows whose budget the unit used up
 * @late_breaks: out: windows of @overran in which the unit did not stop in time; none with
 *		%APIC_CALENDAR_SKIP, which stops no thread
 * @skipped:	out: windows that the unit lost by %APIC_CALENDAR_SKIP
 * @slack_min:	out: minimum remainder of a budget, TSC cycles; the largest value: there is
 *		none yet
 * @lead:	out: how early the unit's thread is woken, TSC cycles
 *
 * poll() reports %POLLPRI from an overrun of any unit, or a stop of the calendar, until
 * this command is called, and %POLLIN while there are receipts to read(). Errors: -ENOENT:
 * no table is loaded; -EINVAL: no such unit.
 */
struct apic_calendar_status {
	__u32 size;
	__u32 unit;
	__u32 state;
	__u32 error;
	__u32 table;
	__u32 next;
	__u32 tid;
	__u32 reserved;
	__u64 run;
	__u64 missed;
	__u64 never_ran;
	__u64 overran;
	__u64 late_breaks;
	__u64 skipped;
	__u64 slack_min;
	__u64 lead;
};

/* &struct apic_calendar_receipt.result: outcome of a window. */
#define APIC_CALENDAR_RAN	0	/* ended within the budget */
#define APIC_CALENDAR_TIMED_OUT	1	/* used up the budget */
#define APIC_CALENDAR_MISSED	2	/* the unit was not ready, or the dispatcher was late */
#define APIC_CALENDAR_NEVER_RAN	3	/* the unit was ready, but did not get the CPU */
#define APIC_CALENDAR_SKIPPED	4	/* %APIC_CALENDAR_SKIP */
#define APIC_CALENDAR_STOPPED	5	/* the calendar stopped within it */
#define APIC_CALENDAR_PASSED	6	/* @count whole cycles from @cycle on had passed */

/**
 * struct apic_calendar_receipt - record of a window; read() returns an array of these
 * @number:	number of the receipt; a missing one was overwritten
 * @start:	planned start, TSC
 * @woken:	TSC when the interrupt was handled
 * @resumed:	TSC when the thread ran again, or the function was called
 * @began:	@began of the thread's next call, 0: unknown
 * @ended:	TSC when the thread called WAIT or UNBIND, or was timed out, or when the
 *		function returned
 * @cycle:	major cycle since START
 * @entry:	entry of the table, %APIC_CALENDAR_NONE with %APIC_CALENDAR_PASSED
 * @unit:	the unit, %APIC_CALENDAR_NONE with %APIC_CALENDAR_PASSED
 * @cpu:	the CPU
 * @table:	the table
 * @result:	%APIC_CALENDAR_RAN, ...
 * @count:	see %APIC_CALENDAR_PASSED, otherwise 1
 *
 * Each window has one receipt, in the order of its CPU's windows. read() does not
 * wait: if there are no receipts, it fails with -EAGAIN. With -EFAULT it has taken none.
 * Several readers get different receipts, each of them successive ones.
 */
struct apic_calendar_receipt {
	__u64 number;
	__u64 start;
	__u64 woken;
	__u64 resumed;
	__u64 began;
	__u64 ended;
	__u64 cycle;
	__u32 entry;
	__u32 unit;
	__u32 cpu;
	__u32 table;
	__u32 result;
	__u32 count;
};

#endif /* _UAPI_LINUX_APIC_CALENDAR_H */
