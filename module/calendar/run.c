// SPDX-License-Identifier: GPL-2.0
/*
 * Start and stop calendars, and switch to other tables, at a user's request.
 */
#include <linux/apic_struct.h>
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/time64.h>
#include <uapi/linux/apic_timer.h>

#include <trace/events/apic_calendar.h>

#include "calendar.h"

/* Sizes of the structures' first versions. */
#define START_SIZE_VER0	24
#define STOP_SIZE_VER0	16

/* Minimum time until a start: arming takes an interrupt on each CPU. */
#define LEAST_NS	(200 * NSEC_PER_USEC)
/* Time until a start for which the user has given no moment. */
#define SOON_NS		NSEC_PER_MSEC

static_assert(sizeof(struct apic_calendar_start) == START_SIZE_VER0);
static_assert(offsetof(struct apic_calendar_start, clock) == 16);
static_assert(sizeof(struct apic_calendar_stop) == STOP_SIZE_VER0);

/**
 * calendar_epoch() - return the present epoch, as users number it
 *
 * Context: Any.
 * Return: its number, not 0.
 */
u32 calendar_epoch(void)
{
	struct apic_timer_info info = { };

	apic_timer_query(raw_smp_processor_id(), &info);
	return apic_struct_epoch(info.tsc_epoch);
}

static int arm(struct calendar_cpu *cpu, const struct calendar_table *table, u64 origin)
	__must_hold(&cpu->calendar->lock)
{
	int ret;

	raw_spin_lock(&cpu->lock);
	cpu->on = true;
	cpu->changed_at = 0;
	cpu->ending = false;
	cpu->base = 0;
	cpu->running = NULL;
	calendar_position_begin(&cpu->position, table, cpu->slot, origin);
	ret = calendar_cpu_arm(cpu, false);
	raw_spin_unlock(&cpu->lock);
	return ret;
}

/* Arm one CPU at a time. A concurrent stop finds the armed ones on. */
static int arm_all(struct calendar *calendar, const struct calendar_table *table, u64 origin)
{
	unsigned long flags;
	int ret = 0;
	u32 i;

	for (i = 0; i < calendar->n_cpus && !ret; i++) {
		raw_spin_lock_irqsave(&calendar->lock, flags);
		ret = calendar->running ? arm(&calendar->cpus[i], table, origin) : -ECANCELED;
		raw_spin_unlock_irqrestore(&calendar->lock, flags);
	}
	return ret;
}

static bool too_near(u64 origin)
{
	return origin < apic_timer_now() + apic_timer_ns_to_tsc(LEAST_NS);
}

/* Start at @origin, or with @soon at a moment to which @origin is set. */
static int start(struct calendar *calendar, const struct calendar_table *table, bool soon,
		 u64 *origin)
	__must_hold(&calendar->loading)
{
	int ret;
	u32 i;

	lockdep_assert_held(&calendar->loading);
	if (READ_ONCE(calendar->running))
		return -EBUSY;
	/* Keep the CPUs online until they are armed: cpu_goes() would miss the calendar. */
	cpus_read_lock();
	ret = calendar_own(calendar);
	if (ret)
		goto out;
	/* Handlers from before the last stop, which is complete, may still be running. */
	calendar_del_timers(calendar);
	for (i = 0; i < calendar->n_units; i++)
		calendar_unit_moor(&calendar->units[i]);
	/*
	 * All this may have taken any time, as when CPUs go offline. From here on only interrupts
	 * hold this task up.
	 */
	preempt_disable();
	if (soon) {
		*origin = apic_timer_now() + apic_timer_ns_to_tsc(SOON_NS);
	} else if (too_near(*origin)) {
		preempt_enable();
		calendar_disown(calendar);
		ret = -ETIME;
		goto out;
	}
	raw_spin_lock_irq(&calendar->lock);
	calendar->running = true;
	calendar->starting = true;
	calendar->table = table;
	calendar->origin = *origin;
	calendar->base = 0;
	WRITE_ONCE(calendar->change.at, CALENDAR_NEVER);
	calendar->overruns = 0;
	raw_spin_unlock_irq(&calendar->lock);
	smp_mb();	/* machine_sleeps() or stop_some() stops us, or we see its reason */
	if (calendar_outside_sleeps())
		ret = -EAGAIN;
	else if (!calendar_outside_usable(calendar))
		ret = -ENXIO;
	else
		ret = arm_all(calendar, table, *origin);
	preempt_enable();

	raw_spin_lock_irq(&calendar->lock);
	calendar->starting = false;
	if (!ret && !calendar->running)
		ret = -ECANCELED;
	if (!ret)
		trace_apic_calendar_start(table->number, *origin);
	raw_spin_unlock_irq(&calendar->lock);
	if (ret)
		calendar_stop_by_task(calendar, -ECANCELED);
out:
	cpus_read_unlock();
	if (ret)
		calendar_del_timers(calendar);
	return ret;
}

