// SPDX-License-Identifier: GPL-2.0
/*
 * A timer to read() and poll(), like a timerfd.
 *
 * Expirations are computed from the clock rather than counted. None is lost when an
 * interrupt is late, or when the rate limit makes interrupts rarer than the interval.
 */
#include <linux/apic_struct.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "later.h"
#include "limit.h"
#include "moment.h"
#include "page.h"
#include "timer.h"

/* Size of the structure's first version. */
#define ARM_SIZE_VER0	32

static_assert(sizeof(struct apic_timer_arm) == ARM_SIZE_VER0);
static_assert(offsetof(struct apic_timer_arm, expires) == 8);
static_assert(offsetof(struct apic_timer_arm, clock) == 24);
static_assert(offsetofend(struct apic_timer_arm, epoch) == ARM_SIZE_VER0);

/* Arm for @expires, but not before @not_before. */
static int set(struct device_timer *timer, u64 now, u64 not_before)
	__must_hold(&timer->lock)
{
	u64 tsc = device_moment_tsc(timer->clock, timer->expires);

	lockdep_assert_held(&timer->lock);
	/* Don't stop before @not_before to convert again: @expires may already be past there. */
	timer->set = not_before > tsc ? not_before : device_moment_leg(timer->clock, tsc, now);
	timer->timer.expires = timer->set;
	return device_moment_arm(&timer->timer);
}

static bool is_stale(const struct device_timer *timer)
{
	return timer->epoch && timer->clock == APIC_TIMER_CLOCK_TSC &&
	       timer->epoch != device_page_epoch();
}

/* Count the periods that have expired. Return true if at least one has. */
static bool count(struct device_timer *timer, u64 now)
	__must_hold(&timer->lock)
{
	u64 clock = device_moment_now(timer->clock, now), periods = 1, passed;

	lockdep_assert_held(&timer->lock);
	if (clock < timer->expires)
		return false;
	if (timer->interval)
		periods += div64_u64(clock - timer->expires, timer->interval);
	timer->ticks += periods;
	/* Disarm if the next expiry is beyond the end of the clock. */
	if (!timer->interval ||
	    check_mul_overflow(periods, timer->interval, &passed) ||
	    check_add_overflow(timer->expires, passed, &timer->expires))
		timer->armed = false;
	return true;
}

/* Wake readers and pollers after the interrupt. */
static void wake_later(struct device_timer *timer)
	__must_hold(&timer->lock)
{
	lockdep_assert_held(&timer->lock);
	refcount_inc(&timer->refs);
	if (!device_later(&timer->wake))
		refcount_dec(&timer->refs);	/* it is queued with a reference already */
}

static void expire(unsigned long long now, unsigned long data)
{
	struct device_timer *timer = (struct device_timer *)data;
	u64 not_before = 0;
	bool counted;

	raw_spin_lock(&timer->lock);
	timer->paid = DEVICE_SPENT;
	if (!timer->armed)
		goto out;
	/* If a new epoch has moved this expiry, move the later ones with it. */
	if (timer->clock == APIC_TIMER_CLOCK_TSC)
		timer->expires += timer->timer.expires - timer->set;
	counted = count(timer, now);
	if (counted)
		wake_later(timer);
	/* Pay for the next one now. It must not expire before the user's timers can afford it. */
	if (timer->armed && counted) {
		not_before = device_user_reserve(timer->user);
		timer->paid = smp_processor_id();
		timer->usable = not_before;
	}
	/* set() fails only if no CPU accepts timers any more. */
	if (timer->armed && set(timer, now, not_before))
		timer->armed = false;
	if (!timer->armed)
		device_user_unpend(timer->user);
out:
	raw_spin_unlock(&timer->lock);
}

static void wake(struct device_later *later)
{
	struct device_timer *timer = container_of(later, struct device_timer, wake);

	/*
	 * Wake all pollers, and the reader that has waited longest. On PREEMPT_RT the one that
	 * is woken may keep this thread from going on for any time. Nothing waits for this thread
	 * then: it may be queued again, and the file be closed.
	 */
	wake_up_poll(&timer->wait, EPOLLIN | EPOLLERR);
	device_timer_put(timer);
}

static void epoch_began(struct device_epoch_waiter *waiter)
{
	struct device_timer *timer = container_of(waiter, struct device_timer, waiter);

	/* Every reader gets an error. */
	wake_up_all(&timer->wait);
}

