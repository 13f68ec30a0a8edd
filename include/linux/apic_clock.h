/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers whose function starts when one of the kernel's clocks reads a given
 * moment, from the CPU's own local APIC timer: <linux/apic_timer.h> with a
 * clock.
 *
 * While a timer is pending, it follows its clock: NTP's steering, adjtime(),
 * changes of the tick's length, steps, leap seconds, a new offset of TAI. Two
 * machines whose CLOCK_TAI is disciplined by PTP act at the same instant if
 * they arm timers for the same moment of CLOCK_TAI.
 *
 *	init_apic_clock_timer(&timer);
 *	timer.timer.function = handler;		also data, flags, spin_budget
 *	timer.timer.flags = APIC_TIMER_EXACT;
 *	ret = add_apic_timer_at(&timer, CLOCK_TAI, when);
 */
#ifndef _LINUX_APIC_CLOCK_H
#define _LINUX_APIC_CLOCK_H

#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>

/*
 * Flag of a timer of a clock: never expire before the moment, however large the error
 * of the conversion (the error of apic_timer_clock_to_tsc()). Without the flag, the
 * timer is as likely to be early by that error as late. Where the clocksource is the
 * TSC, there is no error.
 */
#define APIC_CLOCK_AFTER	0x1U

/*
 * PTP hardware clocks, /dev/ptpN, have numbers from here on while they are attached. The
 * kernel's own clocks have smaller or negative numbers, and never one of these.
 */
#define APIC_CLOCK_PHC		0x50000000

/* Check whether a number is that of a PTP clock, attached or not. */
static inline bool apic_clock_is_phc(clockid_t clock)
{
	return ((unsigned int)clock & 0xff000000U) == APIC_CLOCK_PHC;
}

/**
 * struct apic_clock_timer - a timer of a clock
 * @timer:	the timer that expires: set its @function, @data, @flags and
 *		@spin_budget. Its @expires belongs to the module. Call only the
 *		functions below for it, not those of <linux/apic_timer.h>.
 * @clock:	as passed to add_apic_timer_at()
 * @flags:	0 or APIC_CLOCK_AFTER; set it after init_apic_clock_timer()
 * @lost:	NULL, or called once when the timer is cancelled because its clock is gone,
 *		or because no CPU accepts it: @ret is -ENODEV. Called like a handler, with
 *		interrupts off, and may arm the timer again; set it after
 *		init_apic_clock_timer(). It is not called for errors of the owner's own
 *		calls: add_apic_timer_at() returns those. Nor is it in the last milliseconds
 *		before the moment, when apic_timer has the timer: that cancels it as it
 *		cancels any other, if its CPU goes offline and no other accepts timers.
 * @when:	as passed to add_apic_timer_at(); written under @lock
 *
 * The handler is called like that of any timer, see &struct apic_timer_list.
 * apic_timer_tsc_to_clock() converts its @now.
 */
struct apic_clock_timer {
	struct apic_timer_list timer;
	clockid_t clock;
	unsigned int flags;
	void (*lost)(struct apic_clock_timer *timer, int ret);
	ktime_t when;

	/* private: */
	unsigned int state;
	int cpu;
	int home;			/* CPU in whose list it is */
	unsigned int armed;		/* how often */
	raw_spinlock_t lock;
	struct hrtimer approach;	/* of @clock, until @when is near */
	struct hrtimer check;		/* of CLOCK_MONOTONIC, from then on */
	struct list_head node;
	atomic_t reports;		/* calls of @lost that have not returned */
};

/*
 * Context, unless stated otherwise: any but NMI, handlers included; -EPERM in
 * NMI. -EINVAL from any function can also mean that the timer is NULL or was
 * never initialised.
 */

/*
 * Initialise a timer before its first use. Initialise it again, or free its memory,
 * only after del_apic_timer_at_sync() has deleted it: otherwise its hrtimers may still
 * be pending.
 */
void init_apic_clock_timer(struct apic_clock_timer *timer);

