/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers whose function starts when one of the kernel's clocks reads a moment,
 * from the CPU's own local APIC timer: <linux/apic_timer.h> with a clock.
 *
 * While a timer is pending it follows its clock: NTP's steering, adjtime(),
 * changes of the tick's length, steps, leap seconds, a new offset of TAI. Two
 * machines whose CLOCK_TAI is disciplined by PTP act at one instant by arming
 * timers for the same moment of it.
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
 * Flag of a timer of a clock: not before the moment, whatever the conversion may be off
 * by (the error of apic_timer_clock_to_tsc()). Without it, the timer is as likely early
 * as late by that. Where the clocksource is the TSC there is no error.
 */
#define APIC_CLOCK_AFTER	0x1U

/*
 * PTP hardware clocks, /dev/ptpN, have numbers from here on while they are attached. The
 * kernel's own are less, or negative, and it has no clock of these.
 */
#define APIC_CLOCK_PHC		0x50000000

/* Whether a number is that of a PTP clock, attached or not. */
static inline bool apic_clock_is_phc(clockid_t clock)
{
	return ((unsigned int)clock & 0xff000000U) == APIC_CLOCK_PHC;
}

/**
 * struct apic_clock_timer - a timer of a clock
 * @timer:	what expires: set its @function, @data, @flags and @spin_budget.
 *		Its @expires is the module's. Don't call the functions of
 *		<linux/apic_timer.h> for it, only those below.
 * @clock:	as passed to add_apic_timer_at()
 * @flags:	0 or APIC_CLOCK_AFTER; set it after init_apic_clock_timer()
 * @lost:	NULL, or called once when the timer is cancelled because its clock is gone,
 *		or no CPU accepts it: @ret is -ENODEV. Called as a handler is, with
 *		interrupts off, and may arm the timer anew; set it as @flags. It is not
 *		called for what the timer's owner does: add_apic_timer_at() returns errors.
 * @when:	as passed to add_apic_timer_at(); written under @lock
 *
 * The handler is called as that of any timer: @now is the TSC at its first
 * instruction, which apic_timer_tsc_to_clock() converts.
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
 * NMI. -EINVAL from any of them means also that the timer is NULL or was never
 * initialised.
 */

/*
 * Initialise a timer before its first use. Later only when del_apic_timer_at_sync() has
 * deleted it, as before its memory is freed: hrtimers of it may be pending without it.
 */
void init_apic_clock_timer(struct apic_clock_timer *timer);

/*
 * Arm a timer for the moment @when of @clock: CLOCK_MONOTONIC,
 * CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME or CLOCK_TAI, or a PTP clock
 * that is attached. On this CPU or on @cpu; a CPU that goes offline hands it to
 * another. A moment that has passed, or that a step of the clock has skipped, runs at
 * once, late. Return:
 *   0		armed
 *   -EBUSY	it is pending already
 *   -ENODEV	the CPU does not accept timers, or the PTP clock is gone
 *   -EINVAL	also: no such clock, no function, unknown flags, no such CPU
 */
int add_apic_timer_at(struct apic_clock_timer *timer, clockid_t clock, ktime_t when);
int add_apic_timer_at_on(struct apic_clock_timer *timer, clockid_t clock, ktime_t when, int cpu);

/*
 * Arm a timer for another moment of the clock that it was last armed for, whether
 * pending or not, on the CPU that it was last armed on. Return: 1 if it was
 * pending, 0 if not, otherwise as add_apic_timer_at(); -EINVAL also if it was
 * never armed.
 */
int mod_apic_timer_at(struct apic_clock_timer *timer, ktime_t when);

/*
 * Delete a timer without waiting for its handler; or wait until it has returned
 * on every CPU. Before its memory is freed a timer is deleted by the latter, also
 * when it has expired: hrtimers of it may still be pending. Return: as
 * del_apic_timer() and del_apic_timer_sync().
 */
int del_apic_timer_at(struct apic_clock_timer *timer);
int del_apic_timer_at_sync(struct apic_clock_timer *timer);

