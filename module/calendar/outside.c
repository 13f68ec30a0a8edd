// SPDX-License-Identifier: GPL-2.0
/*
 * Events of the machine: a CPU goes offline, a suspend, the TSC becomes unstable.
 *
 * When a CPU goes offline, the calendars that have windows there are stopped: a table was
 * planned for all of its CPUs together. A suspend stops all calendars, because TSC values may
 * have another meaning afterwards.
 */
#include <linux/apic_timer.h>
#include <linux/bitops.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "calendar.h"

static bool allow_unstable;
module_param(allow_unstable, bool, 0644);
MODULE_PARM_DESC(allow_unstable, "allow calendars of several CPUs even if the TSC is unstable");

static LIST_HEAD(calendars);
static DEFINE_MUTEX(mutex);		/* the list */
static bool sleeps;
static unsigned long events;		/* of the TSC, not handled yet */
static int cpu_state;

/**
 * calendar_outside_add() - add a calendar that is opened
 * @calendar:	the calendar
 *
 * Context: Task. Sleeps.
 */
void calendar_outside_add(struct calendar *calendar)
{
	mutex_lock(&mutex);
	list_add(&calendar->node, &calendars);
	mutex_unlock(&mutex);
}

/**
 * calendar_outside_del() - remove a calendar that is closed
 * @calendar:	the calendar
 *
 * Context: Task. Sleeps.
 */
void calendar_outside_del(struct calendar *calendar)
{
	mutex_lock(&mutex);
	list_del(&calendar->node);
	mutex_unlock(&mutex);
}

static bool is_unit(const struct calendar *calendar, const struct task_struct *task)
{
	u32 i;

	if (!smp_load_acquire(&calendar->n_tables)) /* calendar_load(): then units exist */
		return false;
	for (i = 0; i < calendar->n_units; i++) {
		if (READ_ONCE(calendar->units[i].task) == task)
			return true;
	}
	return false;
}

/**
 * calendar_outside_has() - check whether a thread is a unit of any calendar
 * @task:	the thread
 *
 * Context: Task. Sleeps.
 * Return: true if it is.
 */
bool calendar_outside_has(const struct task_struct *task)
{
	struct calendar *calendar;
	bool found = false;

	mutex_lock(&mutex);
	list_for_each_entry(calendar, &calendars, node)
		found |= is_unit(calendar, task);
	mutex_unlock(&mutex);
	return found;
}

/**
 * calendar_outside_sleeps() - check whether the machine is about to be suspended
 *
 * Context: Any.
 * Return: true if it is.
 */
bool calendar_outside_sleeps(void)
{
	return READ_ONCE(sleeps);
}

/**
 * calendar_outside_usable() - check whether the CPUs of a calendar share a common time
 * @calendar:	the calendar
 *
 * Context: Task.
 * Return: true if they do.
 */
bool calendar_outside_usable(struct calendar *calendar)
{
	struct apic_timer_info info = { };

	if (calendar->n_cpus == 1 || READ_ONCE(allow_unstable))
		return true;
	apic_timer_query(calendar->cpus[0].cpu, &info);
	return info.tsc_stable;
}

static struct calendar_cpu *find(const struct calendar *calendar, unsigned int cpu)
{
	u32 i;

	if (!smp_load_acquire(&calendar->n_tables)) /* calendar_load(): then CPUs exist */
		return NULL;
	for (i = 0; i < calendar->n_cpus; i++) {
		if (calendar->cpus[i].cpu == cpu)
			return &calendar->cpus[i];
	}
	return NULL;
}

/*
 * Usually this deletes our timers before apic_timer migrates them. But both hotplug states take
 * the first free slot, and if ours has the earlier slot, apic_timer releases the CPU first.
 * dispatched() checks for that.
 *
 * START and BIND of all calendars wait for the kernel meanwhile, open() and close() for us: leave
 * the threads, which may keep us waiting for any time, to the keeper.
 */
static int cpu_goes(unsigned int cpu)
{
	struct calendar *calendar;
	struct calendar_cpu *goes;

	mutex_lock(&mutex);
	list_for_each_entry(calendar, &calendars, node) {
		goes = find(calendar, cpu);
		if (!goes)
			continue;
		calendar_stop_sync(calendar, -ENODEV);
		calendar_keeper_cast_off(calendar, goes);
	}
	mutex_unlock(&mutex);
	return 0;
}

static int machine_sleeps(struct notifier_block *block, unsigned long event, void *data)
{
	struct calendar *calendar;

	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		WRITE_ONCE(sleeps, true);
		smp_mb();	/* start() sees the flag, or we see its calendar */
		mutex_lock(&mutex);
		list_for_each_entry(calendar, &calendars, node) {
			if (smp_load_acquire(&calendar->n_tables)) /* calendar_load() */
				calendar_stop_sync(calendar, -ECANCELED);
		}
		mutex_unlock(&mutex);
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		WRITE_ONCE(sleeps, false);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block sleep_block = { .notifier_call = machine_sleeps };

/* Stop calendars after a TSC event. For a new epoch, the suspend should have done so already. */
static void stop_some(struct work_struct *work)
{
	bool epoch = test_and_clear_bit(APIC_TIMER_TSC_EPOCH, &events);
	bool unstable = test_and_clear_bit(APIC_TIMER_TSC_UNSTABLE, &events);
	struct calendar *calendar;

	mutex_lock(&mutex);
	list_for_each_entry(calendar, &calendars, node) {
		if (!smp_load_acquire(&calendar->n_tables)) /* calendar_load() */
			continue;
		if (epoch)
			calendar_stop_sync(calendar, -ECANCELED);
		else if (unstable && calendar->n_cpus > 1 && !READ_ONCE(allow_unstable))
			calendar_stop_sync(calendar, -ENXIO);
	}
	mutex_unlock(&mutex);
}

static DECLARE_WORK(stop_work, stop_some);

/* Leave it to a work: interrupts may be off, and there may be any number of calendars. */
static int tsc_changed(struct notifier_block *block, unsigned long event, void *data)
{
	if (event != APIC_TIMER_TSC_EPOCH && event != APIC_TIMER_TSC_UNSTABLE)
		return NOTIFY_DONE;
	set_bit(event, &events);
	queue_work(system_highpri_wq, &stop_work);
	return NOTIFY_OK;
}

static struct notifier_block tsc_block = { .notifier_call = tsc_changed };

/**
 * calendar_outside_init() - register for events of the machine
 *
 * Context: Task. Sleeps.
 * Return: 0 or an error.
 */
int calendar_outside_init(void)
{
	int ret;

	ret = apic_timer_register_notifier(&tsc_block);
	if (ret)
		return ret;
	ret = register_pm_notifier(&sleep_block);
	if (ret)
		goto tsc;
	/* Registered after apic_timer's, so usually called before it: see cpu_goes(). */
	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "apic_calendar:online", NULL,
					cpu_goes);
	if (ret < 0)
		goto pm;
	cpu_state = ret;
	return 0;
pm:
	unregister_pm_notifier(&sleep_block);
tsc:
	apic_timer_unregister_notifier(&tsc_block);
	cancel_work_sync(&stop_work);
	return ret;
}

/**
 * calendar_outside_exit() - undo calendar_outside_init()
 *
 * Context: Task. Sleeps. No calendar exists any more.
 */
void calendar_outside_exit(void)
{
	cpuhp_remove_state_nocalls(cpu_state);
	unregister_pm_notifier(&sleep_block);
	apic_timer_unregister_notifier(&tsc_block);
	cancel_work_sync(&stop_work);
}