/*
 * Arm a timer for the moment @when of @clock: CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
 * CLOCK_BOOTTIME, CLOCK_REALTIME or CLOCK_TAI, or a PTP clock that is attached. The
 * timer is armed on this CPU or on @cpu, and migrates when that CPU goes offline. If
 * the moment has passed, or a step of the clock skips it, the handler runs at once,
 * late. Return:
 *   0		armed
 *   -EBUSY	it is pending already; or it is armed for another clock while @lost runs,
 *		after no CPU has accepted it
 *   -ENODEV	the CPU does not accept timers, or the PTP clock is gone
 *   -EINVAL	also: there is no such clock or CPU, no function, or a flag is
 *		unknown
 */
int add_apic_timer_at(struct apic_clock_timer *timer, clockid_t clock, ktime_t when);
int add_apic_timer_at_on(struct apic_clock_timer *timer, clockid_t clock, ktime_t when, int cpu);

/*
 * Arm a timer for another moment of the clock that it was last armed for, on the
 * CPU that it was last armed on, whether pending or not. Return: 1 if the timer
 * was pending, 0 if not, otherwise as add_apic_timer_at(); -EINVAL also if it was
 * never armed.
 */
int mod_apic_timer_at(struct apic_clock_timer *timer, ktime_t when);

/*
 * Delete a timer without waiting for its handler, or (_sync) wait until the
 * handler has returned on every CPU. Call del_apic_timer_at_sync() before the
 * timer's memory is freed, even if it has expired: its hrtimers may still be
 * pending. Return: as del_apic_timer() and del_apic_timer_sync().
 */
int del_apic_timer_at(struct apic_clock_timer *timer);
int del_apic_timer_at_sync(struct apic_clock_timer *timer);

/* Check whether a timer is armed and has not expired yet. Any context. */
bool apic_clock_timer_pending(const struct apic_clock_timer *timer);

/*
 * Use the PTP hardware clock /dev/ptp@index for timers: apic_clock_phc_attach() returns its
 * number, or an error: -EINVAL if there is no such clock. While attached, the clock is read
 * every 50 ms, and more often right after a change of its steering. Task context; sleeps.
 * Balance each attach with a detach: the last detach cancels the timers that are pending for
 * the clock (@lost).
 */
#define apic_clock_phc_attach(index)	__apic_clock_phc_attach(index, THIS_MODULE)
#define apic_clock_phc_detach(clock)	__apic_clock_phc_detach(clock, THIS_MODULE)

struct module;
int __apic_clock_phc_attach(int index, const struct module *owner);
int __apic_clock_phc_detach(clockid_t clock, const struct module *owner);

/*
 * Same as apic_timer_clock_to_tsc(), apic_timer_tsc_to_clock() and
 * apic_timer_clock_now(), extended to PTP clocks.
 */
u64 apic_clock_to_tsc(clockid_t clock, ktime_t when, u64 *error);
ktime_t apic_clock_from_tsc(clockid_t clock, u64 tsc);
int apic_clock_now(clockid_t clock, ktime_t *earliest, ktime_t *latest);

/**
 * struct apic_clock_skew - how far a CPU's TSC is ahead of the reference CPU's
 * @reference:	the reference CPU
 * @offset:	estimate, TSC cycles
 * @low:	lower bound of @offset
 * @high:	upper bound of @offset
 * @quantum:	step in which the two TSCs count, cycles
 * @residue:	every value of this CPU's TSC, modulo @quantum
 * @rounds:	number of round trips between the two CPUs that were measured
 * @measured:	TSC at the time of the measurement
 *
 * The bounds hold no matter what disturbed the measurement. They say nothing
 * about later changes of the TSCs: in a virtual machine, the host may move a
 * CPU.
 */
struct apic_clock_skew {
	int reference;
	s64 offset;
	s64 low;
	s64 high;
	u64 quantum;
	u64 residue;
	unsigned int rounds;
	u64 measured;
};