/* Check whether a timer is armed and has not expired yet. Any context. */
bool apic_clock_timer_pending(const struct apic_clock_timer *timer);

/*
 * Use the PTP hardware clock /dev/ptp@index for timers: apic_clock_phc_attach() returns its
 * number, or an error: -EINVAL if there is no such clock. It is read every 50 ms from
 * then on. Task context; sleeps. Whoever attaches it detaches it: with the last one,
 * timers that are pending for it are cancelled (@lost).
 */
#define apic_clock_phc_attach(index)	__apic_clock_phc_attach(index, THIS_MODULE)
#define apic_clock_phc_detach(clock)	__apic_clock_phc_detach(clock, THIS_MODULE)

struct module;
int __apic_clock_phc_attach(int index, const struct module *owner);
int __apic_clock_phc_detach(clockid_t clock, const struct module *owner);

/*
 * As apic_timer_clock_to_tsc(), apic_timer_tsc_to_clock() and apic_timer_clock_now(), for
 * PTP clocks as well.
 */
u64 apic_clock_to_tsc(clockid_t clock, ktime_t when, u64 *error);
ktime_t apic_clock_from_tsc(clockid_t clock, u64 tsc);
int apic_clock_now(clockid_t clock, ktime_t *earliest, ktime_t *latest);

/**
 * struct apic_clock_skew - how far a CPU's TSC is ahead of the reference CPU's
 * @reference:	the reference CPU
 * @offset:	estimate, TSC cycles
 * @low:	it is not less
 * @high:	it is not more
 * @quantum:	step in which the two TSCs count, cycles
 * @residue:	values of this CPU's TSC are that modulo @quantum
 * @rounds:	round trips between the two CPUs that this comes from
 * @measured:	TSC when that was
 *
 * The bounds hold whatever disturbed the measurement. What happens to the TSCs
 * later they do not know: in a virtual machine the host may move a CPU.
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
 * Get what was measured last, any context but NMI, which could wait for the write that
 * it has interrupted; or measure now, task context; sleeps. CPUs are measured when they
 * come online. Return:
 *   0		@skew is filled in
 *   -EINVAL	no such CPU, or @skew is NULL
 *   -ENODATA	nothing is known of this CPU: it is offline, or was not measured yet
 *   -ETIMEDOUT	the two CPUs did not run at the same time for long enough
 *   -ESTALE	the TSCs moved against each other while they were measured
 */
int apic_clock_get_skew(int cpu, struct apic_clock_skew *skew);
int apic_clock_measure_skew(int cpu, struct apic_clock_skew *skew);

/*
 * Convert a moment from the reference CPU's TSC to that of @cpu, or back, by what was
 * measured last. @error, unless NULL, is set to how many cycles the result may be off;
 * U64_MAX if nothing is known of @cpu, and @tsc is returned then. Any context but NMI.
 *
 * A timer on another CPU that is to expire when the reference CPU's TSC reads @tsc:
 *
 *	timer.expires = apic_clock_to_cpu(cpu, tsc, NULL);
 *	ret = add_apic_timer_on(&timer, cpu);
 */
u64 apic_clock_to_cpu(int cpu, u64 tsc, u64 *error);
u64 apic_clock_from_cpu(int cpu, u64 tsc, u64 *error);

/**
 * enum apic_clock_worth - what TSC values of different CPUs are worth to each other
 * @APIC_CLOCK_UNTRUSTED: nothing: the kernel has marked the TSC unstable, its rate
 *	may change, it was found to have stopped or to be ahead, or measurements
 *	contradict each other
 * @APIC_CLOCK_BOUNDED:	what &apic_clock_verdict.within says, as of the last
 *	measurement: in a virtual machine, with several packages, or where the TSC may
 *	have stopped
 * @APIC_CLOCK_CORRECTED: the TSCs are apart by a known offset, which groups with
 *	APIC_CLOCK_GROUP_CORRECT take into account
 * @APIC_CLOCK_EXACT:	the same: nothing that is known speaks against it
 */