/**
 * device_timer_init() - prepare a file's timer
 * @timer:	the timer
 * @user:	account that pays
 * @free:	frees the memory with the timer; in any context but NMI
 *
 * The caller has a reference: see device_timer_put().
 *
 * Context: Task. Sleeps.
 */
void device_timer_init(struct device_timer *timer, struct device_user *user,
		       void (*free)(struct device_timer *timer))
{
	refcount_set(&timer->refs, 1);
	timer->free = free;
	timer->user = user;
	mutex_init(&timer->mutex);
	raw_spin_lock_init(&timer->lock);
	timer->wake.call = wake;
	init_waitqueue_head(&timer->wait);
	timer->timer.function = expire;
	timer->timer.data = (unsigned long)timer;
	timer->paid = DEVICE_SPENT;
	init_apic_timer(&timer->timer);
	timer->timer.flags = APIC_TIMER_RAW;
	timer->waiter.began = epoch_began;
	device_epoch_add(&timer->waiter);
}

/*
 * Stop the timer. When this returns, its handler does not run any more. Called under the
 * mutex, or by the last user of the file. @paid is set to the CPU that has paid for an
 * interrupt that does not happen, or to DEVICE_SPENT.
 * Return: true if the timer was counted as pending; it still is.
 */
static bool stop(struct device_timer *timer, int *paid)
{
	unsigned long flags;
	bool armed;

	raw_spin_lock_irqsave(&timer->lock, flags);
	armed = timer->armed;
	timer->armed = false;
	timer->epoch = 0;
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	/* A handler that is running sees @armed cleared. */
	del_apic_timer_sync(&timer->timer);
	*paid = timer->paid;
	timer->paid = DEVICE_SPENT;
	return armed;
}

static void disarm(struct device_timer *timer)
{
	int paid;

	if (stop(timer, &paid))
		device_user_unpend(timer->user);
	device_user_return(timer->user, paid);
}

/**
 * device_timer_exit() - disarm a file's timer, permanently
 * @timer:	the timer
 *
 * A wake-up may outlast this. The caller releases its reference afterwards.
 *
 * Context: Task, when the file has no users.
 */
void device_timer_exit(struct device_timer *timer)
{
	device_epoch_del(&timer->waiter);
	disarm(timer);
	/* No thread waits any more. One that is being woken has its own reference. */
	if (device_later_cancel(&timer->wake))
		device_timer_put(timer);
}

/**
 * device_timer_put() - release a reference to a file's timer; the last one frees it
 * @timer:	the timer
 *
 * Context: Any but NMI.
 */
void device_timer_put(struct device_timer *timer)
{
	if (refcount_dec_and_test(&timer->refs))
		timer->free(timer);
}

/* Check whether this CPU has paid for the timer's next interrupt. */
static bool is_paid_here(struct device_timer *timer)
{
	unsigned long flags;
	bool here;

	raw_spin_lock_irqsave(&timer->lock, flags);
	here = timer->paid == smp_processor_id();
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return here;
}

static int take(struct device_timer *timer)
{
	unsigned long flags;
	int paid;

	local_irq_save(flags);
	paid = device_user_take(timer->user);
	local_irq_restore(flags);
	return paid;
}

/*
 * Stop the timer, and pay for arming it again. A pending timer's token is reused, so that
 * changing the timer costs nothing. Return: the CPU that has paid, or an error.
 */
static int charge(struct device_timer *timer)
{
	int paid = take(timer), kept, ret;
	bool counted;

	/* Leave the timer as it was. */
	if (paid < 0 && !is_paid_here(timer))
		return paid;
	counted = stop(timer, &kept);
	/*
	 * Don't return the token and take it again: other timers of the user may owe theirs. One
	 * that was reserved is not there yet before @usable.
	 */
	if (paid < 0 && kept == raw_smp_processor_id() && timer->usable <= apic_timer_now())
		paid = kept;
	else
		device_user_return(timer->user, kept);
	if (paid < 0)
		paid = take(timer);
	if (paid < 0) {
		if (counted)
			device_user_unpend(timer->user);
		return paid;
	}
	ret = counted ? 0 : device_user_pend(timer->user);
	if (ret) {
		device_user_return(timer->user, paid);
		return ret;
	}
	return paid;
}