/*
 * Get the last measurement of a CPU's skew, or measure it now. apic_clock_get_skew():
 * any context but NMI, which might wait for the very write that it has interrupted.
 * apic_clock_measure_skew(): task context; sleeps. CPUs are also measured when they
 * come online. Return:
 *   0		@skew is filled in
 *   -EINVAL	no such CPU, or @skew is NULL
 *   -ENODATA	nothing is known about this CPU: it is offline, or was not measured
 *		yet
 *   -ETIMEDOUT	the two CPUs did not run at the same time for long enough
 *   -ESTALE	the TSCs moved against each other while they were measured
 */
int apic_clock_get_skew(int cpu, struct apic_clock_skew *skew);
int apic_clock_measure_skew(int cpu, struct apic_clock_skew *skew);

/*
 * Convert a moment from the reference CPU's TSC to that of @cpu, or back, with the
 * skew that was measured last. @error, unless NULL, receives the maximum error of the
 * result in cycles. If nothing is known about @cpu, @error is U64_MAX and @tsc is
 * returned unchanged. Any context but NMI.
 *
 * To let a timer on another CPU expire when the reference CPU's TSC reads @tsc:
 *
 *	timer.expires = apic_clock_to_cpu(cpu, tsc, NULL);
 *	ret = add_apic_timer_on(&timer, cpu);
 */
u64 apic_clock_to_cpu(int cpu, u64 tsc, u64 *error);
u64 apic_clock_from_cpu(int cpu, u64 tsc, u64 *error);

/**
 * enum apic_clock_worth - how well TSC values of different CPUs compare
 * @APIC_CLOCK_UNTRUSTED: not at all: the kernel has marked the TSC unstable, its
 *	rate may change, it was found to have stopped or to be ahead, or
 *	measurements contradict each other
 * @APIC_CLOCK_BOUNDED:	within &apic_clock_verdict.within, as of the last measurement:
 *	in a virtual machine, with several packages, or where the TSC may have stopped
 * @APIC_CLOCK_CORRECTED: the TSCs differ by a known offset, which groups with
 *	APIC_CLOCK_GROUP_CORRECT take into account
 * @APIC_CLOCK_EXACT:	the TSCs are the same, as far as is known
 */
enum apic_clock_worth {
	APIC_CLOCK_UNTRUSTED,
	APIC_CLOCK_BOUNDED,
	APIC_CLOCK_CORRECTED,
	APIC_CLOCK_EXACT,
};

/**
 * enum apic_clock_watch - what the kernel's clocksource watchdog does about the TSC
 * @APIC_CLOCK_WATCH_UNKNOWN: not known: the kernel's clocks now come from another
 *	clocksource
 * @APIC_CLOCK_WATCH_OFF: nothing: the kernel has trusted the TSC from the start
 * @APIC_CLOCK_WATCH_WAITS: it is meant to check the TSC, but has not compared it so
 *	far: it may have no other clocksource
 * @APIC_CLOCK_WATCH_ON: it compares the TSC with another clocksource
 */
enum apic_clock_watch {
	APIC_CLOCK_WATCH_UNKNOWN,
	APIC_CLOCK_WATCH_OFF,
	APIC_CLOCK_WATCH_WAITS,
	APIC_CLOCK_WATCH_ON,
};

/* Size of a hypervisor's name, bytes, with the 0 at its end. */
#define APIC_CLOCK_HYPERVISOR	13

