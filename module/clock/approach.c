// SPDX-License-Identifier: GPL-2.0
/*
 * The approach of a timer to its moment: its states, and the transitions between them.
 *
 * Far from its moment a timer is an hrtimer of its clock. The kernel moves the hrtimer with
 * the clock, so it follows steering, steps, leap seconds and suspends. Two milliseconds
 * before the moment, the CPU's own timer is armed for the TSC value at which the clock will
 * read the moment, so that the CPU is kept awake for it and the hardware is programmed early
 * enough. Shortly before, the moment is converted once more: the kernel's clock may have
 * moved by a cycle because of the last bit of its rate, or may have been set. Changes after
 * that are not followed: 500 ppm, the most that NTP may steer, amount to 25 ns by then.
 *
 *	FAR ---approach---> NEAR ---check---> LAST ---expiry---> IDLE
 *	 ^                   ^ |               ^
 *	 |                   | v               |
 *	 +------------------ MOVING -----------+
 *
 * MOVING is short; a timer passes through it each time the CPU's timer is armed.
 *
 * A timer approaches its moment in steps, each of which leaves an eighth of the way. On an
 * idle CPU the kernel programs its next event by the clock's present rate. If the clock is
 * made faster meanwhile, the event is late. The tick's length can change by a tenth.
 *
 * CLOCK_MONOTONIC_RAW and PTP clocks have no hrtimers. Their timers are approached by
 * hrtimers of CLOCK_MONOTONIC.
 *
 * Without high resolution (highres=off) the kernel runs hrtimers only in its ticks. All
 * steps then begin two ticks earlier, so that they are done in time.
 *
 * Lock order: a timer's lock is taken before its list's lock and the locks of hrtimers and
 * of the core's timers. No code waits for an hrtimer callback while it holds a timer's lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include <trace/events/apic_clock.h>

#include "approach.h"
#include "compat.h"
#include "leaving.h"
#include "list.h"
#include "phc_line.h"

/* Times before the moment, ns: arm the CPU's timer, and check the conversion once more. */
#define NEAR_NS		(2 * (s64)NSEC_PER_MSEC)
#define CHECK_NS	(50 * (s64)NSEC_PER_USEC)

struct apic_clock_stats apic_clock_stats;

/**
 * apic_clock_timer_settle() - remove a timer from the list, unless an hrtimer is still queued
 * @timer:	timer that is IDLE or LAST
 *
 * An hrtimer that was restarted by its own callback cannot be cancelled before the callback
 * has returned:
 *
 *	CPU0: approach()                        CPU1: del_apic_timer_at()
 *	  start(&timer->approach)
 *	  unlock
 *	                                        lock
 *	                                        hrtimer_try_to_cancel() = -1
 *	  returns
 *
 * The restarted callback finds the timer IDLE, and calls this function again.
 *
 * Context: Under the timer's lock, interrupts off.
 */
void apic_clock_timer_settle(struct apic_clock_timer *timer)
{
	lockdep_assert_held(&timer->lock);
	if (!hrtimer_is_queued(&timer->approach) && !hrtimer_is_queued(&timer->check))
		apic_clock_timer_delist(timer);
}

/* Called by a callback that has nothing else to do. */
static void settle_if_over(struct apic_clock_timer *timer)
{
	lockdep_assert_held(&timer->lock);
	if (timer->state == APIC_CLOCK_IDLE || timer->state == APIC_CLOCK_LAST)
		apic_clock_timer_settle(timer);
}

static void start(struct apic_clock_timer *timer, struct hrtimer *hrtimer, ktime_t at)
{
	apic_clock_timer_enlist(timer);
	hrtimer_start(hrtimer, max_t(ktime_t, at, 0), HRTIMER_MODE_ABS_PINNED_HARD);
}

/* Maximum delay of an hrtimer, ns. */
static s64 hrtimers_late(void)
{
	return hrtimer_resolution < TICK_NSEC ? 0 : 2 * TICK_NSEC;
}

/* Minimum time before a moment at which the CPU's timer is armed for it, ns. */
static s64 near_ns(void)
{
	return NEAR_NS + hrtimers_late();
}

