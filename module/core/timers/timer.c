// SPDX-License-Identifier: GPL-2.0
/*
 * The exported interface: it checks arguments and changes the states of timers.
 *
 *	              add, mod                  expiry, del, cancel
 *	     NEW -------------------> PENDING -----------------------> DONE
 *	      |                          ^                              |  |
 *	      |                          |           add, mod           |  |
 *	      |                          +------------------------------+  |
 *	      |            apic_timer_shutdown_sync()                      |
 *	      +-----------------------> SHUTDOWN <-------------------------+
 *
 * A timer that is pending is deleted and shut down under one lock. Only
 * init_apic_timer() leads out of SHUTDOWN, to NEW; it also leads from DONE to
 * NEW. A timer stays PENDING while mod changes its expiry, and while it migrates.
 * The handler may be running in every state except NEW: it is called in DONE, may
 * arm its timer, and other code may shut the timer down meanwhile.
 *
 * States change under the lock of the timer's base. Memory without a known state is
 * not a timer: every call refuses it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/smp.h>
#include <linux/stddef.h>

#include <trace/events/apic_timer.h>

#include "lib/refuse.h"
#include "lib/stats.h"
#include "timers/base.h"
#include "timers/drain.h"
#include "timers/objects.h"
#include "timers/state.h"
#include "tsc/tsc.h"

/*
 * A change of a structure that consumers allocate is a change of the interface: see
 * APIC_TIMER_API.
 */
#define LAYOUT(type, member, offset) \
	static_assert(offsetof(struct type, member) == (offset))

LAYOUT(apic_timer_list, next, 0);
LAYOUT(apic_timer_list, prev, 8);
LAYOUT(apic_timer_list, expires, 16);
LAYOUT(apic_timer_list, data, 24);
LAYOUT(apic_timer_list, function, 32);
LAYOUT(apic_timer_list, flags, 40);
LAYOUT(apic_timer_list, spin_budget, 44);
LAYOUT(apic_timer_list, key, 48);
LAYOUT(apic_timer_list, state, 56);
static_assert(sizeof(struct apic_timer_period) == 24);
static_assert(sizeof(struct apic_timer_info) == 40);
static_assert(sizeof(struct apic_timer_notice) == 16);

const u32 apic_timer_api = APIC_TIMER_API;
EXPORT_SYMBOL_GPL(apic_timer_api);

#define refuse	apic_timer_refuse
#define CALLER	APIC_TIMER_CALLER

/*
 * Each call has a fast path for the usual case: a timer of this CPU, and no mistake.
 * All other cases are left to its slow counterpart, which starts over. The state is
 * read under the lock; before that the memory is only known to be readable.
 */

/* Flags that need no budget. */
#define FAST_FLAGS	(APIC_TIMER_FLAGS & ~APIC_TIMER_COVER_MASK)

static __always_inline bool readable(const struct apic_timer_list *timer)
{
	return likely(!in_nmi() && timer);
}

/* Check whether a timer can be armed, provided that it is a timer. */
static __always_inline bool armable(const struct apic_timer_list *timer)
{
	return readable(timer) && likely(timer->function) &&
	       likely(!((timer->flags & ~FAST_FLAGS) |
			timer->spin_budget));
}

/* Check whether calls can be made for @timer in this context. */
static int check(const struct apic_timer_list *timer, const void *caller)
{
	if (in_nmi())
		return refuse(-EPERM, caller, "called from NMI");
	if (!timer || !apic_timer_state_known(timer))
		return refuse(-EINVAL, caller, "timer %p is not initialised",
			      timer);
	return 0;
}

/* Check whether a timer's mode spins, or the module's default mode may spin. */
static bool may_spin(const struct apic_timer_list *timer)
{
	unsigned int mode = timer->flags & APIC_TIMER_MODE_MASK;

	return !mode || mode == APIC_TIMER_EXACT;
}

/* Check whether a timer can be armed. */
static int check_arm(const struct apic_timer_list *timer, const void *caller)
{
	int ret = check(timer, caller);

	if (ret)
		return ret;
	if (!timer->function)
		return refuse(-EINVAL, caller, "timer %p has no function",
			      timer);
	if (timer->flags & ~APIC_TIMER_FLAGS)
		return refuse(-EINVAL, caller,
			      "timer of %ps has unknown flags %#x",
			      timer->function, timer->flags);
	if (timer->spin_budget && !may_spin(timer))
		return refuse(-EINVAL, caller,
			      "timer of %ps has a spin budget but doesn't spin",
			      timer->function);
	if (timer->flags & APIC_TIMER_COVER_MASK && !timer->spin_budget)
		return refuse(-EINVAL, caller,
			      "timer of %ps chooses a quantile without a spin budget",
			      timer->function);
	return 0;
}