/**
 * struct apic_clock_verdict - verdict on this machine's TSC, and its reasons
 * @worth:	the verdict
 * @within:	maximum difference of two CPUs' TSCs at one instant, TSC cycles;
 *		U64_MAX if nothing is known
 * @kind:	what the CPU guarantees about its TSC
 * @sleepless:	the CPU also guarantees that the TSC counts while the machine
 *		sleeps
 * @rate_given:	the kernel has the TSC's frequency from the CPU or the hypervisor, and has
 *		not measured it
 * @stable:	the kernel has not marked the TSC unstable
 * @virtual:	the machine is virtual: there is a hypervisor
 * @hypervisor:	the hypervisor's name by CPUID
 * @vouched:	the hypervisor or the platform guarantees that the TSC is, and stays, the
 *		same on all CPUs
 * @watch:	whether the kernel itself would notice that the TSC is off
 * @clocksource: the kernel's clocks follow from the TSC
 * @adjusted:	CPUs have different values in TSC_ADJUST: firmware or software has
 *		written some of them
 * @packages:	CPUs are in several packages
 * @measured:	number of CPUs whose skew is known, the reference included
 * @unknown:	number of online CPUs whose skew could not be measured
 * @contradicted: CPUs of @unknown whose TSC moved while it was measured
 * @unmeasured:	CPUs of @unknown that have just come online, and will be measured within
 *		a second
 * @apart:	the TSC of some CPU certainly differs from the reference's: its
 *		bounds exclude 0
 * @quantum:	step in which the TSCs count, cycles
 * @rate_known:	the TSC was compared with another counter: the next three
 *		members are valid
 * @rate_ppb:	how much faster than the kernel's frequency the TSC runs, in
 *		units of 10^-9
 * @rate_error_ppb: maximum error of @rate_ppb, in units of 10^-9
 * @rate_moved:	how often the rate has changed by more than a crystal drifts
 * @raw_known:	the TSC was compared with CLOCK_MONOTONIC_RAW, from the first verdict, or
 *		the first after a sleep, until now: the next two members are valid
 * @raw_ppb:	how much faster than the kernel's frequency the TSC runs, in units of
 *		10^-9. Where @clocksource is set, this is the rounding of the kernel.
 * @raw_error_ppb: maximum error of @raw_ppb, in units of 10^-9
 * @slept:	number of sleeps of the machine in which the TSC did not count, or was
 *		set
 * @stops:	how often the TSC of an online CPU was found to have stopped
 * @ahead:	how often the TSC of an online CPU was found ahead of where it
 *		should be
 * @proven:	how often one of these (@stops, @ahead) exceeded the error of reading
 *		the other counter
 */
struct apic_clock_verdict {
	enum apic_clock_worth worth;
	u64 within;
	enum apic_timer_tsc_kind kind;
	bool sleepless;
	bool rate_given;
	bool stable;
	bool virtual;
	char hypervisor[APIC_CLOCK_HYPERVISOR];
	bool vouched;
	enum apic_clock_watch watch;
	bool clocksource;
	bool adjusted;
	bool packages;
	unsigned int measured;
	unsigned int unknown;
	unsigned int contradicted;
	unsigned int unmeasured;
	bool apart;
	u64 quantum;
	bool rate_known;
	s64 rate_ppb;
	u64 rate_error_ppb;
	unsigned int rate_moved;
	bool raw_known;
	s64 raw_ppb;
	u64 raw_error_ppb;
	unsigned int slept;
	u64 stops;
	u64 ahead;
	u64 proven;
};

/* Judge the TSC by what is known about it. Task context, because CPUs are queried; sleeps. */
void apic_clock_judge(struct apic_clock_verdict *verdict);

/*
 * Register and unregister a notifier of the verdict; task context; sleeps. When the verdict
 * changes, @block->notifier_call receives an &enum apic_clock_worth and the &struct
 * apic_clock_verdict that it is part of, which is valid during the call. The notifier may sleep,
 * but must not call these two functions. When unregistering returns, no call is running. Return:
 *   0		done
 *   -EEXIST	it is registered already
 *   -ENOENT	it is not registered
 *   -EINVAL	@block is NULL, or has no function to call
 */
int apic_clock_register_notifier(struct notifier_block *block);
int apic_clock_unregister_notifier(struct notifier_block *block);

/**
 * struct apic_clock_resync - known stops of a CPU's TSC
 * @offset:	common time less this CPU's TSC, cycles
 * @error:	half the width of the bounds of the last comparison, cycles. Most of it
 *		is the time that reading the counter takes, which is the same each
 *		time.
 * @stops:	how often the TSC was found to have stopped
 * @lost:	cycles that the TSC lost by these stops
 * @longest:	cycles that the longest stop took
 * @ahead:	how often the TSC was found ahead of where it should be: either the
 *		TSC was written to, or the counter stopped
 * @rejected:	comparisons that contradicted themselves
 *
 * Common time continues when a CPU's TSC stops. It is computed from a counter that
 * never stops, HPET or PM timer, and runs at the rate of the TSC. It starts again
 * after a sleep of the machine.
 */
