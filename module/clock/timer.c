// SPDX-License-Identifier: GPL-2.0
/*
 * The interface to timers of clocks, as declared by <linux/apic_clock.h>, and the checks of
 * its arguments.
 *
 * See approach.c for how an armed timer approaches its moment, and phc_timers.c for what
 * happens to it when its clock is set or vanishes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/smp.h>

#include "approach.h"

static bool known(const struct apic_clock_timer *timer)
{
	return timer &&
	       READ_ONCE(timer->state) - APIC_CLOCK_IDLE <= APIC_CLOCK_LAST - APIC_CLOCK_IDLE;
}

/* Return the same errors as the core, and log each once as the core does. */
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

/* Check what the core would reject two milliseconds before the moment, when it is too late. */
static int check_arm(const struct apic_clock_timer *timer)
{
	unsigned int mode = timer->timer.flags & APIC_TIMER_MODE_MASK;

	if (!timer->timer.function)
		return refuse(-EINVAL, "timer %p has no function", timer);
	if (timer->timer.flags & ~APIC_TIMER_FLAGS || timer->flags & ~APIC_CLOCK_AFTER)
		return refuse(-EINVAL, "timer of %ps has unknown flags %#x, %#x",
			      timer->timer.function, timer->timer.flags, timer->flags);
	if (timer->timer.spin_budget && mode && mode != APIC_TIMER_EXACT)
		return refuse(-EINVAL, "timer of %ps has a spin budget but does not spin",
			      timer->timer.function);
	if (timer->timer.flags & APIC_TIMER_COVER_MASK && !timer->timer.spin_budget)
		return refuse(-EINVAL, "timer of %ps chooses a quantile without a spin budget",
			      timer->timer.function);
	return 0;
}

/* As check_arm(), and also check the clock and the CPU. */
static int check_arm_on(const struct apic_clock_timer *timer, clockid_t clock, int cpu)
{
	struct apic_timer_info info;
	int ret = check_arm(timer);

	if (ret)
		return ret;
	ret = check_clock(clock);
	if (ret)
		return refuse(ret, "timer of %ps: clock %d does not exist", timer->timer.function,
			      clock);
	return apic_timer_query(cpu, &info);
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
	apic_clock_timer_setup(timer);
	INIT_LIST_HEAD(&timer->node);
	atomic_set(&timer->reports, 0);
	WRITE_ONCE(timer->state, APIC_CLOCK_IDLE);
}
EXPORT_SYMBOL_GPL(init_apic_clock_timer);

static bool is_pending_in(const struct apic_clock_timer *timer, unsigned int state)
{
	switch (state) {
	case APIC_CLOCK_FAR:
	case APIC_CLOCK_MOVING:
		return true;
	case APIC_CLOCK_NEAR:
	case APIC_CLOCK_LAST:
		return apic_timer_pending(&timer->timer);
	default:
		return false;
	}
}

/*
 * While a timer is armed anew shortly before its moment, it must look pending to code that has
 * not changed it, but not to its handler:
 *
 *	CPU0: check                             CPU1
 *	                                        is_pending()
 *	                                          reads NEAR
 *	  MOVING, del_apic_timer() = 1
 *	                                          not pending, but NEAR no longer: again
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
 * The same applies to a timer that is armed for the first time and expires at once because its
 * moment has passed. The wait lasts for some instructions of a CPU with interrupts off. An NMI
 * may have interrupted that CPU; there the timer is taken to be pending.
 */
static bool is_pending(const struct apic_clock_timer *timer)
{
	unsigned int armed, state;
	bool pending;

	for (;;) {
		armed = READ_ONCE(timer->armed);
		/* Pairs with the order in which apic_clock_timer_advance() writes them. */
		smp_rmb();
		state = READ_ONCE(timer->state);
		pending = is_pending_in(timer, state);
		if (in_nmi())
			return pending;
		/* Pairs with check_again() in approach.c, and renew() in phc_timers.c. */
		smp_rmb();
		if (state != APIC_CLOCK_MOVING && READ_ONCE(timer->state) == state) {
			/*
			 * Pairs with apic_clock_timer_advance(): a new state comes with another
			 * number.
			 */
			smp_rmb();
			if (READ_ONCE(timer->armed) == armed)
				return pending;
		}
		cpu_relax();
	}
}

/**
 * add_apic_timer_at_on() - arm a timer for a moment of a clock, on a given CPU
 * @timer:	timer, initialised, not pending
 * @clock:	see add_apic_timer_at()
 * @when:	absolute, of @clock
 * @cpu:	the CPU on which the handler runs
 *
 * Context: Any but NMI, also a handler.
 * Return: as add_apic_timer_at(), where
 * * %-EINVAL - also: there is no such CPU
 */