/**
 * init_apic_timer() - initialise a timer
 * @timer:	memory not in use otherwise; @expires, @data and @function keep
 *		their values, all other members are overwritten
 *
 * Set @timer->flags and @timer->spin_budget after this call, which clears them.
 *
 * Context: Any but NMI, where a kernel with CONFIG_DEBUG_OBJECTS cannot track it.
 */
void init_apic_timer(struct apic_timer_list *timer)
{
	if (unlikely(!timer)) {
		refuse(0, CALLER, "no timer to initialise");
		return;
	}

	apic_timer_objects_init(timer);
	timer->next = NULL;
	timer->prev = NULL;
	timer->flags = 0;
	timer->spin_budget = 0;
	/*
	 * The timer is likely to be armed on this CPU: allow the fast path, without
	 * another CPU's lock.
	 */
	timer->cpu = raw_smp_processor_id();
	timer->prev_cpu = timer->cpu;
	timer->prev_run = 0;
	timer->group = 0;
	WRITE_ONCE(timer->state, APIC_TIMER_NEW);
	trace_apic_timer_init(timer);
}
EXPORT_SYMBOL_GPL(init_apic_timer);

static void count_late(const struct apic_timer_list *timer)
{
	if (timer->expires <= apic_timer_tsc_now())
		apic_timer_stats_inc(ADDED_LATE);
}

/*
 * Program the hardware for a timer that was queued, if it @is_head, and count it if it is late,
 * unless it @cannot_be.
 *
 * Its expiry is compared with the TSC only if the timer is the new head, or
 * handlers are running. This spares most calls a read of the TSC; a late timer
 * behind another timer that is due is not counted.
 */
static __always_inline void queued(struct apic_timer_base *base,
				   const struct apic_timer_list *timer, bool is_head,
				   bool cannot_be)
	__must_hold(&base->lock)
{
	if (is_head) {
		if (!cannot_be)
			count_late(timer);
		apic_timer_base_program(base);
	} else if (unlikely(base->expiring) && !cannot_be) {
		count_late(timer);
	}
}

/* Arm a timer that is not pending. */
static __always_inline void arm(struct apic_timer_base *base,
				struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	apic_timer_stats_inc(ADDED);
	trace_apic_timer_add(timer);
	queued(base, timer, apic_timer_base_insert(base, timer), false);
}

/* Arm a timer that is not pending; unlocks @base. */
static int arm_on(struct apic_timer_base *base, struct apic_timer_list *timer,
		  unsigned int cpu, unsigned long flags)
	__releases(&base->lock)
{
	int ret = -ENODEV;

	base = apic_timer_base_move(base, timer, cpu);
	if (base->online && !apic_timer_drain_cancels(base, timer)) {
		arm(base, timer);
		ret = 0;
	}
	apic_timer_base_unlock(base, flags);
	return ret;
}

/* Value of @cpu for add_apic_timer(), which takes any CPU */
#define THIS_CPU	(-1)

static int add_checked(struct apic_timer_list *timer, int cpu,
		       const void *caller)
{
	struct apic_timer_base *base;
	unsigned long flags;

	base = apic_timer_base_lock(timer, &flags);
	if (timer->state == APIC_TIMER_PENDING) {
		timer->expires = timer->key;
		apic_timer_base_unlock(base, flags);
		return refuse(-EBUSY, caller, "timer of %ps added twice",
			      timer->function);
	}
	if (timer->state == APIC_TIMER_SHUTDOWN) {
		apic_timer_base_unlock(base, flags);
		return -ESHUTDOWN;
	}
	if (cpu == THIS_CPU)
		cpu = smp_processor_id();
	return arm_on(base, timer, cpu, flags);
}

static noinline int add_slowly(struct apic_timer_list *timer,
			       const void *caller)
{
	return check_arm(timer, caller) ?:
	       add_checked(timer, THIS_CPU, caller);
}

