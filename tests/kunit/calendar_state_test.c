// SPDX-License-Identifier: GPL-2.0
/*
 * calendar/state.c: the events of a unit, and its states after them.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "state.h"

static int after(const enum calendar_event *events, unsigned int n)
{
	int state = CALENDAR_OUT, next;
	unsigned int i;

	for (i = 0; i < n; i++) {
		next = calendar_next_state(state, events[i]);
		if (next == -EAGAIN)
			continue;
		if (next < 0)
			return next;
		state = next;
	}
	return state;
}

#define AFTER(...) after((const enum calendar_event[]) { __VA_ARGS__ },			\
	sizeof((const enum calendar_event[]) { __VA_ARGS__ }) / sizeof(enum calendar_event))

/* A window that ends in time, and one that is overrun. */
static void ways_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH), (int)CALENDAR_GO);
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_RESUME,
				    CALENDAR_CALL), (int)CALENDAR_WAITING);
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_RESUME,
				    CALENDAR_TIMEOUT, CALENDAR_STOP), (int)CALENDAR_PARKED);
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_RESUME,
				    CALENDAR_TIMEOUT, CALENDAR_STOP, CALENDAR_DISPATCH,
				    CALENDAR_RESUME), (int)CALENDAR_RUNS);
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_RESUME,
				    CALENDAR_TIMEOUT, CALENDAR_CALL), (int)CALENDAR_WAITING);
}

/* A window that ends before its thread gets the CPU leaves it waiting, never stuck. */
static void never_ran_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_TIMEOUT),
			(int)CALENDAR_WAITING);
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_TIMEOUT,
				    CALENDAR_RESUME, CALENDAR_DISPATCH), (int)CALENDAR_GO);
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_RESUME,
				    CALENDAR_TIMEOUT, CALENDAR_STOP, CALENDAR_DISPATCH,
				    CALENDAR_TIMEOUT), (int)CALENDAR_PARKED);
}

/* Task work that comes after its thread has called does not stop it. */
static void stale_stop_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, AFTER(CALENDAR_CALL, CALENDAR_DISPATCH, CALENDAR_RESUME,
				    CALENDAR_TIMEOUT, CALENDAR_CALL, CALENDAR_DISPATCH,
				    CALENDAR_RESUME, CALENDAR_STOP), (int)CALENDAR_RUNS);
}

/* Every event is legal or rejected as expected, from each state that can be reached. */
static void legal_test(struct kunit *test)
{
	bool reached[CALENDAR_STATES] = { [CALENDAR_OUT] = true };
	int round, state, event, next;

	for (round = 0; round < CALENDAR_STATES; round++) {
		for (state = 0; state < CALENDAR_STATES; state++) {
			for (event = 0; reached[state] && event < CALENDAR_EVENTS; event++) {
				next = calendar_next_state(state, event);
				if (next >= 0)
					reached[next] = true;
			}
		}
	}
	for (state = 0; state < CALENDAR_STATES; state++) {
		KUNIT_EXPECT_TRUE(test, reached[state]);
		/* In every state a unit can leave, and a moment of the table is not an error. */
		KUNIT_EXPECT_EQ(test, calendar_next_state(state, CALENDAR_LEAVE),
				(int)CALENDAR_OUT);
		KUNIT_EXPECT_NE(test, calendar_next_state(state, CALENDAR_DISPATCH), -EINVAL);
		KUNIT_EXPECT_NE(test, calendar_next_state(state, CALENDAR_TIMEOUT), -EINVAL);
	}
	/* A thread that sleeps in the kernel cannot call. */
	KUNIT_EXPECT_EQ(test, calendar_next_state(CALENDAR_WAITING, CALENDAR_CALL), -EINVAL);
	KUNIT_EXPECT_EQ(test, calendar_next_state(CALENDAR_PARKED, CALENDAR_CALL), -EINVAL);
	KUNIT_EXPECT_EQ(test, calendar_next_state(CALENDAR_RUNS, CALENDAR_RESUME), -EINVAL);
	KUNIT_EXPECT_EQ(test, calendar_next_state(CALENDAR_STATES, CALENDAR_CALL), -EINVAL);
	KUNIT_EXPECT_EQ(test, calendar_next_state(CALENDAR_OUT, CALENDAR_EVENTS), -EINVAL);
}

static struct kunit_case calendar_state_test_cases[] = {
	KUNIT_CASE(ways_test),
	KUNIT_CASE(never_ran_test),
	KUNIT_CASE(stale_stop_test),
	KUNIT_CASE(legal_test),
	{}
};

static struct kunit_suite calendar_state_test_suite = {
	.name = "apic_timer_calendar_state",
	.test_cases = calendar_state_test_cases,
};

kunit_test_suite(calendar_state_test_suite);