/* Check for a clock without hrtimers, which is approached by CLOCK_MONOTONIC. */
static bool by_monotonic(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC_RAW || apic_clock_is_phc(clock);
}

/**
 * apic_clock_is_gone() - check whether a clock is a PTP clock that is gone
 * @clock:	clock that a timer was armed for
 *
 * Context: Any but NMI.
 * Return: true if no timer can be armed for it any more.
 */
bool apic_clock_is_gone(clockid_t clock)
{
	struct apic_clock_phc_line line;

	return apic_clock_is_phc(clock) && apic_clock_phc_line(clock, &line);
}

/* The TSC value at which the timer expires, by its clock's present line. */
static u64 moment_of(const struct apic_clock_timer *timer)
{
	u64 error, tsc = apic_clock_to_tsc(timer->clock, timer->when, &error);

	return timer->flags & APIC_CLOCK_AFTER ? apic_timer_add_tsc(tsc, error) : tsc;
}

/* Time until @tsc, in ns of CLOCK_MONOTONIC, which cannot be set. */
static s64 until(u64 tsc)
{
	return apic_timer_tsc_to_clock(CLOCK_MONOTONIC, tsc) - ktime_get();
}

/*
 * Arm the CPU's timer, or another CPU's if it is offline. It may also be this CPU, going
 * offline: the core accepts no timers there any more while hrtimers still run.
 */
static int arm(struct apic_clock_timer *timer, u64 tsc)
{
	int ret, cpu;

	timer->timer.expires = tsc;
	ret = add_apic_timer_on(&timer->timer, timer->cpu);
	if (likely(ret != -ENODEV))
		return ret;
	for_each_cpu_wrap(cpu, cpu_online_mask, smp_processor_id()) {
		timer->cpu = cpu;
		ret = add_apic_timer_on(&timer->timer, cpu);
		if (ret != -ENODEV)
			break;
	}
	return ret;
}

/*
 * Return: true if a callback is running. hrtimer_cancel() would wait for it without the
 * lock, while apic_clock_timer_set_clock() initialises the approach as another hrtimer:
 *
 *	CPU0: handler                           CPU1: del_apic_timer_at_sync()
 *	  add_apic_timer_at(), another clock
 *	    apic_clock_timer_set_clock()        hrtimer_cancel(&timer->approach)
 *	      timer->approach.base = NULL
 *	                                          reads from base
 */
static bool cancel_hrtimers(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	bool callback;

	lockdep_assert_held(&timer->lock);
	callback = hrtimer_try_to_cancel(&timer->approach) < 0;
	callback |= hrtimer_try_to_cancel(&timer->check) < 0;
	apic_clock_timer_settle(timer);
	return callback;
}

/**
 * apic_clock_timer_take_out() - cancel a timer in any of its states
 * @timer:	the timer
 * @to:		its new state: IDLE; or MOVING, if it is armed again at once, and has to look
 *		pending meanwhile
 * @callback:	set: true if a callback of its hrtimers is running
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: as del_apic_timer().
 */
int apic_clock_timer_take_out(struct apic_clock_timer *timer, unsigned int to, bool *callback)
	__must_hold(&timer->lock)
{
	unsigned int state = timer->state;
	int ret;

	lockdep_assert_held(&timer->lock);
	/* A running callback sees this state once it has the lock. */
	WRITE_ONCE(timer->state, to);
	/* Pairs with is_pending() in timer.c: a CPU that sees it deleted sees the state. */
	smp_wmb();
	*callback = cancel_hrtimers(timer);
	ret = del_apic_timer(&timer->timer);
	if (state == APIC_CLOCK_FAR)
		return 1;
	/* The timer was armed before, even if the CPU's timer never was. */
	return ret == -ENOENT && timer->cpu >= 0 ? 0 : ret;
}

/*
 * A PTP clock may vanish, or be set, while we arm one of its timers. Either the search for
 * the clock's timers finds this one and waits for its lock, or we see the clock's new line:
 *
 *	CPU0: apic_clock_timer_advance()        CPU1: read_work() of phc.c
 *	                                          publishes it
 *	                                          looks for timers: this is none
 *	  puts it into the list
 *	  converts by what is published
 */