/**
 * add_apic_timer() - arm a timer on this CPU
 * @timer:	timer, initialised, not pending, with @expires and @function set
 *
 * @timer->function starts at @timer->expires, or at once if that has passed. The
 * latter is counted in added_late, unless another timer that is due comes first.
 *
 * Context: Any but NMI, also a handler. Takes and releases the lock of one or
 * two bases.
 * Return:
 * * %0 - armed
 * * %-EBUSY - it is pending already, and stays so: @expires is set back to its expiry
 * * %-EINVAL - not initialised, no function, unknown flags, a quantile
 *   (APIC_TIMER_COVER_*) without a spin budget, or a spin budget
 *   with a mode that doesn't spin
 * * %-ENODEV - this CPU does not accept timers (it is going offline), or the
 *   timer's module is past its exit function
 * * %-EPERM - called from NMI
 * * %-ESHUTDOWN - apic_timer_shutdown_sync() was called for it. This is not a
 *   mistake of the caller, and not logged.
 */
int add_apic_timer(struct apic_timer_list *timer)
{
	struct apic_timer_base *base;
	unsigned long flags;

	if (armable(timer)) {
		base = apic_timer_base_lock_here(&flags);
		if (likely(apic_timer_base_owns(base, timer) &&
			   apic_timer_state_idle(timer) && base->open)) {
			arm(base, timer);
			apic_timer_base_unlock(base, flags);
			return 0;
		}
		apic_timer_base_unlock(base, flags);
	}
	return add_slowly(timer, CALLER);
}
EXPORT_SYMBOL_GPL(add_apic_timer);

/**
 * add_apic_timer_on() - arm a timer on a given CPU
 * @timer:	as for add_apic_timer()
 * @cpu:	the CPU that @timer->function runs on
 *
 * If @cpu is another CPU and this timer becomes its head, this CPU interrupts @cpu,
 * which then programs its hardware. If @timer->expires arrives before that is done,
 * the expiry is late.
 *
 * If @cpu goes offline while the timer is pending, the timer migrates to another CPU
 * and runs there, at the same @timer->expires, or at once if that passes meanwhile.
 * The trace event apic_timer_migrate reports it. The timer stays there when @cpu
 * comes online again. If no other CPU accepts timers it is cancelled, and the kernel
 * log names its handler. A handler that must run on @cpu compares @cpu with
 * smp_processor_id().
 *
 * Context: Any but NMI, also a handler. Takes and releases the lock of one or
 * two bases.
 * Return: as add_apic_timer(), where
 * * %-EINVAL - also: there is no such CPU
 * * %-ENODEV - also: @cpu is offline
 */
int add_apic_timer_on(struct apic_timer_list *timer, int cpu)
{
	int ret = check_arm(timer, CALLER);

	if (unlikely(ret))
		return ret;
	if (unlikely(cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu)))
		return refuse(-EINVAL, CALLER,
			      "timer of %ps added on CPU %d",
			      timer->function, cpu);
	return add_checked(timer, cpu, CALLER);
}
EXPORT_SYMBOL_GPL(add_apic_timer_on);

/*
 * Change the expiry of a pending timer, which stays PENDING for other CPUs, that ask without
 * the lock. If it is only postponed, as timeouts usually are, no read of the TSC is needed: that
 * does not make it late.
 */
static __always_inline void change(struct apic_timer_base *base,
				   struct apic_timer_list *timer,
				   unsigned long long expires)
	__must_hold(&base->lock)
{
	bool later = expires >= timer->key;

	if (apic_timer_base_sooner(apic_timer_queue_del(&base->queue, timer), timer))
		apic_timer_base_program(base);
	timer->expires = expires;
	apic_timer_stats_inc(MODIFIED);
	trace_apic_timer_mod(timer);
	queued(base, timer, apic_timer_queue_add(&base->queue, timer), later);
}

static noinline int mod_slowly(struct apic_timer_list *timer,
			       unsigned long long expires, const void *caller)
{
	struct apic_timer_base *base;
	unsigned long flags;
	unsigned int cpu;
	int ret = check_arm(timer, caller);

	if (ret)
		return ret;

	base = apic_timer_base_lock(timer, &flags);
	if (timer->state == APIC_TIMER_PENDING) {
		ret = -ENODEV;
		if (!apic_timer_drain_cancels(base, timer)) {
			change(base, timer, expires);
			ret = 1;
		}
		apic_timer_base_unlock(base, flags);
		return ret;
	}
	if (timer->state == APIC_TIMER_SHUTDOWN) {
		apic_timer_base_unlock(base, flags);
		return -ESHUTDOWN;
	}

	cpu = base->cpu;
	if (timer->state == APIC_TIMER_NEW || !base->online)
		cpu = smp_processor_id();
	timer->expires = expires;
	return arm_on(base, timer, cpu, flags);
}

