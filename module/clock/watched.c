// SPDX-License-Identifier: GPL-2.0
/*
 * Find out whether the kernel's clocksource watchdog watches the TSC. A kernel that trusts a
 * TSC from the start does not watch it, and would not notice if it failed later.
 *
 * The kernel has no function for that, but passes its timekeeper to notifiers, and to each one
 * when it is registered. We therefore register a notifier for a moment.
 */
#include <linux/clocksource.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/timekeeper_internal.h>

#include "watched.h"

static DEFINE_MUTEX(watched_mutex);
static enum apic_clock_watch found;	/* watched_mutex */

/* Called under the timekeeper's lock: reading a clock here would deadlock. */
static int see_clocksource(struct notifier_block *block, unsigned long was_set, void *timekeeper)
{
	const struct clocksource *clock = ((struct timekeeper *)timekeeper)->tkr_mono.clock;

	if (clock->vdso_clock_mode != VDSO_CLOCKMODE_TSC)
		found = APIC_CLOCK_WATCH_UNKNOWN;
	else if (!(clock->flags & CLOCK_SOURCE_MUST_VERIFY))
		found = APIC_CLOCK_WATCH_OFF;
	/* The first comparison sets this flag. */
	else if (!(clock->flags & CLOCK_SOURCE_WATCHDOG))
		found = APIC_CLOCK_WATCH_WAITS;
	else
		found = APIC_CLOCK_WATCH_ON;
	return NOTIFY_OK;
}

static struct notifier_block block = {
	.notifier_call = see_clocksource,
};

/**
 * apic_clock_watched() - find out whether the kernel's watchdog watches the TSC
 *
 * Context: Task.
 * Return: the answer; %APIC_CLOCK_WATCH_UNKNOWN while another clocksource is in use.
 */
enum apic_clock_watch apic_clock_watched(void)
{
	enum apic_clock_watch answer;

	mutex_lock(&watched_mutex);
	/* This calls see_clocksource() before it returns. */
	pvclock_gtod_register_notifier(&block);
	pvclock_gtod_unregister_notifier(&block);
	answer = found;
	mutex_unlock(&watched_mutex);
	return answer;
}
