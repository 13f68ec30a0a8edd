// SPDX-License-Identifier: GPL-2.0
/*
 * How a timer comes near: its states, and what carries it from one to the next.
 *
 * Far from its moment a timer is an hrtimer of its clock, which the kernel moves
 * with the clock: that follows steering, steps, leap seconds and sleep. Two
 * milliseconds before, the CPU's own timer is armed for the TSC value at which the
 * clock will read the moment, so that the CPU is kept awake for it and armed early
 * enough. Shortly before, the moment is converted once more: by the last bit of
 * its rate the kernel's clock may have moved by a cycle meanwhile, or it may have
 * been set. From there on nothing follows: 500 ppm, all that NTP may steer, are 25
 * ns by then.
 *
 *	FAR ---approach---> NEAR ---check---> LAST ---expiry---> IDLE
 *	 ^                   ^ |               ^
 *	 |                   | v               |
 *	 +------------------ MOVING -----------+
 *
 * MOVING is short, and passed through each time that the CPU's timer is armed.
 *
 * The moment is approached in steps, an eighth of the way being left each time. On
 * an idle CPU the kernel programs its next event by the rate that its clock has
 * then: when the clock is made faster meanwhile, the event is late. The tick's
 * length can change by a tenth.
 *
 * CLOCK_MONOTONIC_RAW and PTP clocks have no hrtimers: they are approached by those of
 * CLOCK_MONOTONIC.
 *
 * Without high resolution (highres=off) the kernel runs hrtimers in its ticks only.
 * All of this begins two ticks earlier then, so that it is done in time.
 *
 * A timer's lock is the outer one of its list's and of those of hrtimers and
 * of timers. No callback of an hrtimer is waited for under it.
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

/* Before the moment, ns: arm for it, and check once more. */
#define NEAR_NS		(2 * (s64)NSEC_PER_MSEC)
#define CHECK_NS	(50 * (s64)NSEC_PER_USEC)

struct apic_clock_stats apic_clock_stats;

/**
 * apic_clock_timer_settle() - have a timer leave the list, unless an hrtimer is queued still
 * @timer:	timer that is IDLE or LAST
 *
 * One that its callback has started again cannot be cancelled before that has returned:
 *
 *	CPU0: approach()                        CPU1: del_apic_timer_at()
 *	  start(&timer->approach)
 *	  unlock
 *	                                        lock
 *	                                        hrtimer_try_to_cancel() = -1
 *	  returns
 *
 * That finds it IDLE, and calls this again.
 *
 * Context: Under the timer's lock, interrupts off.
 */
void apic_clock_timer_settle(struct apic_clock_timer *timer)
{
	lockdep_assert_held(&timer->lock);
	if (!hrtimer_is_queued(&timer->approach) && !hrtimer_is_queued(&timer->check))
		apic_clock_timer_delist(timer);
}

/* In a callback that has nothing to do. */
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

/* How late the kernel may run an hrtimer, ns. */
static s64 hrtimers_late(void)
{
	return hrtimer_resolution < TICK_NSEC ? 0 : 2 * TICK_NSEC;
}

/* How long before a moment the CPU's timer is armed for it, at least, ns. */
static s64 near_ns(void)
{
	return NEAR_NS + hrtimers_late();
}

/* It has no hrtimers of its own. */
static bool by_monotonic(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC_RAW || apic_clock_is_phc(clock);
}

/**
 * apic_clock_is_gone() - check whether a clock is a PTP clock that has gone
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

/* The TSC value that the timer expires at, by what its clock does now. */
static u64 moment_of(const struct apic_clock_timer *timer)
{
	u64 error, tsc = apic_clock_to_tsc(timer->clock, timer->when, &error);

	return timer->flags & APIC_CLOCK_AFTER ? apic_timer_add_tsc(tsc, error) : tsc;
}

/* How long it is until then, ns of CLOCK_MONOTONIC, which nobody sets. */
static s64 until(u64 tsc)
{
	return apic_timer_tsc_to_clock(CLOCK_MONOTONIC, tsc) - ktime_get();
}

/*
 * Arm the CPU's timer, or that of another: the CPU may be gone. It may also be this one, on
 * its way off, where the core accepts no timer any more while hrtimers still run.
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
 * Return: true if a callback is under way. hrtimer_cancel() would wait for it without the
 * lock, while apic_clock_timer_set_clock() makes another hrtimer of the approach:
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
 * apic_clock_timer_take_out() - take a timer out of wherever it is
 * @timer:	the timer
 * @callback:	set: true if a callback of its hrtimers is under way
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: as del_apic_timer().
 */