enum apic_clock_worth {
	APIC_CLOCK_UNTRUSTED,
	APIC_CLOCK_BOUNDED,
	APIC_CLOCK_CORRECTED,
	APIC_CLOCK_EXACT,
};

/**
 * enum apic_clock_watch - what the kernel's clocksource watchdog does about the TSC
 * @APIC_CLOCK_WATCH_UNKNOWN: the kernel's clocks come from another clocksource now
 * @APIC_CLOCK_WATCH_OFF: nothing: the kernel has trusted the TSC from the start
 * @APIC_CLOCK_WATCH_WAITS: it was asked to, and has not compared it so far: it may have
 *	no other clocksource
 * @APIC_CLOCK_WATCH_ON: it compares the TSC with another clocksource
 */
enum apic_clock_watch {
	APIC_CLOCK_WATCH_UNKNOWN,
	APIC_CLOCK_WATCH_OFF,
	APIC_CLOCK_WATCH_WAITS,
	APIC_CLOCK_WATCH_ON,
};

/* Characters of a hypervisor's name, with the 0 at its end. */
#define APIC_CLOCK_HYPERVISOR	13

/**
 * struct apic_clock_verdict - what this machine's TSC is worth, and why
 * @worth:	the verdict
 * @within:	TSC cycles within which moments on two CPUs' TSCs are the same;
 *		U64_MAX if nothing is known
 * @kind:	what the CPU guarantees
 * @sleepless:	it also guarantees that the TSC counts while the machine sleeps
 * @rate_given:	the CPU or the hypervisor has given the kernel the TSC's frequency, so that
 *		it has not measured it
 * @stable:	the kernel has not marked the TSC unstable
 * @virtual:	there is a hypervisor
 * @hypervisor:	its name by CPUID
 * @vouched:	the hypervisor or the platform says that the TSC is the same on all CPUs,
 *		and stays so
 * @watch:	whether the kernel itself would notice that the TSC is off
 * @clocksource: the kernel's clocks follow from the TSC
 * @adjusted:	CPUs have different values in TSC_ADJUST: firmware or software has
 *		written some of them
 * @packages:	CPUs are in several packages
 * @measured:	CPUs whose skew is known, the reference included
 * @unknown:	those that are online and whose skew could not be measured
 * @contradicted: those of them that moved while they were measured
 * @unmeasured:	those of them that have just come, and will be measured in a second
 * @apart:	a CPU's TSC is surely not the reference's: its bounds exclude 0
 * @quantum:	step in which the TSCs count, cycles
 * @rate_known:	the next three come from a comparison with another counter
 * @rate_ppb:	how much faster than the kernel's frequency the TSC runs, 10^-9
 * @rate_error_ppb: that may be off by so much
 * @rate_moved:	how often the rate has changed by more than crystals drift
 * @raw_known:	the next two come from a comparison with CLOCK_MONOTONIC_RAW, since the TSC
 *		was first judged, or judged after a sleep
 * @raw_ppb:	how much faster the TSC runs, by the kernel's frequency, 10^-9. Where
 *		@clocksource is set that is how the kernel rounds.
 * @raw_error_ppb: that may be off by so much
 * @slept:	sleeps of the machine through which the TSC has not counted, or was set
 * @stops:	how often TSCs of CPUs that are online were found to have stopped
 * @ahead:	how often they were found ahead of where they should be
 * @proven:	how often one of these was by more than reading the other counter may
 *		be off
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

/* Judge the TSC by what is known of it; task context, as CPUs are asked; sleeps. */
void apic_clock_judge(struct apic_clock_verdict *verdict);

/*
 * Register and unregister a notifier of the verdict; task context; sleeps. @block->notifier_call
 * receives an &enum apic_clock_worth and the &struct apic_clock_verdict that it is from,
 * valid during the call, when the verdict has become another. It may sleep, but not call
 * these two. When unregistering returns, no call is running. Return:
 *   0		done
 *   -EEXIST	it is registered already
 *   -ENOENT	it is not registered
 *   -EINVAL	@block is NULL, or has no function to call
 */