static void have_found(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	if (!apic_clock_is_phc(timer->clock))
		return;
	apic_clock_timer_enlist(timer);
	/*
	 * It may have been in the list already, as a timer of another clock. Pairs with the
	 * lock that next_of() in list.c takes before it compares clocks.
	 */
	smp_mb();
}

/**
 * apic_clock_timer_advance() - do the next step of a timer that is not armed anywhere
 * @timer:	the timer; its clock, moment and CPU are set
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: 0; -ENODEV if its clock is gone; otherwise as add_apic_timer_on().
 */
int apic_clock_timer_advance(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	s64 left, near = near_ns(), check = CHECK_NS + hrtimers_late();
	u64 tsc;
	int ret;

	lockdep_assert_held(&timer->lock);
	/* Before the state, for is_pending() in timer.c. */
	WRITE_ONCE(timer->armed, timer->armed + 1);
	/* The check may still be queued if the last expiry came before it. */
	hrtimer_try_to_cancel(&timer->check);
	have_found(timer);
	if (apic_clock_is_gone(timer->clock)) {
		timer->state = APIC_CLOCK_IDLE;
		apic_clock_timer_settle(timer);
		return -ENODEV;
	}
	/* Convert once: if the clock is set or vanishes here, state and armed value still agree. */
	tsc = moment_of(timer);
	left = until(tsc);
	if (left >= 2 * near) {
		timer->state = APIC_CLOCK_FAR;
		if (!by_monotonic(timer->clock))
			start(timer, &timer->approach, timer->when - near - left / 8);
		else
			start(timer, &timer->check,
			      ktime_add_safe(ktime_get(), left - left / 8 - near));
		return 0;
	}

	/* It may expire at once, on another CPU: see is_pending() in timer.c. */
	WRITE_ONCE(timer->state, APIC_CLOCK_MOVING);
	ret = arm(timer, tsc);
	if (ret) {
		timer->state = APIC_CLOCK_IDLE;
		apic_clock_timer_settle(timer);
		return ret;
	}
	trace_apic_clock_convert(timer, tsc);
	atomic64_inc(&apic_clock_stats.approached);
	if (left > 2 * check) {
		timer->state = APIC_CLOCK_NEAR;
		start(timer, &timer->check, ktime_get() + left - check);
		return 0;
	}
	timer->state = APIC_CLOCK_LAST;
	apic_clock_timer_settle(timer);
	return 0;
}

/**
 * apic_clock_timer_advance_late() - do a timer's next step from a callback
 * @timer:	the timer
 *
 * A timer whose module is being unloaded is not advanced.
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: 0 or an error, for apic_clock_timer_unlock_and_report().
 */
int apic_clock_timer_advance_late(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	int ret;

	if (apic_clock_timer_is_leaving(timer)) {
		timer->state = APIC_CLOCK_IDLE;
		apic_clock_timer_settle(timer);
		return 0;
	}
	ret = apic_clock_timer_advance(timer);
	if (ret) {
		atomic64_inc(&apic_clock_stats.lost);
		if (!apic_clock_is_gone(timer->clock))
			pr_warn_once("timer of %ps is lost: no CPU accepts it\n",
				     timer->timer.function);
	}
	return ret;
}

/* The timer whose owner this CPU is notifying. */
static DEFINE_PER_CPU(const struct apic_clock_timer *, reported);

/**
 * apic_clock_timer_unlock_and_report() - unlock a timer, and notify its owner if it is lost
 * @timer:	the timer
 * @ret:	0: it is not lost, and is only unlocked
 *
 * Interrupts stay off, so that del_apic_timer_at_sync() can wait for this by spinning.
 *
 * Context: Under the timer's lock, which is released, interrupts off.
 */
void apic_clock_timer_unlock_and_report(struct apic_clock_timer *timer, int ret)
	__releases(&timer->lock)
{
	if (!ret || !timer->lost) {
		raw_spin_unlock(&timer->lock);
		return;
	}
	atomic_inc(&timer->reports);
	raw_spin_unlock(&timer->lock);
	__this_cpu_write(reported, timer);
	timer->lost(timer, -ENODEV);
	__this_cpu_write(reported, NULL);
	/* Pairs with del_apic_timer_at_sync(), after which the timer may be freed. */
	atomic_dec_return_release(&timer->reports);
}

