// SPDX-License-Identifier: GPL-2.0
/*
 * A calendar's memory, and the threads that poll it.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "calendar.h"

/* Maximum number of calendars open at a time. */
#define CALENDARS_MAX	64

static struct calendar_pollers pollers[CALENDARS_MAX];
static DECLARE_BITMAP(pollers_used, CALENDARS_MAX);

static void wake(struct irq_work *work)
{
	struct calendar_pollers *own = container_of(work, struct calendar_pollers, wake);

	/* They may be pollers of the next calendar; then the wake-up is spurious. */
	wake_up_poll(&own->wait, EPOLLIN | EPOLLRDNORM | EPOLLPRI);
}

static struct calendar_pollers *get_pollers(void)
{
	unsigned long i;

	do {
		i = find_first_zero_bit(pollers_used, CALENDARS_MAX);
		if (i == CALENDARS_MAX)
			return NULL;
	} while (test_and_set_bit(i, pollers_used));
	return &pollers[i];
}

static void put_pollers(struct calendar_pollers *own)
{
	clear_bit(own - pollers, pollers_used);
}

/**
 * calendar_wake_pollers() - wake threads that poll; they see all earlier writes
 * @calendar:	the calendar
 *
 * Context: Any.
 */
void calendar_wake_pollers(struct calendar *calendar)
{
	if (wq_has_sleeper(&calendar->pollers->wait))
		irq_work_queue(&calendar->pollers->wake);
}

/**
 * calendar_pollers_init() - prepare for calendars
 *
 * Context: Any.
 */
void calendar_pollers_init(void)
{
	unsigned int i;

	for (i = 0; i < CALENDARS_MAX; i++) {
		init_waitqueue_head(&pollers[i].wait);
		init_irq_work(&pollers[i].wake, wake);
	}
}

/**
 * calendar_pollers_exit() - wait until no irq_work wakes pollers any more
 *
 * irq_work_sync() may leave an interrupt running, or on PREEMPT_RT a thread that does not sleep.
 * The caller waits for it by synchronize_rcu_tasks().
 *
 * Context: Task. Sleeps. There is no calendar.
 */
void calendar_pollers_exit(void)
{
	unsigned int i;

	for (i = 0; i < CALENDARS_MAX; i++)
		irq_work_sync(&pollers[i].wake);
}

static void calendar_free(struct kref *kref)
{
	struct calendar *calendar = container_of(kref, struct calendar, kref);

	kvfree(calendar->units);
	kvfree(calendar->cpus);
	calendar_ring_free(&calendar->ring);
	put_pollers(calendar->pollers);
	kfree(calendar);
}

/**
 * calendar_put() - drop a reference
 * @calendar:	the calendar
 *
 * Context: Task. Sleeps.
 */
void calendar_put(struct calendar *calendar)
{
	kref_put(&calendar->kref, calendar_free);
}

/**
 * calendar_new() - create a calendar
 *
 * Context: Task. Sleeps.
 * Return: the calendar, with a reference for calendar_put(); or an error.
 */
struct calendar *calendar_new(void)
{
	struct calendar_pollers *own = get_pollers();
	struct calendar *calendar;

	if (!own)
		return ERR_PTR(-EMFILE);
	calendar = kzalloc(sizeof(*calendar), GFP_KERNEL_ACCOUNT);
	if (!calendar || calendar_ring_init(&calendar->ring)) {
		kfree(calendar);
		put_pollers(own);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&calendar->kref);
	mutex_init(&calendar->loading);
	mutex_init(&calendar->stopping);
	raw_spin_lock_init(&calendar->lock);
	init_completion(&calendar->left);
	init_completion(&calendar->gone);
	calendar->change.at = CALENDAR_NEVER;
	calendar->pollers = own;
	return calendar;
}