int apic_clock_timer_take_out(struct apic_clock_timer *timer, bool *callback)
	__must_hold(&timer->lock)
{
	unsigned int state = timer->state;
	int ret;

	lockdep_assert_held(&timer->lock);
	/* A callback that is under way finds the state, once it has the lock. */
	timer->state = APIC_CLOCK_IDLE;
	*callback = cancel_hrtimers(timer);
	ret = del_apic_timer(&timer->timer);
	if (state == APIC_CLOCK_FAR)
		return 1;
	/* It was armed, if not as far as the CPU's timer. */
	return ret == -ENOENT && timer->cpu >= 0 ? 0 : ret;
}

/*
 * A PTP clock may go, or be set, while a timer of it is armed. Whoever looks for its timers
 * then finds this one, and waits for its lock; or what has become of the clock shows here:
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
	 * It may have been there already, as one of another clock. Pairs with the lock that
	 * next_of() of list.c takes before it compares clocks.
	 */
	smp_mb();
}

/**
 * apic_clock_timer_advance() - do what is next for a timer that is armed nowhere
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
	/* Before the state, for is_pending() of timer.c. */
	WRITE_ONCE(timer->armed, timer->armed + 1);
	/* It may be there still when the last expiry came before it. */
	hrtimer_try_to_cancel(&timer->check);
	have_found(timer);
	if (apic_clock_is_gone(timer->clock)) {
		timer->state = APIC_CLOCK_IDLE;
		apic_clock_timer_settle(timer);
		return -ENODEV;
	}
	/* Once: where the clock is set, or goes, just here, it is far by what is armed too. */
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

	/* It may expire at once, on another CPU: see is_pending() of timer.c. */
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
 * apic_clock_timer_advance_late() - likewise when nobody waits for what this returns
 * @timer:	the timer
 *
 * One whose module is being unloaded goes no further.
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
 * apic_clock_timer_unlock_and_report() - notify a timer's owner if it is lost
 * @timer:	the timer
 * @ret:	0: it is not, and is unlocked only
 *
 * Interrupts stay off, so that del_apic_timer_at_sync() can wait for this by spinning.
 *
 * Context: Under the timer's lock, which it gives up, interrupts off.
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
	/* Pairs with del_apic_timer_at_sync(), after which its memory is freed. */
	atomic_dec_return_release(&timer->reports);
}

/**
 * apic_clock_timer_is_reported() - check whether it is this CPU that notifies a timer's owner
 * @timer:	the timer
 *
 * Context: Any.
 * Return: true within @timer->lost.
 */
bool apic_clock_timer_is_reported(const struct apic_clock_timer *timer)
{
	/* Only within @lost, where we stay on this CPU, is it ours. */
	return raw_cpu_read(reported) == timer;
}

static enum hrtimer_restart approach(struct hrtimer *hrtimer)
{
	struct apic_clock_timer *timer = container_of(hrtimer, struct apic_clock_timer, approach);
	unsigned long flags;
	int ret = 0;

	local_irq_save(flags);
	raw_spin_lock(&timer->lock);
	/* Otherwise it was deleted or armed anew before we had the lock. */
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
	/* A new epoch of the TSC may be moving it; it does not matter then. */
	if (tsc != READ_ONCE(timer->timer.expires) && apic_timer_pending(&timer->timer)) {
		WRITE_ONCE(timer->state, APIC_CLOCK_MOVING);
		/* Pairs with is_pending() of timer.c: who sees it taken out sees the state, too. */
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
 * apic_clock_timer_setup() - initialise what carries a timer, which is IDLE then
 * @timer:	the timer, whose state is still to be written
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
 * apic_clock_timer_set_clock() - have a timer that is not pending approached by a clock
 * @timer:	the timer
 * @clock:	the clock
 *
 * The approach is an hrtimer of one clock. It may be in its callback still.
 *
 * Context: Under the timer's lock, interrupts off.
 * Return: false while it is: unlock, and try again.
 */
bool apic_clock_timer_set_clock(struct apic_clock_timer *timer, clockid_t clock)
	__must_hold(&timer->lock)
{
	if (timer->clock == clock)
		return true;
	if (hrtimer_try_to_cancel(&timer->approach) < 0)
		return false;
	timer->clock = clock;
	if (!by_monotonic(clock))
		apic_clock_hrtimer_setup(&timer->approach, approach, clock,
					 HRTIMER_MODE_ABS_PINNED_HARD);
	return true;
}
