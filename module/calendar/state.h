/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_STATE_H
#define _APIC_CALENDAR_STATE_H

/**
 * enum calendar_state - states of a unit with a thread
 * @CALENDAR_OUT:	the thread runs or sleeps like any other, or there is none
 * @CALENDAR_WAITING:	the thread waits for its next window, in a call
 * @CALENDAR_GO:	its window has begun, and the thread is being woken
 * @CALENDAR_RUNS:	the thread has got the CPU in its window
 * @CALENDAR_OVER:	its window is over, and the thread has not called
 * @CALENDAR_PARKED:	the thread was stopped after that, and waits for its next window
 * @CALENDAR_GO_ON:	as %CALENDAR_GO, from %CALENDAR_PARKED
 * @CALENDAR_STATES:	number of states
 */
enum calendar_state {
	CALENDAR_OUT,
	CALENDAR_WAITING,
	CALENDAR_GO,
	CALENDAR_RUNS,
	CALENDAR_OVER,
	CALENDAR_PARKED,
	CALENDAR_GO_ON,
	CALENDAR_STATES,
};

/**
 * enum calendar_event - events of a unit
 * @CALENDAR_CALL:	its thread calls, to wait for the next window
 * @CALENDAR_DISPATCH:	a window begins
 * @CALENDAR_RESUME:	its thread gets the CPU
 * @CALENDAR_TIMEOUT:	the window is over
 * @CALENDAR_STOP:	its thread is stopped before it returns to user space
 * @CALENDAR_LEAVE:	a signal, the end of the thread, of its binding, of the calendar
 * @CALENDAR_EVENTS:	number of events
 */
enum calendar_event {
	CALENDAR_CALL,
	CALENDAR_DISPATCH,
	CALENDAR_RESUME,
	CALENDAR_TIMEOUT,
	CALENDAR_STOP,
	CALENDAR_LEAVE,
	CALENDAR_EVENTS,
};

int calendar_next_state(enum calendar_state state, enum calendar_event event);

#endif /* _APIC_CALENDAR_STATE_H */