/**
 * mod_apic_timer() - change a timer's expiry, and arm it if it is not pending
 * @timer:	timer, initialised, with @function set
 * @expires:	new expiry, absolute TSC in cycles
 *
 * The timer stays on its CPU: the one where it was last armed, or to which it has
 * migrated since. A timer that was never armed, or whose CPU is offline, is armed on
 * this CPU.
 *
 * Context: Any but NMI, also a handler. Takes and releases the lock of one or
 * two bases.
 * Return:
 * * %1 - it was pending, and is pending for @expires now
 * * %0 - it was not pending, and is pending for @expires now
 * * otherwise as add_apic_timer(), where
 * * %-ENODEV - also: if it was pending, it is cancelled
 */
int mod_apic_timer(struct apic_timer_list *timer, unsigned long long expires)
{
	struct apic_timer_base *base;
	unsigned long flags;

	if (armable(timer)) {
		base = apic_timer_base_lock_here(&flags);
		if (likely(apic_timer_base_owns(base, timer) && base->open &&
			   timer->state == APIC_TIMER_PENDING)) {
			change(base, timer, expires);
			apic_timer_base_unlock(base, flags);
			return 1;
		}
		if (likely(apic_timer_base_owns(base, timer) && base->open &&
			   apic_timer_state_idle(timer))) {
			timer->expires = expires;
			arm(base, timer);
			apic_timer_base_unlock(base, flags);
			return 0;
		}
		apic_timer_base_unlock(base, flags);
	}
	return mod_slowly(timer, expires, CALLER);
}
EXPORT_SYMBOL_GPL(mod_apic_timer);

/* Delete a timer that is pending. */
static __always_inline void del(struct apic_timer_base *base,
				struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	trace_apic_timer_del(timer);
	apic_timer_stats_inc(DELETED);
	if (apic_timer_base_sooner(apic_timer_base_dequeue(base, timer), timer))
		apic_timer_base_program(base);
}

/*
 * Delete a timer if it is pending, and shut it down if @shutdown. Set *@running
 * if its handler is running, and *@self if that handler is the caller.
 */
static int try_del(struct apic_timer_list *timer, bool shutdown, bool *running,
		   bool *self)
{
	struct apic_timer_base *base;
	unsigned long flags;
	int ret = 0;

	base = apic_timer_base_lock(timer, &flags);
	*running = apic_timer_base_runs(base, timer);
	*self = this_cpu_read(apic_timer_base.running) == timer;
	if (timer->state == APIC_TIMER_PENDING) {
		del(base, timer);
		ret = 1;
	} else if (timer->state == APIC_TIMER_NEW) {
		ret = -ENOENT;
	}
	if (shutdown && timer->state != APIC_TIMER_SHUTDOWN)
		apic_timer_set_state(timer, APIC_TIMER_SHUTDOWN);
	apic_timer_base_unlock(base, flags);
	return ret;
}

static noinline int del_slowly(struct apic_timer_list *timer,
			       const void *caller)
{
	int ret = check(timer, caller);
	bool running, self;

	if (ret)
		return ret;
	ret = try_del(timer, false, &running, &self);
	return !ret && running ? -EBUSY : ret;
}

/**
 * del_apic_timer() - delete a timer
 * @timer:	timer, initialised
 *
 * Does not wait for the handler: see del_apic_timer_sync().
 *
 * Context: Any but NMI, also a handler. Takes and releases the base's lock.
 * Return:
 * * %1 - it was pending; the handler will not run for it
 * * %0 - it was not pending: it has run or was skipped, or was deleted or cancelled before
 * * %-EBUSY - it was not pending, and its handler is running at this moment
 * * %-ENOENT - it was never armed
 * * %-EINVAL - not initialised
 * * %-EPERM - called from NMI
 */