struct apic_clock_resync {
	s64 offset;
	u64 error;
	u64 stops;
	u64 lost;
	u64 longest;
	u64 ahead;
	u64 rejected;
};

/*
 * Get the known stops of a CPU's TSC. Any context but NMI. Return:
 *   0		@resync is filled in
 *   -EINVAL	no such CPU, or @resync is NULL
 *   -ENODEV	there is no counter to compare TSCs with
 *   -ENODATA	nothing is known about this CPU yet
 */
int apic_clock_get_resync(int cpu, struct apic_clock_resync *resync);

/* Get common time, in TSC cycles. It never goes back on a CPU. Any context but NMI. */
u64 apic_clock_common_now(void);

/* Flags of a group. */

/* Correct for the skew between the CPUs' TSCs, as apic_clock_get_skew() returns it. */
#define APIC_CLOCK_GROUP_CORRECT	0x1U
/* Call all handlers or none: see apic_clock_group_alloc(). */
#define APIC_CLOCK_GROUP_ALL		0x2U

/**
 * struct apic_clock_receipt - outcome of a group's expiry
 * @when:	the moment as it was armed, TSC of the reference CPU if the group
 *		corrects, otherwise of each CPU. A new epoch of the TSC moves the
 *		moment as it moves that of a timer, but not this value: then @first
 *		and @last count from where the moment is now
 * @ret:	0: all handlers were called; -EAGAIN: none was called, because a
 *		CPU was not there in time; -ECANCELED: cancelled, see @called
 * @called:	number of handlers that were called
 * @first:	start of the first handler less @when, TSC cycles
 * @last:	start of the last handler less @when: the starts are @last -
 *		@first apart
 * @error:	maximum error of @last - @first, from the uncertainty of the
 *		TSCs, TSC cycles; U64_MAX if nothing is known about the TSC of a
 *		CPU
 */
struct apic_clock_receipt {
	u64 when;
	int ret;
	unsigned int called;
	s64 first;
	s64 last;
	u64 error;
};

struct apic_clock_group;

/*
 * Make a group of one timer on each of @cpus, whose handlers start at one instant.
 * @function is called on each CPU, like a timer's handler. Then @done, unless it is
 * NULL, is called on the last CPU, in hard interrupt context as well. It is also
 * called for an expiry that is cancelled, and may be called before
 * apic_clock_group_fire() returns. Task context; sleeps. Returns NULL if there is no
 * memory, if @cpus is empty or has unknown CPUs, or if a flag is unknown.
 *
 * With APIC_CLOCK_GROUP_ALL, each CPU enters its interrupt some microseconds
 * before the moment and waits in it. The first CPU to come within 1.5 us of the
 * moment checks whether all are there, and decides for all.
 */
struct apic_clock_group *
apic_clock_group_alloc(const struct cpumask *cpus,
		       void (*function)(unsigned long long now, unsigned long data),
		       void (*done)(const struct apic_clock_receipt *receipt, unsigned long data),
		       unsigned long data, unsigned int flags);

/* Cancel a pending expiry, wait for handlers, and free the memory. Task context; sleeps. */
void apic_clock_group_free(struct apic_clock_group *group);

/*
 * Arm a group for @when, TSC. Any context but NMI; @done may call it, @function
 * must not. Return:
 *   0		armed; @done will be called once
 *   -EBUSY	the group's last expiry is not over
 *   -ECANCELED	the group is being cancelled
 *   -ENODEV	a CPU does not accept timers; the timers of the other CPUs were
 *		deleted again
 *   -ETIME	@when is nearer than 20 us: no handler will be called
 */
int apic_clock_group_fire(struct apic_clock_group *group, u64 when);

/* Cancel an expiry; task context; sleeps. When this returns, @done has returned. */
void apic_clock_group_cancel(struct apic_clock_group *group);

#endif /* _LINUX_APIC_CLOCK_H */