/**
 * apic_clock_timer_is_reported() - check whether this CPU is notifying a timer's owner
 * @timer:	the timer
 *
 * Context: Any.
 * Return: true within @timer->lost.
 */
bool apic_clock_timer_is_reported(const struct apic_clock_timer *timer)
{
	/* It equals @timer only within @lost, where we stay on this CPU. */
	return raw_cpu_read(reported) == timer;
}

static enum hrtimer_restart approach(struct hrtimer *hrtimer)
{
	struct apic_clock_timer *timer = container_of(hrtimer, struct apic_clock_timer, approach);
	unsigned long flags;
	int ret = 0;

	local_irq_save(flags);
	raw_spin_lock(&timer->lock);
	/* Otherwise the timer was deleted or armed anew before we got the lock. */
	if (timer->state == APIC_CLOCK_FAR && !hrtimer_is_queued(hrtimer))
		ret = apic_clock_timer_advance_late(timer);
	else
		settle_if_over(timer);
	apic_clock_timer_unlock_and_report(timer, ret);
	local_irq_restore(flags);
	return HRTIMER_NORESTART;
}

static int check_again(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	u64 tsc = moment_of(timer);

	atomic64_inc(&apic_clock_stats.checked);
	/* A new epoch of the TSC may be moving the timer; then the comparison does not matter. */
	if (tsc != READ_ONCE(timer->timer.expires) && apic_timer_pending(&timer->timer)) {
		WRITE_ONCE(timer->state, APIC_CLOCK_MOVING);
		/* Pairs with is_pending() in timer.c: a CPU that sees it deleted sees the state. */
		smp_wmb();
		/* It may have expired, on another CPU. */
		if (del_apic_timer(&timer->timer) == 1) {
			atomic64_inc(until(tsc) >= 2 * near_ns() ?
				     &apic_clock_stats.stepped : &apic_clock_stats.moved);
			return apic_clock_timer_advance_late(timer);
		}
	}
	timer->state = APIC_CLOCK_LAST;
	apic_clock_timer_settle(timer);
	return 0;
}

static enum hrtimer_restart check(struct hrtimer *hrtimer)
{
	struct apic_clock_timer *timer = container_of(hrtimer, struct apic_clock_timer, check);
	unsigned long flags;
	int ret = 0;

	local_irq_save(flags);
	raw_spin_lock(&timer->lock);
	if (!hrtimer_is_queued(hrtimer)) {
		if (timer->state == APIC_CLOCK_FAR && by_monotonic(timer->clock))
			ret = apic_clock_timer_advance_late(timer);
		else if (timer->state == APIC_CLOCK_NEAR)
			ret = check_again(timer);
		else
			settle_if_over(timer);
	}
	apic_clock_timer_unlock_and_report(timer, ret);
	local_irq_restore(flags);
	return HRTIMER_NORESTART;
}

/**
 * apic_clock_timer_setup() - initialise the hrtimers of a timer
 * @timer:	the timer; the caller sets its state afterwards
 *
 * Context: Any but NMI.
 */
void apic_clock_timer_setup(struct apic_clock_timer *timer)
{
	apic_clock_hrtimer_setup(&timer->approach, approach, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	apic_clock_hrtimer_setup(&timer->check, check, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
}

/**
 * apic_clock_timer_set_clock() - set the clock of a timer that is not pending
 * @timer:	the timer
 * @clock:	the clock
 *
 * The approach is an hrtimer of one clock. Its callback may still be running. Do not wait for one
 * that notifies the timer's owner: the caller may be the owner that is notified, or hold a lock
 * that it waits for.
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: 0; -EAGAIN while the callback runs: unlock, and try again; -EBUSY if it notifies the
 * timer's owner.
 */
int apic_clock_timer_set_clock(struct apic_clock_timer *timer, clockid_t clock)
	__must_hold(&timer->lock)
{
	if (timer->clock == clock)
		return 0;
	if (hrtimer_try_to_cancel(&timer->approach) < 0)
		return atomic_read(&timer->reports) ? -EBUSY : -EAGAIN;
	timer->clock = clock;
	if (!by_monotonic(clock))
		apic_clock_hrtimer_setup(&timer->approach, approach, clock,
					 HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}