int del_apic_timer(struct apic_timer_list *timer)
{
	struct apic_timer_base *base;
	unsigned long flags;

	if (readable(timer)) {
		base = apic_timer_base_lock_here(&flags);
		if (likely(apic_timer_base_owns(base, timer) &&
			   timer->state == APIC_TIMER_PENDING)) {
			del(base, timer);
			apic_timer_base_unlock(base, flags);
			return 1;
		}
		apic_timer_base_unlock(base, flags);
	}
	return del_slowly(timer, CALLER);
}
EXPORT_SYMBOL_GPL(del_apic_timer);

static noinline int del_and_wait(struct apic_timer_list *timer, bool shutdown,
				 const void *caller)
{
	int ret = check(timer, caller), deleted = 0;
	bool running, self;

	if (ret)
		return ret;

	for (;;) {
		ret = try_del(timer, shutdown, &running, &self);
		if (self)
			return refuse(-EDEADLK, caller,
				      "handler waits for its own timer");
		if (ret == 1)
			deleted = 1;
		if (!running)
			return ret < 0 ? ret : deleted;
		cpu_relax();
	}
}

/**
 * del_apic_timer_sync() - delete a timer and wait for its handler
 * @timer:	timer, initialised
 *
 * On return the timer is not pending and its handler runs on no CPU: it may be
 * freed, unless other code may arm it again meanwhile, which
 * apic_timer_shutdown_sync() prevents. If the handler arms its own timer again, the
 * timer is deleted as well.
 *
 * Context: Any but NMI. The caller must not hold a lock that the handler takes. A
 * call from the timer's own handler would wait forever, and is refused. Two handlers
 * on two CPUs that wait for each other are not detected, and hang.
 * Return:
 * * %1 - it was pending; the handler will not run for it
 * * %0 - it was not pending
 * * %-EDEADLK - called from the timer's own handler; the timer is not pending,
 *   but the handler is running
 * * %-ENOENT - it was never armed
 * * %-EINVAL - not initialised
 * * %-EPERM - called from NMI
 */
int del_apic_timer_sync(struct apic_timer_list *timer)
{
	struct apic_timer_base *base;
	unsigned long flags;

	if (readable(timer)) {
		base = apic_timer_base_lock_here(&flags);
		if (likely(apic_timer_base_owns(base, timer) &&
			   timer->state == APIC_TIMER_PENDING &&
			   !apic_timer_base_may_run(base, timer))) {
			del(base, timer);
			apic_timer_base_unlock(base, flags);
			return 1;
		}
		apic_timer_base_unlock(base, flags);
	}
	return del_and_wait(timer, false, CALLER);
}
EXPORT_SYMBOL_GPL(del_apic_timer_sync);

/**
 * apic_timer_shutdown_sync() - delete a timer, and refuse to arm it from then on
 * @timer:	timer, initialised
 *
 * Works like del_apic_timer_sync(); in addition, calls that arm @timer fail with
 * %-ESHUTDOWN until init_apic_timer() is called for it. It is therefore safe even if
 * other code arms @timer, such as the handler of another timer that @timer's handler
 * arms in turn: shut down one of the two, then the other. The other code may still
 * run, but must not use freed memory.
 *
 * Context: As del_apic_timer_sync().
 * Return:
 * * %1 - it was pending; the handler will not run for it
 * * %0 - it was not pending, or has been shut down before
 * * %-EDEADLK - called from the timer's own handler; the timer is shut down,
 *   but the handler is running
 * * %-EINVAL - not initialised
 * * %-EPERM - called from NMI
 */
int apic_timer_shutdown_sync(struct apic_timer_list *timer)
{
	int ret = del_and_wait(timer, true, CALLER);

	return ret == -ENOENT ? 0 : ret;
}
EXPORT_SYMBOL_GPL(apic_timer_shutdown_sync);

/**
 * apic_timer_pending() - check whether a timer is pending
 * @timer:	timer, initialised
 *
 * Context: Any. Takes no lock: the result may be outdated at once, unless the
 * caller keeps other code from arming or deleting the timer.
 * Return: true if it was armed and has neither expired nor been deleted.
 */
bool apic_timer_pending(const struct apic_timer_list *timer)
{
	if (unlikely(!timer))
		return refuse(false, CALLER, "no timer to query");
	return READ_ONCE(timer->state) == APIC_TIMER_PENDING;
}
EXPORT_SYMBOL_GPL(apic_timer_pending);
