/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Run threads as units of a calendar, with /dev/apic_calendar.
 *
 *	struct at_calendar calendar;
 *
 *	at_calendar_open(&calendar);		and APIC_CALENDAR_LOAD, or an inherited file
 *	at_calendar_bind(&calendar, unit);
 *	while (!at_calendar_wait(&calendar))
 *		work();			starts at calendar.wait.start, or some cycles later
 *
 * Header only, for x86; needs neither a library nor libc. Functions return 0 or a
 * negative errno value. A struct at_calendar belongs to one thread; several of them may
 * share a @fd.
 */
#ifndef APIC_CALENDAR_USER_H
#define APIC_CALENDAR_USER_H

#include <linux/apic_calendar.h>

#include "apic_timer_user.h"

#define AT_CALENDAR_DEVICE	"/dev/apic_calendar"

/**
 * struct at_calendar - a thread's view of a calendar
 * @fd:		open file of the calendar
 * @unit:	the thread's unit
 * @at:		state for waiting on the TSC
 * @wait:	the last call, as returned by the kernel
 * @returned:	TSC right after the last call
 * @began:	TSC at the first instruction of the window
 */
struct at_calendar {
	int fd;
	uint32_t unit;
	struct at at;
	struct apic_calendar_wait wait;
	uint64_t returned;
	uint64_t began;
};

/* Initialise for an open calendar @fd. Measures how this CPU waits. */
static inline void at_calendar_init(struct at_calendar *calendar, int fd)
{
	*calendar = (struct at_calendar) { .fd = fd, .at = { .fd = -1 } };
	at_measure(&calendar->at);
}

/* Open a new calendar. -ENOENT: apic_calendar is not loaded; -EACCES, -EPERM, -EMFILE. */
static inline int at_calendar_open(struct at_calendar *calendar)
{
	long ret = at_syscall(AT_NR_OPEN, (long)AT_CALENDAR_DEVICE,
			      02000002 /* O_CLOEXEC | O_RDWR */, 0, 0, 0, 0);

	if (ret < 0)
		return (int)ret;
	at_calendar_init(calendar, (int)ret);
	return 0;
}

static inline int at_calendar_call(const struct at_calendar *calendar, unsigned int command,
				   void *argument)
{
	return (int)at_syscall(AT_NR_IOCTL, calendar->fd, command, (long)argument, 0, 0, 0);
}

/* Become the thread of a unit. */
static inline int at_calendar_bind(struct at_calendar *calendar, uint32_t unit)
{
	struct apic_calendar_bind bind = { .size = sizeof(bind), .unit = unit };

	calendar->unit = unit;
	calendar->returned = 0;
	calendar->began = 0;
	return at_calendar_call(calendar, APIC_CALENDAR_BIND, &bind);
}

/* End the window and wait until shortly before the next one. */
at_inline int at_calendar_end(struct at_calendar *calendar)
{
	uint64_t tsc;
	int ret;

	calendar->wait = (struct apic_calendar_wait) {
		.size = sizeof(calendar->wait),
		.unit = calendar->unit,
		.returned = calendar->returned,
		.began = calendar->began,
	};
	ret = (int)at_call(AT_NR_IOCTL, calendar->fd, APIC_CALENDAR_WAIT,
			   (long)&calendar->wait, 0, 0, 0, &tsc);
	calendar->returned = ret ? 0 : tsc;
	calendar->began = 0;
	return ret;
}

/*
 * End the window and wait for the next one. The first instruction after the call is the
 * first of that window. Errors: as for APIC_CALENDAR_WAIT.
 */
at_inline int at_calendar_wait(struct at_calendar *calendar)
{
	const struct apic_calendar_wait *wait = &calendar->wait;
	int ret;

	/* If the TSC has restarted, the window does not come: the kernel tells why. */
	do {
		ret = at_calendar_end(calendar);
		if (ret)
			return ret;
	} while (!at_approach(&calendar->at, wait->start, wait->start - wait->lead));
	at_spin(wait->start - calendar->at.cost);
	calendar->began = at_readtsc();
	return 0;
}

#endif /* APIC_CALENDAR_USER_H */