/* Arm the timer, which @paid has paid for. */
static int set_paid(struct device_timer *timer, int *paid)
	__must_hold(&timer->lock)
{
	lockdep_assert_held(&timer->lock);
	/* This thread was moved after charge(): that token is lost, see device_user_return(). */
	if (unlikely(*paid != smp_processor_id())) {
		*paid = device_user_take(timer->user);
		if (*paid < 0)
			return *paid;
	}
	return set(timer, apic_timer_now(), 0);
}

static int arm(struct device_timer *timer, const struct apic_timer_arm *a)
{
	unsigned long flags;
	int ret = 0, paid;

	if (a->expires) {
		/* Pay for the first expiry; each expiry pays for the next one. */
		paid = charge(timer);
		if (paid < 0)
			return paid;
	} else {
		paid = DEVICE_SPENT;
		disarm(timer);
	}
	raw_spin_lock_irqsave(&timer->lock, flags);
	timer->clock = a->clock;
	timer->expires = device_moment_of_caller(a->clock, a->expires);
	timer->interval = a->interval;
	timer->ticks = 0;
	if (a->expires) {
		ret = set_paid(timer, &paid);
		timer->armed = !ret;
	}
	if (timer->armed) {
		timer->epoch = a->epoch;
		timer->paid = paid;
		timer->usable = 0;
	}
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	if (ret) {
		device_user_return(timer->user, paid);
		device_user_unpend(timer->user);
	}
	return ret;
}

/**
 * device_timer_arm() - APIC_TIMER_ARM
 * @timer:	the file's timer
 * @argument:	the user's struct apic_timer_arm
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_timer_arm.
 */
long device_timer_arm(struct device_timer *timer, void __user *argument)
{
	struct apic_timer_arm a;
	u32 usize, epoch = device_page_epoch();
	int ret;

	ret = apic_struct_in(&a, sizeof(a), ARM_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	if (a.flags || !device_moment_clock(a.clock))
		return -EINVAL;
	if (a.epoch && a.clock == APIC_TIMER_CLOCK_TSC && a.epoch != epoch) {
		ret = -ESTALE;
	} else {
		ret = mutex_lock_interruptible(&timer->mutex);
		if (ret)
			return -ERESTARTSYS;
		ret = arm(timer, &a);
		mutex_unlock(&timer->mutex);
	}
	a.epoch = epoch;
	return apic_struct_out(argument, usize, &a, sizeof(a)) ?: ret;
}

/* Return the number of expirations and reset it; negative: an error. */
static s64 fetch(struct device_timer *timer)
{
	unsigned long flags;
	s64 ticks;

	raw_spin_lock_irqsave(&timer->lock, flags);
	if (is_stale(timer)) {
		ticks = -ESTALE;
	} else {
		ticks = min_t(u64, timer->ticks, S64_MAX);
		timer->ticks = 0;
		/* Nothing is left that a new epoch could invalidate. */
		if (ticks && !timer->armed)
			timer->epoch = 0;
	}
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return ticks;
}

/**
 * device_timer_read() - read()
 * @timer:	the file's timer
 * @to:		the user's buffer
 * @size:	its size
 * @nonblocking: do not wait
 *
 * Context: Task. Sleeps.
 * Return: 8, or an error.
 */
ssize_t device_timer_read(struct device_timer *timer, char __user *to, size_t size,
			  bool nonblocking)
{
	s64 ticks;
	int ret;

	if (size < sizeof(u64))
		return -EINVAL;
	ticks = fetch(timer);
	if (!ticks && nonblocking)
		return -EAGAIN;
	if (!ticks) {
		/* Any number of threads may wait, but only one of them gets the expirations. */
		ret = wait_event_interruptible_exclusive(timer->wait, (ticks = fetch(timer)));
		if (ret)
			return ret;
	}
	if (ticks < 0)
		return ticks;
	return put_user((u64)ticks, (u64 __user *)to) ? -EFAULT : sizeof(u64);
}

/**
 * device_timer_poll() - poll()
 * @timer:	the file's timer
 * @file:	the file
 * @table:	the caller's poll table
 *
 * Context: Task.
 * Return: EPOLL*.
 */
__poll_t device_timer_poll(struct device_timer *timer, struct file *file,
			   poll_table *table)
{
	unsigned long flags;
	__poll_t events = 0;

	poll_wait(file, &timer->wait, table);
	raw_spin_lock_irqsave(&timer->lock, flags);
	if (timer->ticks)
		events |= EPOLLIN | EPOLLRDNORM;
	if (is_stale(timer))
		events |= EPOLLERR;
	raw_spin_unlock_irqrestore(&timer->lock, flags);
	return events;
}
