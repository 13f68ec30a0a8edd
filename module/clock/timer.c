// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of the kernel's clocks.
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
 * CLOCK_MONOTONIC. When a PTP clock is set, or the machine has slept, its timers are aimed
 * anew; when it is gone, they are cancelled.
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
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include "compat.h"
#include "list.h"
#include "phc_line.h"
#include "timer.h"
#include "unload.h"

/* Before the moment, ns: arm for it, and check once more. */
#define NEAR_NS		(2 * (s64)NSEC_PER_MSEC)
#define CHECK_NS	(50 * (s64)NSEC_PER_USEC)

/* Unlikely values, so that what was never initialised is recognised. */
enum state {
	IDLE = 0x41430001,	/* neither FAR nor NEAR; its last check may be over */
	FAR,			/* @approach is pending, or @check for RAW */
	NEAR,			/* @timer is armed, and @check is pending */
	MOVING,			/* @timer is armed, or taken out for that unless it expires */
	LAST,			/* @timer was armed, and nothing else will happen */
};

struct apic_clock_stats apic_clock_stats;

static bool known(const struct apic_clock_timer *timer)
{
	return timer && READ_ONCE(timer->state) - IDLE <= LAST - IDLE;
}

/* Same errors as those of the core, which are logged once each there. */
#define refuse(ret, format, ...) ({			\
	pr_warn_once(format "\n", ##__VA_ARGS__);	\
	(ret);						\
})

static int check_timer(const struct apic_clock_timer *timer)
{
	if (in_nmi())
		return refuse(-EPERM, "called from NMI");
	if (!known(timer))
		return refuse(-EINVAL, "timer %p is not initialised", timer);
	return 0;
}

static int check_clock(clockid_t clock)
{
	ktime_t earliest, latest;

	return apic_clock_now(clock, &earliest, &latest);
}

/* What the core would say two milliseconds before the moment, when it is too late. */
static int check_arm(const struct apic_clock_timer *timer, clockid_t clock, int cpu)
{
	unsigned int mode = timer->timer.flags & APIC_TIMER_MODE_MASK;
	struct apic_timer_info info;
	int ret;

	if (!timer->timer.function)
		return refuse(-EINVAL, "timer %p has no function", timer);
	if (timer->timer.flags & ~APIC_TIMER_FLAGS || timer->flags & ~APIC_CLOCK_AFTER)
		return refuse(-EINVAL, "timer of %ps has unknown flags %#x, %#x",
			      timer->timer.function, timer->timer.flags, timer->flags);
	if (timer->timer.spin_budget && mode && mode != APIC_TIMER_EXACT)
		return refuse(-EINVAL, "timer of %ps has a spin budget but does not spin",
			      timer->timer.function);
	ret = check_clock(clock);
	if (ret)
		return refuse(ret, "timer of %ps: there is no clock %d", timer->timer.function,
			      clock);
	return apic_timer_query(cpu, &info);
}

/*
 * It leaves the list, unless an hrtimer is queued still. One that its callback has started
 * again cannot be cancelled before that has returned:
 *
 *	CPU0: approach()                        CPU1: del_apic_timer_at()
 *	  start(&timer->approach)
 *	  unlock
 *	                                        lock
 *	                                        hrtimer_try_to_cancel() = -1
 *	  returns
 *
 * That finds it IDLE, and calls this again.
 */
static void settle(struct apic_clock_timer *timer)
{
	lockdep_assert_held(&timer->lock);
	if (!hrtimer_is_queued(&timer->approach) && !hrtimer_is_queued(&timer->check))
		apic_clock_timer_delist(timer);
}