int apic_clock_register_notifier(struct notifier_block *block);
int apic_clock_unregister_notifier(struct notifier_block *block);

/**
 * struct apic_clock_resync - what is known of the stops of a CPU's TSC
 * @offset:	common time less this CPU's TSC, cycles
 * @error:	half the width of the bounds of the last comparison, cycles. Most of it
 *		is what reading the counter takes, which is the same each time.
 * @stops:	how often the TSC was found to have stopped
 * @lost:	cycles that it lost by that
 * @longest:	the most of one stop
 * @ahead:	how often it was found ahead of where it should be: it was written to,
 *		or the counter has stopped
 * @rejected:	comparisons that contradicted themselves
 *
 * Common time goes on when a CPU's TSC stops. It is computed from a counter that never
 * stops, HPET or PM timer, and runs as fast as the TSC. After a sleep of the machine
 * it begins anew.
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
 * Get what is known of a CPU. Any context but NMI. Return:
 *   0		@resync is filled in
 *   -EINVAL	no such CPU, or @resync is NULL
 *   -ENODEV	there is no counter to compare TSCs with
 *   -ENODATA	nothing is known of this CPU yet
 */
int apic_clock_get_resync(int cpu, struct apic_clock_resync *resync);

/* Common time, in TSC cycles. It never goes back on a CPU. Any context but NMI. */
u64 apic_clock_common_now(void);

/* Flags of a group. */

/* Take how far the CPUs' TSCs are apart into account, as apic_clock_get_skew() has it. */
#define APIC_CLOCK_GROUP_CORRECT	0x1U
/* All handlers are called, or none: see apic_clock_group_alloc(). */
#define APIC_CLOCK_GROUP_ALL		0x2U

/**
 * struct apic_clock_receipt - what became of a group's expiry
 * @when:	the moment as it was armed, TSC of the reference CPU if the group
 *		corrects, else of each CPU; as timers do, it moves with the TSC in a
 *		sleep
 * @ret:	0: all handlers were called; -EAGAIN: none was, as one CPU was not
 *		there in time; -ECANCELED: cancelled, see @called
 * @called:	how many handlers were called
 * @first:	start of the first handler less @when, TSC cycles
 * @last:	likewise of the last one: the starts are @last - @first apart
 * @error:	how much more or less apart they may be, as the TSCs are known no
 *		better, TSC cycles; U64_MAX if nothing is known of a CPU's
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
 * @function is called as that of a timer is, on each CPU; then @done, unless it is
 * NULL, on the CPU that is last, in hard interrupt context, too: also for an expiry
 * that is cancelled, or that is over before apic_clock_group_fire() is. Task context;
 * sleeps. Returns NULL without memory, for no or unknown CPUs, or unknown flags.
 *
 * With APIC_CLOCK_GROUP_ALL each CPU enters its interrupt some microseconds
 * before the moment and waits in it. The first that is within 1.5 us of the moment
 * looks whether all are there, and decides for all.
 */
struct apic_clock_group *
apic_clock_group_alloc(const struct cpumask *cpus,
		       void (*function)(unsigned long long now, unsigned long data),
		       void (*done)(const struct apic_clock_receipt *receipt, unsigned long data),
		       unsigned long data, unsigned int flags);

/* Cancel what is pending, wait for handlers, and free the memory. Task context; sleeps. */
void apic_clock_group_free(struct apic_clock_group *group);

/*
 * Arm a group for @when, TSC. Any context but NMI, also @done, but not @function.
 * Return:
 *   0		armed; @done will be called once
 *   -EBUSY	its last expiry is not over
 *   -ECANCELED	it is being cancelled
 *   -ENODEV	a CPU does not accept timers; the others are taken out again
 *   -ETIME	@when is nearer than 20 us: no handler will be called
 */
int apic_clock_group_fire(struct apic_clock_group *group, u64 when);

/* Cancel an expiry; task context; sleeps. When this returns, @done has returned. */
void apic_clock_group_cancel(struct apic_clock_group *group);

#endif /* _LINUX_APIC_CLOCK_H */