int add_apic_timer_at_on(struct apic_clock_timer *timer, clockid_t clock, ktime_t when, int cpu)
{
	unsigned long flags;
	int ret;

	ret = check_timer(timer) ?: check_arm_on(timer, clock, cpu);
	if (ret)
		return ret;

	for (;;) {
		raw_spin_lock_irqsave(&timer->lock, flags);
		if (is_pending(timer)) {
			raw_spin_unlock_irqrestore(&timer->lock, flags);
			return refuse(-EBUSY, "timer of %ps added twice", timer->timer.function);
		}
		ret = apic_clock_timer_set_clock(timer, clock);
		if (!ret)
			break;
		raw_spin_unlock_irqrestore(&timer->lock, flags);
		if (ret != -EAGAIN)
			return ret;
		cpu_relax();
	}
	timer->when = when;
	timer->cpu = cpu;
	ret = apic_clock_timer_advance(timer);
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(add_apic_timer_at_on);

/**
 * add_apic_timer_at() - arm a timer for a moment of a clock, on this CPU
 * @timer:	timer, initialised, not pending
 * @clock:	CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME or
 *		CLOCK_TAI, or a number from apic_clock_phc_attach()
 * @when:	absolute, of @clock
 *
 * The handler starts at the first TSC value at which @clock reads @when, with the precision of
 * the timer's mode. Until 50 microseconds before, the timer follows all changes of the clock; of
 * a PTP clock, those that its last reading has shown. If a PTP clock vanishes, the timer is
 * cancelled, and @timer->lost called.
 *
 * Context: Any but NMI, also a handler.
 * Return:
 * * %0 - armed
 * * %-EBUSY - it is already pending; or it has lost a clock of the kernel, and is armed for
 *   another one while @timer->lost runs, by that or by other code
 * * %-ENODEV - this CPU does not accept timers, or the PTP clock is gone
 * * %-EINVAL - not initialised, no function, unknown flags, no such clock, a spin budget
 *   with a mode that doesn't spin, or APIC_TIMER_COVER_* without a spin budget
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

	ret = check_timer(timer) ?: check_arm(timer);
	if (ret)
		return ret;
	raw_spin_lock_irqsave(&timer->lock, flags);
	if (timer->cpu < 0) {
		ret = -EINVAL;
	} else {
		was = apic_clock_timer_take_out(timer, APIC_CLOCK_MOVING, &callback);
		timer->when = when;
		ret = apic_clock_timer_advance(timer) ?: was == 1;
	}
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(mod_apic_timer_at);

/**
 * del_apic_timer_at() - delete a timer
 * @timer:	timer, initialised
 *
 * This does not wait for the handler: see del_apic_timer_at_sync().
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
	ret = apic_clock_timer_take_out(timer, APIC_CLOCK_IDLE, &callback);
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(del_apic_timer_at);

/**
 * del_apic_timer_at_sync() - delete a timer and wait for its handler
 * @timer:	timer, initialised
 *
 * On return the timer may be freed, unless other code arms it again meanwhile. If the handler
 * or @timer->lost arms the timer again, this waits for it and deletes that expiry as well.
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
	if (apic_clock_timer_is_reported(timer))
		return -EDEADLK;
	do {
		raw_spin_lock_irqsave(&timer->lock, flags);
		ret = apic_clock_timer_take_out(timer, APIC_CLOCK_IDLE, &callback);
		armed = timer->armed;
		raw_spin_unlock_irqrestore(&timer->lock, flags);
		if (!begun || ret == 1)
			first = ret;
		begun = true;

		/* Pairs with apic_clock_timer_unlock_and_report(). */
		while (unlikely(atomic_read_acquire(&timer->reports)))
			cpu_relax();
		again = del_apic_timer_sync(&timer->timer);
		if (again == -EDEADLK)
			return again;
		if (again == 1)
			first = 1;
		/* A callback that has ended meanwhile may have armed the timer again. */
	} while (callback || READ_ONCE(timer->armed) != armed);
	return first == -EBUSY ? 0 : first;
}
EXPORT_SYMBOL_GPL(del_apic_timer_at_sync);

/**
 * apic_clock_timer_pending() - check whether a timer is armed and has not expired yet
 * @timer:	timer, initialised
 *
 * Context: Any. The answer may be outdated at once, unless the caller keeps other code from
 * using the timer.
 * Return: true if it is pending.
 */
bool apic_clock_timer_pending(const struct apic_clock_timer *timer)
{
	return known(timer) && is_pending(timer);
}
EXPORT_SYMBOL_GPL(apic_clock_timer_pending);