/* In a callback that has nothing to do. */
static void settle_if_over(struct apic_clock_timer *timer)
{
	lockdep_assert_held(&timer->lock);
	if (timer->state == IDLE || timer->state == LAST)
		settle(timer);
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

static bool is_gone(clockid_t clock)
{
	struct apic_clock_phc_line line;

	return apic_clock_is_phc(clock) && apic_clock_phc_line(clock, &line);
}

static s64 remaining(const struct apic_clock_timer *timer)
{
	s64 now = apic_clock_from_tsc(timer->clock, apic_timer_now()), left;

	if (check_sub_overflow(timer->when, now, &left))
		return timer->when > now ? S64_MAX : S64_MIN;
	return left;
}

/* The TSC value that the timer expires at, by what its clock does now. */
static u64 moment_of(const struct apic_clock_timer *timer)
{
	u64 error, tsc = apic_clock_to_tsc(timer->clock, timer->when, &error);

	return timer->flags & APIC_CLOCK_AFTER ? apic_timer_add_tsc(tsc, error) : tsc;
}

/* Arm the CPU's timer; the CPU may be gone. */
static int arm(struct apic_clock_timer *timer, u64 tsc)
{
	int ret;

	timer->timer.expires = tsc;
	ret = add_apic_timer_on(&timer->timer, timer->cpu);
	if (ret != -ENODEV)
		return ret;
	timer->cpu = smp_processor_id();
	return add_apic_timer(&timer->timer);
}

/*
 * Return: true if a callback is under way. hrtimer_cancel() would wait for it without the
 * lock, while set_clock() makes another hrtimer of the approach:
 *
 *	CPU0: handler                           CPU1: del_apic_timer_at_sync()
 *	  add_apic_timer_at(), another clock
 *	    set_clock()                         hrtimer_cancel(&timer->approach)
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
	settle(timer);
	return callback;
}

/*
 * Take it out of wherever it is. Return: as del_apic_timer(), and in @callback as
 * cancel_hrtimers().
 */
static int take_out(struct apic_clock_timer *timer, bool *callback)
	__must_hold(&timer->lock)
{
	unsigned int state = timer->state;
	int ret;

	lockdep_assert_held(&timer->lock);
	/* A callback that is under way finds the state, once it has the lock. */
	timer->state = IDLE;
	*callback = cancel_hrtimers(timer);
	ret = del_apic_timer(&timer->timer);
	if (state == FAR)
		return 1;
	/* It was armed, if not as far as the CPU's timer. */
	return ret == -ENOENT && timer->cpu >= 0 ? 0 : ret;
}

/*
 * A clock may go while a timer of it is armed:
 *
 *	CPU0: advance()                         CPU1: end() of phc.c
 *	  the clock is there
 *	                                          it is gone
 *	                                          looks for its timers: this is none
 *	  start(), which puts it into the list
 *	  the clock is gone
 */
static int armed_if_not_gone(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	bool callback;

	if (likely(!is_gone(timer->clock)))
		return 0;
	/* It may have expired meanwhile. */
	return take_out(timer, &callback) == 1 ? -ENODEV : 0;
}

/* Do what is next for a timer that is armed nowhere. */
static int advance(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	s64 left = remaining(timer), near = near_ns(), check = CHECK_NS + hrtimers_late();
	int ret;

	lockdep_assert_held(&timer->lock);
	/* Before the state, for is_pending(). */
	WRITE_ONCE(timer->armed, timer->armed + 1);
	/* It may be there still when the last expiry came before it. */
	hrtimer_try_to_cancel(&timer->check);
	if (is_gone(timer->clock)) {
		timer->state = IDLE;
		settle(timer);
		return -ENODEV;
	}
	if (left >= 2 * near) {
		timer->state = FAR;
		if (!by_monotonic(timer->clock))
			start(timer, &timer->approach, timer->when - near - left / 8);
		else
			start(timer, &timer->check,
			      ktime_add_safe(ktime_get(), left - left / 8 - near));
		return armed_if_not_gone(timer);
	}

	/* It may expire at once, on another CPU: see is_pending(). */
	WRITE_ONCE(timer->state, MOVING);
	ret = arm(timer, moment_of(timer));
	if (ret) {
		timer->state = IDLE;
		settle(timer);
		return ret;
	}
	atomic64_inc(&apic_clock_stats.approached);
	if (left > 2 * check) {
		timer->state = NEAR;
		start(timer, &timer->check, ktime_get() + left - check);
		return armed_if_not_gone(timer);
	}
	timer->state = LAST;
	settle(timer);
	return 0;
}

/* Nobody waits for what this returns: an error is for unlock_and_report(). */
static int advance_late(struct apic_clock_timer *timer)
	__must_hold(&timer->lock)
{
	int ret;

	if (apic_clock_timer_is_leaving(timer)) {
		timer->state = IDLE;
		settle(timer);
		return 0;
	}
	ret = advance(timer);
	if (ret) {
		atomic64_inc(&apic_clock_stats.lost);
		if (!is_gone(timer->clock))
			pr_warn_once("timer of %ps is lost: no CPU accepts it\n",
				     timer->timer.function);
	}
	return ret;
}

/* The timer whose owner this CPU is notifying. */
static DEFINE_PER_CPU(const struct apic_clock_timer *, reported);

/*
 * Notify a timer's owner that it is lost, unless @ret is 0. Interrupts stay off, so that
 * del_apic_timer_at_sync() can wait for this by spinning.
 */
static void unlock_and_report(struct apic_clock_timer *timer, int ret)
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

static enum hrtimer_restart approach(struct hrtimer *hrtimer)
{
	struct apic_clock_timer *timer = container_of(hrtimer, struct apic_clock_timer, approach);
	unsigned long flags;
	int ret = 0;

	local_irq_save(flags);
	raw_spin_lock(&timer->lock);
	/* Otherwise it was deleted or armed anew before we had the lock. */
	if (timer->state == FAR && !hrtimer_is_queued(hrtimer))
		ret = advance_late(timer);
	else
		settle_if_over(timer);
	unlock_and_report(timer, ret);
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
		WRITE_ONCE(timer->state, MOVING);
		/* Pairs with is_pending(): who sees it taken out sees the state, too. */
		smp_wmb();
		/* It may have expired, on another CPU. */
		if (del_apic_timer(&timer->timer) == 1) {
			atomic64_inc(remaining(timer) >= 2 * near_ns() ?
				     &apic_clock_stats.stepped : &apic_clock_stats.moved);
			return advance_late(timer);
		}
	}
	timer->state = LAST;
	settle(timer);
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
		if (timer->state == FAR && by_monotonic(timer->clock))
			ret = advance_late(timer);
		else if (timer->state == NEAR)
			ret = check_again(timer);
		else
			settle_if_over(timer);
	}
	unlock_and_report(timer, ret);
	local_irq_restore(flags);
	return HRTIMER_NORESTART;
}

