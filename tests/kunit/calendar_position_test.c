// SPDX-License-Identifier: GPL-2.0
/*
 * calendar/position.c: which window is next on each CPU, and that all CPUs change at once.
 */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/prandom.h>

#include "position.h"

#define SLOTS		3
#define WINDOWS		6
#define STEPS		2000

static const struct calendar_change never = { .at = CALENDAR_NEVER };

/* A table with its own memory. */
struct made {
	struct calendar_table table;
	u32 slot[SLOTS + 1];
	struct calendar_window windows[WINDOWS];
};

/* Make windows in random slots; some slots have none. */
static void make(struct made *made, struct rnd_state *rnd, u32 number, bool cycles)
{
	u32 i, slot = 0, n = 1 + prandom_u32_state(rnd) % WINDOWS;
	u64 at = 0;

	made->table = (struct calendar_table) {
		.number = number, .cycles = cycles, .n_slots = SLOTS,
		.slot = made->slot, .windows = made->windows,
	};
	memset(made->slot, 0, sizeof(made->slot));
	for (i = 0; i < n; i++) {
		while (slot < SLOTS - 1 && prandom_u32_state(rnd) % 3 == 0) {
			made->slot[++slot] = i;
			at = 0;
		}
		at += 1 + prandom_u32_state(rnd) % 50;
		made->windows[i] = (struct calendar_window) {
			.offset = at, .budget = 1, .unit = slot, .entry = i,
		};
	}
	while (slot < SLOTS)
		made->slot[++slot] = n;
	made->table.major = 1000 + prandom_u32_state(rnd) % 777;
}

/* The start of cycle n does not depend on how it is reached, and no ns are lost. */
static void drift_test(struct kunit *test)
{
	struct calendar_window window = { .offset = 5, .budget = 1 };
	struct calendar_table table = {
		.major = 333, .n_slots = 1, .slot = (u32[]) { 0, 1 }, .windows = &window,
	};
	struct calendar_position position;
	u64 i;

	calendar_position_begin(&position, &table, 0, 1000);
	for (i = 1; i < 100000; i++) {
		KUNIT_ASSERT_FALSE(test, calendar_position_advance(&position, &never));
		KUNIT_ASSERT_EQ(test, position.start, 1000 + apic_timer_ns_to_tsc(333 * i));
		KUNIT_ASSERT_EQ(test, position.n, i);
	}
}

/* A boundary is the first from a moment on. */
static void boundary_test(struct kunit *test)
{
	struct rnd_state rnd;
	struct made made;
	u64 origin, at, n, found, cycle;
	int i;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < STEPS; i++) {
		make(&made, &rnd, 0, i & 1);
		origin = prandom_u32_state(&rnd);
		at = origin - 500 + prandom_u32_state(&rnd) % 100000;
		found = calendar_boundary(&made.table, origin, at, &cycle);
		for (n = 0; calendar_cycle_start(&made.table, origin, n) < at; n++)
			;
		KUNIT_ASSERT_EQ(test, found, calendar_cycle_start(&made.table, origin, n));
		KUNIT_ASSERT_EQ(test, cycle, n);
	}
	/* A moment that no cycle reaches is rejected, without taking time. */
	for (i = 0; i < 2; i++) {
		made.table.cycles = i;
		KUNIT_EXPECT_EQ(test, calendar_boundary(&made.table, 5, U64_MAX, &cycle),
				CALENDAR_NEVER);
		KUNIT_EXPECT_EQ(test, calendar_boundary(&made.table, 5, U64_MAX / 2, &cycle),
				CALENDAR_NEVER);
	}
}

/* The limits hold for a TSC with any value. */
static void far_test(struct kunit *test)
{
	static const u64 nows[] = { 0, 1, 2 * CALENDAR_FAR, U64_MAX - CALENDAR_FAR - 1, U64_MAX };
	u64 now, left;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nows); i++) {
		now = nows[i];
		left = U64_MAX - now;
		KUNIT_EXPECT_FALSE(test, calendar_is_far(0, now));
		KUNIT_EXPECT_FALSE(test, calendar_is_far(now, now));
		KUNIT_EXPECT_FALSE(test, calendar_is_far(now + min(left, CALENDAR_FAR), now));
		KUNIT_EXPECT_EQ(test, calendar_is_far(U64_MAX, now), left > CALENDAR_FAR);
	}
}

