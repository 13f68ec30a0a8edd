// SPDX-License-Identifier: GPL-2.0
/*
 * States of a unit with a thread.
 *
 *	            CALL              DISPATCH            RESUME
 *	  OUT ---------------> WAITING --------> GO ---------------> RUNS
 *	                          ^  <---------- TIMEOUT               | TIMEOUT
 *	                          |             (never ran)            v
 *	                          +--------------------------- CALL -- OVER
 *	                                                               | STOP
 *	          RUNS <-- RESUME -- GO_ON <-- DISPATCH -- PARKED <----+
 *	                                 TIMEOUT --> PARKED
 *
 * A window may end before its thread got the CPU. The thread then waits for the next window,
 * as if this one had not existed.
 */
#include <linux/errno.h>

#include "state.h"

#define NO	(-EINVAL)	/* does not happen */
#define MISS	(-EAGAIN)	/* the state stays */

static const int next[CALENDAR_STATES][CALENDAR_EVENTS] = {
	/*		    CALL	      DISPATCH	       RESUME
	 *		    TIMEOUT	      STOP	       LEAVE
	 */
	[CALENDAR_OUT] =     { CALENDAR_WAITING, MISS,		MISS,
			       MISS,		 MISS,		CALENDAR_OUT },
	[CALENDAR_WAITING] = { NO,		 CALENDAR_GO,	MISS,
			       MISS,		 MISS,		CALENDAR_OUT },
	[CALENDAR_GO] =	     { NO,		 MISS,		CALENDAR_RUNS,
			       CALENDAR_WAITING, MISS,		CALENDAR_OUT },
	[CALENDAR_RUNS] =    { CALENDAR_WAITING, MISS,		NO,
			       CALENDAR_OVER,	 MISS,		CALENDAR_OUT },
	[CALENDAR_OVER] =    { CALENDAR_WAITING, MISS,		NO,
			       MISS,		 CALENDAR_PARKED, CALENDAR_OUT },
	[CALENDAR_PARKED] =  { NO,		 CALENDAR_GO_ON, MISS,
			       MISS,		 NO,		CALENDAR_OUT },
	[CALENDAR_GO_ON] =   { NO,		 MISS,		CALENDAR_RUNS,
			       CALENDAR_PARKED,	 NO,		CALENDAR_OUT },
};

/**
 * calendar_next_state() - find a unit's next state after an event
 * @state:	its present state
 * @event:	the event
 *
 * Context: Any.
 * Return: its next state; -EAGAIN if the event does not change the state; -EINVAL if the event
 * can't happen in this state.
 */
int calendar_next_state(enum calendar_state state, enum calendar_event event)
{
	if (state >= CALENDAR_STATES || event >= CALENDAR_EVENTS)
		return -EINVAL;
	return next[state][event];
}