static bool is_of(const struct apic_clock_timer *timer, const void *clock)
{
	return READ_ONCE(timer->clock) == *(const clockid_t *)clock;
}

static unsigned int lose(struct apic_clock_timer *timer)
	__releases(&timer->lock)
{
	bool callback;
	bool pending = (timer->state == FAR || timer->state == NEAR) && is_gone(timer->clock) &&
		       take_out(timer, &callback) == 1;

	if (pending)
		atomic64_inc(&apic_clock_stats.lost);
	unlock_and_report(timer, pending ? -ENODEV : 0);
	return pending;
}

/**
 * apic_clock_timers_lose() - cancel the timers of a clock that is gone
 * @clock:	the clock, which has no line any more
 *
 * Those that expire within 50 microseconds are left alone.
 *
 * Context: Task. Sleeps.
 * Return: how many were cancelled, whose owners have been notified.
 */
unsigned int apic_clock_timers_lose(clockid_t clock)
{
	const struct apic_clock_wanted wanted = {
		.is = is_of,
		.of = &clock,
		.locked = true,
		.use = lose,
	};

	return apic_clock_list_each(&wanted);
}

/* As check_again(), from anywhere. */
static unsigned int renew(struct apic_clock_timer *timer)
	__releases(&timer->lock)
{
	unsigned int state = timer->state;
	int ret = 0;

	if (state == FAR || state == NEAR) {
		WRITE_ONCE(timer->state, MOVING);
		/* Pairs with is_pending(): who sees it taken out sees the state, too. */
		smp_wmb();
		if (state == FAR || del_apic_timer(&timer->timer) == 1) {
			ret = advance_late(timer);
		} else {
			timer->state = LAST;
			hrtimer_try_to_cancel(&timer->check);
			settle(timer);
		}
	}
	unlock_and_report(timer, ret);
	return 0;
}

/**
 * apic_clock_timers_renew() - aim the timers of a clock anew, as it was set
 * @clock:	the clock, approached by CLOCK_MONOTONIC
 *
 * Context: Task. Sleeps.
 */
void apic_clock_timers_renew(clockid_t clock)
{
	const struct apic_clock_wanted wanted = {
		.is = is_of,
		.of = &clock,
		.locked = true,
		.use = renew,
	};

	apic_clock_list_each(&wanted);
}

/**
 * init_apic_clock_timer() - initialise a timer of a clock
 * @timer:	timer that was never initialised, or was deleted by del_apic_timer_at_sync()
 *		since it was armed; @timer->timer.function and .data are kept
 *
 * Context: Any but NMI.
 */