/* A CPU walks through some cycles of a table; @change happens after them. */
static void walk(struct kunit *test, struct calendar_position *position,
		 const struct calendar_table *table, u64 origin, u64 cycles,
		 const struct calendar_change *change)
{
	u32 slot = position->slot, i;
	bool changed;
	u64 n;

	for (n = 0; n < cycles; n++) {
		for (i = table->slot[slot]; i < table->slot[slot + 1]; i++) {
			KUNIT_ASSERT_PTR_EQ(test, position->table, table);
			KUNIT_ASSERT_PTR_EQ(test, calendar_window(position), &table->windows[i]);
			KUNIT_ASSERT_EQ(test, position->start,
					calendar_cycle_start(table, origin, n));
			KUNIT_ASSERT_EQ(test, position->n, n);
			changed = calendar_position_advance(position, change);
			KUNIT_ASSERT_EQ(test, changed, n == cycles - 1 &&
					i == table->slot[slot + 1] - 1);
		}
	}
}

/*
 * Compare with a list of all windows: CPUs walk through two tables with a change at a random
 * boundary, and to a stop. Each CPU gets each of its windows once, in order, at its moment.
 */
static void change_test(struct kunit *test)
{
	struct made *made = kunit_kcalloc(test, 2, sizeof(*made), GFP_KERNEL);
	struct calendar_change change, stop = { };
	struct calendar_position position;
	u64 origin, cycles[2];
	struct rnd_state rnd;
	u32 slot;
	int run;

	KUNIT_ASSERT_NOT_NULL(test, made);
	prandom_seed_state(&rnd, 2026);
	for (run = 0; run < STEPS; run++) {
		make(&made[0], &rnd, 0, run & 1);
		make(&made[1], &rnd, 1, run & 2);
		origin = 1000000 + prandom_u32_state(&rnd) % 1000;
		cycles[0] = 1 + prandom_u32_state(&rnd) % 4;
		cycles[1] = 1 + prandom_u32_state(&rnd) % 4;
		change.at = calendar_cycle_start(&made[0].table, origin, cycles[0]);
		change.table = &made[1].table;
		stop.at = calendar_cycle_start(&made[1].table, change.at, cycles[1]);
		for (slot = 0; slot < SLOTS; slot++) {
			calendar_position_begin(&position, &made[0].table, slot, origin);
			/* As the module does for a CPU without windows. */
			if (!position.table)
				calendar_position_begin(&position, change.table, slot, change.at);
			walk(test, &position, &made[0].table, origin, cycles[0], &change);
			walk(test, &position, &made[1].table, change.at, cycles[1], &stop);
			KUNIT_ASSERT_NULL(test, position.table);
		}
	}
}

/* Cycles that have passed are skipped, but not the present one, and not a change. */
static void pass_test(struct kunit *test)
{
	struct calendar_position position;
	u64 now, limit, n, wanted, left_out;
	struct rnd_state rnd;
	struct made made;
	int run;

	prandom_seed_state(&rnd, 11);
	for (run = 0; run < STEPS; run++) {
		do {
			make(&made, &rnd, 0, run & 1);
		} while (made.slot[0] == made.slot[1]);
		calendar_position_begin(&position, &made.table, 0, 5000);
		for (n = prandom_u32_state(&rnd) % 4; n; n--) {
			position.n++;
			position.start = calendar_cycle_start(&made.table, 5000, position.n);
		}
		now = 4000 + prandom_u32_state(&rnd) % 60000;
		limit = run % 3 ? CALENDAR_NEVER :
			calendar_boundary(&made.table, 5000,
					  now + prandom_u32_state(&rnd) % 20000 - 4000, &n);
		n = position.n;
		wanted = n;
		while (calendar_cycle_start(&made.table, 5000, wanted + 1) <= now &&
		       calendar_cycle_start(&made.table, 5000, wanted + 1) < limit)
			wanted++;
		left_out = calendar_position_pass(&position, now, limit);
		KUNIT_ASSERT_EQ(test, position.n, wanted);
		KUNIT_ASSERT_EQ(test, left_out, wanted - n);
		KUNIT_ASSERT_EQ(test, position.start,
				calendar_cycle_start(&made.table, 5000, wanted));
	}
}

static struct kunit_case calendar_position_test_cases[] = {
	KUNIT_CASE(drift_test),
	KUNIT_CASE(boundary_test),
	KUNIT_CASE(far_test),
	KUNIT_CASE(change_test),
	KUNIT_CASE(pass_test),
	{}
};

static struct kunit_suite calendar_position_test_suite = {
	.name = "apic_timer_calendar_position",
	.test_cases = calendar_position_test_cases,
};

kunit_test_suite(calendar_position_test_suite);