/* Convert a user's moment to a TSC value. */
static int convert(const struct apic_calendar_start *a, u64 *tsc)
{
	static const clockid_t clocks[] = {
		[APIC_TIMER_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[APIC_TIMER_CLOCK_TAI] = CLOCK_TAI,
	};
	u64 when = a->when, error;
	u32 clock;

	if (a->clock > APIC_TIMER_CLOCK_TAI)
		return -EINVAL;
	clock = array_index_nospec(a->clock, ARRAY_SIZE(clocks));
	if (when && a->clock != APIC_TIMER_CLOCK_TSC) {
		when = a->clock == APIC_TIMER_CLOCK_MONOTONIC ? apic_struct_mono(when) :
								min_t(u64, when, KTIME_MAX);
		when = apic_timer_clock_to_tsc(clocks[clock], when, &error);
	}
	*tsc = when;
	return calendar_is_far(*tsc, apic_timer_now()) ? -EINVAL : 0;
}

static int prepare(struct calendar *calendar, struct apic_calendar_start *a,
		   void __user *argument, u32 *usize, u64 *tsc)
{
	u32 epoch = calendar_epoch(), wanted, n_tables;
	int ret;

	ret = apic_struct_in(a, sizeof(*a), START_SIZE_VER0, argument, usize);
	if (ret)
		return ret;
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	ret = convert(a, tsc);
	if (ret)
		return ret;
	n_tables = smp_load_acquire(&calendar->n_tables); /* calendar_load() */
	if (a->table >= n_tables)
		return -EINVAL;
	a->table = array_index_nospec(a->table, n_tables);
	wanted = a->epoch;
	a->epoch = epoch;
	return wanted && a->clock == APIC_TIMER_CLOCK_TSC && wanted != epoch ? -ESTALE : 0;
}

/**
 * calendar_start() - APIC_CALENDAR_START
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_start
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_calendar_start.
 */
long calendar_start(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_start a;
	u32 usize;
	u64 tsc;
	int ret;

	ret = prepare(calendar, &a, argument, &usize, &tsc);
	if (ret == -ESTALE)
		return apic_struct_out(argument, usize, &a, sizeof(a)) ?: ret;
	if (ret)
		return ret;
	if (mutex_lock_interruptible(&calendar->loading))
		return -ERESTARTSYS;
	/* Check @when, not @tsc: a moment before TSC 0 is converted to 0. */
	if (a.when && too_near(tsc))
		ret = -ETIME;
	else if (!calendar_outside_usable(calendar))
		ret = -ENXIO;
	else
		ret = start(calendar, calendar->tables[a.table], !a.when, &tsc);
	mutex_unlock(&calendar->loading);
	if (ret)
		return ret;
	a.when = tsc;
	return apic_struct_out(argument, usize, &a, sizeof(a));
}

/**
 * calendar_switch() - APIC_CALENDAR_SWITCH
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_start
 *
 * Context: Task.
 * Return: 0, or an error: see &struct apic_calendar_start.
 */
long calendar_switch(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_start a;
	u32 usize;
	u64 tsc;
	int ret;

	ret = prepare(calendar, &a, argument, &usize, &tsc);
	if (ret == -ESTALE)
		return apic_struct_out(argument, usize, &a, sizeof(a)) ?: ret;
	if (!ret)
		ret = calendar_change_to(calendar, calendar->tables[a.table], tsc, &a.when);
	return ret ?: apic_struct_out(argument, usize, &a, sizeof(a));
}

/**
 * calendar_stop_by_user() - APIC_CALENDAR_STOP
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_stop
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_calendar_stop.
 */
long calendar_stop_by_user(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_stop a;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), STOP_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	if (a.flags & ~APIC_CALENDAR_AT_BOUNDARY)
		return -EINVAL;
	if (a.flags & APIC_CALENDAR_AT_BOUNDARY) {
		ret = calendar_change_to(calendar, NULL, 0, &a.when);
	} else {
		ret = calendar_stop_by_task(calendar, -ECANCELED) ? 0 : -ESRCH;
		a.when = apic_timer_now();
	}
	return ret ?: apic_struct_out(argument, usize, &a, sizeof(a));
}