void init_apic_clock_timer(struct apic_clock_timer *timer)
{
	if (!timer) {
		refuse(0, "no timer to initialise");
		return;
	}
	init_apic_timer(&timer->timer);
	timer->clock = -1;
	timer->flags = 0;
	timer->lost = NULL;
	timer->when = 0;
	timer->cpu = -1;
	timer->home = 0;
	timer->armed = 0;
	raw_spin_lock_init(&timer->lock);
	apic_clock_hrtimer_setup(&timer->approach, approach, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	apic_clock_hrtimer_setup(&timer->check, check, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	INIT_LIST_HEAD(&timer->node);
	atomic_set(&timer->reports, 0);
	WRITE_ONCE(timer->state, IDLE);
}
EXPORT_SYMBOL_GPL(init_apic_clock_timer);

static bool is_pending_in(const struct apic_clock_timer *timer, unsigned int state)
{
	switch (state) {
	case FAR:
	case MOVING:
		return true;
	case NEAR:
	case LAST:
		return apic_timer_pending(&timer->timer);
	default:
		return false;
	}
}

/*
 * While it is armed anew shortly before its moment, it is pending for all that have not
 * touched it, and not for its handler:
 *
 *	CPU0: check                             CPU1
 *	                                        is_pending()
 *	                                          reads NEAR
 *	  MOVING, del_apic_timer() = 1
 *	                                          not pending, but no more NEAR: again
 *	  arms it, NEAR
 *
 *	  it is pending
 *	                                        it expires: handler
 *	  MOVING
 *	                                          is_pending()
 *	                                            waits
 *	  del_apic_timer() = 0, LAST
 *	                                            not pending
 *
 * Likewise one that is armed for the first time, and expires at once, as its moment has
 * passed. It waits for some instructions of a CPU with interrupts off. That may be the one
 * that an NMI has interrupted, where it is taken for pending.
 */
static bool is_pending(const struct apic_clock_timer *timer)
{
	unsigned int armed, state;
	bool pending;

	for (;;) {
		armed = READ_ONCE(timer->armed);
		/* Pairs with the order in which advance() writes them. */
		smp_rmb();
		state = READ_ONCE(timer->state);
		pending = is_pending_in(timer, state);
		if (in_nmi())
			return pending;
		/* Pairs with check_again(). */
		smp_rmb();
		if (state != MOVING && READ_ONCE(timer->state) == state) {
			/* Pairs with advance(): a state that is new comes with another number. */
			smp_rmb();
			if (READ_ONCE(timer->armed) == armed)
				return pending;
		}
		cpu_relax();
	}
}

/* The approach is an hrtimer of one clock. It may be in its callback still. */
static bool set_clock(struct apic_clock_timer *timer, clockid_t clock)
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

/**
 * add_apic_timer_at_on() - arm a timer for a moment of a clock, on a given CPU
 * @timer:	timer, initialised, not pending
 * @clock:	see add_apic_timer_at()
 * @when:	absolute, of @clock
 * @cpu:	the CPU that the handler runs on
 *
 * Context: Any but NMI, also a handler.
 * Return: as add_apic_timer_at(), where
 * * %-EINVAL - also: there is no such CPU
 */
int add_apic_timer_at_on(struct apic_clock_timer *timer, clockid_t clock, ktime_t when, int cpu)
{
	unsigned long flags;
	int ret;

	ret = check_timer(timer) ?: check_arm(timer, clock, cpu);
	if (ret)
		return ret;

	for (;;) {
		raw_spin_lock_irqsave(&timer->lock, flags);
		if (is_pending(timer)) {
			raw_spin_unlock_irqrestore(&timer->lock, flags);
			return refuse(-EBUSY, "timer of %ps added twice", timer->timer.function);
		}
		if (set_clock(timer, clock))
			break;
		raw_spin_unlock_irqrestore(&timer->lock, flags);
		cpu_relax();
	}
	timer->when = when;
	timer->cpu = cpu;
	ret = advance(timer);
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(add_apic_timer_at_on);

/**
 * add_apic_timer_at() - arm a timer for a moment of a clock, on this CPU
 * @timer:	timer, initialised, not pending
 * @clock:	CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME or
 *		CLOCK_TAI, or as apic_clock_phc_attach() has returned it
 * @when:	absolute, of @clock
 *
 * The handler starts at the first TSC value at which @clock reads @when, as the
 * timer's mode has it. Until 50 microseconds before, whatever the clock does is
 * followed; of a PTP clock, what its last reading has shown. If that goes, the timer is
 * cancelled, and @timer->lost called.
 *
 * Context: Any but NMI, also a handler.
 * Return:
 * * %0 - armed
 * * %-EBUSY - it is pending already
 * * %-ENODEV - this CPU takes no timers, or the PTP clock is gone
 * * %-EINVAL - not initialised, no function, unknown flags, no such clock, or a
 *   spin budget with a mode that doesn't spin
 * * %-EPERM - called from NMI
 */
int add_apic_timer_at(struct apic_clock_timer *timer, clockid_t clock, ktime_t when)
{
	return add_apic_timer_at_on(timer, clock, when, raw_smp_processor_id());
}
EXPORT_SYMBOL_GPL(add_apic_timer_at);

/**
 * mod_apic_timer_at() - change the moment of a timer, arming it if it isn't pending
 * @timer:	timer, was armed before
 * @when:	absolute, of the clock that it was last armed for
 *
 * Context: Any but NMI, also a handler.
 * Return:
 * * %1 - it was pending
 * * %0 - it was not
 * * otherwise as add_apic_timer_at(), where
 * * %-EINVAL - also: it was never armed
 */
int mod_apic_timer_at(struct apic_clock_timer *timer, ktime_t when)
{
	unsigned long flags;
	bool callback;
	int ret, was;

	ret = check_timer(timer);
	if (ret)
		return ret;
	raw_spin_lock_irqsave(&timer->lock, flags);
	if (timer->cpu < 0) {
		ret = -EINVAL;
	} else {
		was = take_out(timer, &callback);
		timer->when = when;
		ret = advance(timer) ?: was == 1;
	}
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(mod_apic_timer_at);

/**
 * del_apic_timer_at() - delete a timer
 * @timer:	timer, initialised
 *
 * Doesn't wait for the handler: see del_apic_timer_at_sync().
 *
 * Context: Any but NMI, also a handler.
 * Return: as del_apic_timer().
 */
int del_apic_timer_at(struct apic_clock_timer *timer)
{
	int ret = check_timer(timer);
	unsigned long flags;
	bool callback;

	if (ret)
		return ret;
	raw_spin_lock_irqsave(&timer->lock, flags);
	ret = take_out(timer, &callback);
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(del_apic_timer_at);

/**
 * del_apic_timer_at_sync() - delete a timer and wait for its handler
 * @timer:	timer, initialised
 *
 * On return the timer may be freed, unless others arm it again meanwhile. A
 * handler that arms its own timer is waited for and that expiry deleted too; so is
 * @timer->lost.
 *
 * Context: Any but NMI. The caller must not hold a lock that the handler, or @lost, takes.
 * Return: as del_apic_timer_sync(), where
 * * %-EDEADLK - also: called by @timer->lost
 */
int del_apic_timer_at_sync(struct apic_clock_timer *timer)
{
	int ret = check_timer(timer), first = 0, again;
	bool begun = false, callback;
	unsigned long flags;
	unsigned int armed;

	if (ret)
		return ret;
	/* Only within @lost, where we stay on this CPU, is it ours. */
	if (raw_cpu_read(reported) == timer)
		return -EDEADLK;
	do {
		raw_spin_lock_irqsave(&timer->lock, flags);
		ret = take_out(timer, &callback);
		armed = timer->armed;
		raw_spin_unlock_irqrestore(&timer->lock, flags);
		if (!begun || ret == 1)
			first = ret;
		begun = true;

		/* Pairs with unlock_and_report(). */
		while (unlikely(atomic_read_acquire(&timer->reports)))
			cpu_relax();
		again = del_apic_timer_sync(&timer->timer);
		if (again == -EDEADLK)
			return again;
		if (again == 1)
			first = 1;
		/* What was waited for may have armed it again. */
	} while (callback || READ_ONCE(timer->armed) != armed);
	return first == -EBUSY ? 0 : first;
}
EXPORT_SYMBOL_GPL(del_apic_timer_at_sync);

/**
 * apic_clock_timer_pending() - check whether a timer is armed and has not expired yet
 * @timer:	timer, initialised
 *
 * Context: Any. The answer may be outdated at once, unless the caller keeps others
 * from the timer.
 * Return: true if it is pending.
 */
bool apic_clock_timer_pending(const struct apic_clock_timer *timer)
{
	return known(timer) && is_pending(timer);
}
EXPORT_SYMBOL_GPL(apic_clock_timer_pending);
