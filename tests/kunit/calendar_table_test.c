// SPDX-License-Identifier: GPL-2.0
/*
 * calendar/table.c: which entry of a table is wrong, and why; compared with a slow reference.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "table.h"

#define CPUS		3
#define UNITS		5
#define ENTRIES		8
#define TABLES		60000

static struct calendar_seen seen[APIC_CALENDAR_UNITS];

static bool has_cpu(u32 cpu)
{
	return cpu < CPUS;
}

static bool has_function(const char *name, u32 kind)
{
	return !strcmp(name, kind == APIC_CALENDAR_THREAD ? "thread" : "pulse");
}

static const struct calendar_limits limits = {
	.major_min = 50, .major_max = 1000, .budget_min = 2, .gap_user = 4,
	.gap_function = 1, .share = 90, .has_cpu = has_cpu, .has_function = has_function,
};

/* Limits so tight that random tables exceed the share often enough. */
static const struct calendar_limits tight = {
	.major_min = 50, .major_max = 1000, .budget_min = 2, .gap_user = 4,
	.gap_function = 1, .share = 60, .has_cpu = has_cpu, .has_function = has_function,
};

static struct apic_calendar_unit user(const char *name, u32 cpu)
{
	struct apic_calendar_unit unit = { .cpu = cpu };

	strscpy(unit.name, name, sizeof(unit.name));
	return unit;
}

static struct apic_calendar_unit function(const char *name, u32 cpu)
{
	struct apic_calendar_unit unit = user(name, cpu);

	unit.kind = APIC_CALENDAR_FUNCTION;
	strscpy(unit.function, "pulse", sizeof(unit.function));
	return unit;
}

static void expect(struct kunit *test, struct calendar_verdict found, u32 reason, u32 bad,
		   u32 other)
{
	KUNIT_EXPECT_EQ(test, found.reason, reason);
	KUNIT_EXPECT_EQ(test, found.bad, bad);
	KUNIT_EXPECT_EQ(test, found.other, other);
}

/* Each mistake in a unit is found, with its place. */
static void units_test(struct kunit *test)
{
	const struct apic_calendar_unit good[UNITS] = {
		user("a", 0), user("b", 1), function("c", 2), user("d", 0), function("e", 0),
	};
	struct apic_calendar_unit units[UNITS];
	const u32 none = APIC_CALENDAR_NONE;

#define CHECK(CHANGE, REASON, BAD, OTHER) do {						\
	memcpy(units, good, sizeof(units));						\
	CHANGE;										\
	expect(test, calendar_check_units(&limits, units, UNITS), REASON, BAD, OTHER);	\
} while (0)
	CHECK((void)0, APIC_CALENDAR_OK, none, none);
	CHECK(units[1].name[0] = 0, APIC_CALENDAR_BAD_NAME, 1, none);
	CHECK(memset(units[2].name, 'x', sizeof(units[2].name)), APIC_CALENDAR_BAD_NAME, 2, none);
	CHECK(units[4].name[0] = 'b', APIC_CALENDAR_BAD_NAME, 4, 1);
	CHECK(units[3].kind = APIC_CALENDAR_KINDS, APIC_CALENDAR_BAD_KIND, 3, none);
	CHECK(units[3].reserved[1] = 1, APIC_CALENDAR_BAD_KIND, 3, none);
	CHECK(units[0].on_overrun = APIC_CALENDAR_POLICIES, APIC_CALENDAR_BAD_POLICY, 0, none);
	CHECK(units[0].signal = 10, APIC_CALENDAR_BAD_POLICY, 0, none);
	CHECK(units[0].on_overrun = APIC_CALENDAR_SIGNAL, APIC_CALENDAR_BAD_POLICY, 0, none);
	CHECK(units[2].on_overrun = APIC_CALENDAR_KILL, APIC_CALENDAR_BAD_POLICY, 2, none);
	CHECK(units[2].cpu = CPUS, APIC_CALENDAR_BAD_CPU, 2, none);
	CHECK(units[2].function[0] = 0, APIC_CALENDAR_BAD_FUNCTION, 2, none);
	CHECK(units[2].function[0] = 'q', APIC_CALENDAR_BAD_FUNCTION, 2, none);
	CHECK(units[2].kind = APIC_CALENDAR_THREAD, APIC_CALENDAR_BAD_FUNCTION, 2, none);
	CHECK(units[0].function[0] = 'q', APIC_CALENDAR_BAD_FUNCTION, 0, none);
	CHECK(units[0].on_overrun = APIC_CALENDAR_SIGNAL; units[0].signal = 64,
	      APIC_CALENDAR_OK, none, none);
#undef CHECK
	expect(test, calendar_check_units(&limits, good, 0), APIC_CALENDAR_BAD_COUNT, none, none);
	expect(test, calendar_check_units(&limits, good, APIC_CALENDAR_UNITS + 1),
	       APIC_CALENDAR_BAD_COUNT, none, none);
}

/* Each mistake in an entry is found, right at the limit. */
static void entries_test(struct kunit *test)
{
	const struct apic_calendar_unit units[] = {
		user("a", 0), user("b", 0), function("c", 0), user("d", 1),
	};
	const struct apic_calendar_entry good[] = {
		{ 4, 10, 0 }, { 4, 40, 3 }, { 18, 10, 1 }, { 29, 10, 2 }, { 52, 5, 0 },
	};
	struct apic_calendar_entry entries[ARRAY_SIZE(good)];
	const u32 none = APIC_CALENDAR_NONE;

#define CHECK(MAJOR, CHANGE, REASON, BAD, OTHER) do {					\
	memcpy(entries, good, sizeof(entries));						\
	CHANGE;										\
	expect(test, calendar_check_table(&limits, units, ARRAY_SIZE(units), MAJOR,	\
					  entries, ARRAY_SIZE(good), seen),		\
	       REASON, BAD, OTHER);							\
} while (0)
	CHECK(100, (void)0, APIC_CALENDAR_OK, none, none);
	CHECK(49, (void)0, APIC_CALENDAR_BAD_MAJOR, none, none);
	CHECK(1001, (void)0, APIC_CALENDAR_BAD_MAJOR, none, none);
	CHECK(100, entries[2].unit = 4, APIC_CALENDAR_BAD_UNIT, 2, none);
	CHECK(100, entries[2].flags = 1, APIC_CALENDAR_BAD_UNIT, 2, none);
	CHECK(100, entries[1].offset = 3, APIC_CALENDAR_BAD_ORDER, 1, 0);
	CHECK(100, entries[3].budget = 1, APIC_CALENDAR_BAD_BUDGET, 3, none);
	CHECK(100, entries[4].budget = 48, APIC_CALENDAR_LOAD_SHARE, 4, none);
	CHECK(100, entries[4].budget = 49, APIC_CALENDAR_BAD_END, 4, none);
	CHECK(100, entries[4].budget = U64_MAX, APIC_CALENDAR_BAD_END, 4, none);
	CHECK(100, entries[4].offset = U64_MAX, APIC_CALENDAR_BAD_END, 4, none);
	CHECK(100, entries[0].budget = 15, APIC_CALENDAR_OVERLAP, 2, 0);
	CHECK(100, entries[0].budget = 14, APIC_CALENDAR_GAP, 2, 0);
	CHECK(100, entries[2].budget = 11, APIC_CALENDAR_GAP, 3, 2);
	/* On CPU 0, 90 of 100 may be used: 35 are by windows, 13 by gaps. */
	CHECK(100, entries[1].budget = 86, APIC_CALENDAR_OK, none, none);
	CHECK(100, entries[1].budget = 87, APIC_CALENDAR_LOAD_SHARE, 1, none);
	/* Around the end of the cycle. */
	CHECK(57, (void)0, APIC_CALENDAR_OK, none, none);
	CHECK(57, entries[0].offset = 3; entries[0].budget = 11, APIC_CALENDAR_GAP, 0, 4);
#undef CHECK
	expect(test, calendar_check_table(&limits, units, ARRAY_SIZE(units), 100, good, 0,
					  seen),
	       APIC_CALENDAR_BAD_COUNT, none, none);
	expect(test, calendar_check_table(&limits, units, ARRAY_SIZE(units), 100, good,
					  APIC_CALENDAR_ENTRIES + 1, seen),
	       APIC_CALENDAR_BAD_COUNT, none, none);
}

static u64 gap_of(const struct apic_calendar_unit *unit)
{
	return unit->kind == APIC_CALENDAR_FUNCTION ? tight.gap_function : tight.gap_user;
}

/*
 * Check by brute force: each pair of entries, and each tick of a cycle. The previous entry is
 * the one that ends last on the CPU.
 */
static struct calendar_verdict slow(const struct apic_calendar_unit *units, u64 major,
				    const struct apic_calendar_entry *entries, u32 n)
{
	struct calendar_verdict found = { .bad = APIC_CALENDAR_NONE, .other = APIC_CALENDAR_NONE };
	u32 i, j, cpu, last, first;
	u64 tick, busy;

	for (i = 0; i < n; i++) {
		const struct apic_calendar_entry *e = &entries[i];

		found.bad = i;
		found.other = APIC_CALENDAR_NONE;
		found.reason = APIC_CALENDAR_BAD_UNIT;
		if (e->unit >= UNITS || e->flags)
			return found;
		found.reason = APIC_CALENDAR_BAD_ORDER;
		for (j = 0; j < i; j++) {
			found.other = i - 1;
			if (entries[j].offset > e->offset)
				return found;
		}
		found.other = APIC_CALENDAR_NONE;
		found.reason = APIC_CALENDAR_BAD_BUDGET;
		if (e->budget < tight.budget_min)
			return found;
		found.reason = APIC_CALENDAR_BAD_END;
		for (tick = e->offset; tick < e->offset + e->budget; tick++) {
			if (tick >= major)
				return found;
		}
		last = APIC_CALENDAR_NONE;
		for (j = 0; j < i; j++) {
			if (units[entries[j].unit].cpu == units[e->unit].cpu)
				last = j;
		}
		found.other = last;
		for (tick = 0; last < i && tick < entries[last].budget; tick++) {
			found.reason = APIC_CALENDAR_OVERLAP;
			if (entries[last].offset + tick == e->offset)
				return found;
		}
		found.reason = APIC_CALENDAR_GAP;
		if (last < i && entries[last].offset + entries[last].budget +
		    gap_of(&units[e->unit]) > e->offset)
			return found;
		found.other = APIC_CALENDAR_NONE;
		found.reason = APIC_CALENDAR_LOAD_SHARE;
		for (busy = 0, j = 0; j <= i; j++) {
			if (units[entries[j].unit].cpu != units[e->unit].cpu)
				continue;
			for (tick = 0; tick < entries[j].budget + gap_of(&units[entries[j].unit]);
			     tick++)
				busy++;
		}
		if (100 * busy > tight.share * major)
			return found;
	}
	/* CPUs in the order of their first entries. */
	for (i = 0; i < n; i++) {
		cpu = units[entries[i].unit].cpu;
		first = APIC_CALENDAR_NONE;
		for (j = 0; j < n; j++) {
			if (units[entries[j].unit].cpu != cpu)
				continue;
			if (first == APIC_CALENDAR_NONE)
				first = j;
			last = j;
		}
		if (first != i)
			continue;
		if (entries[last].offset + entries[last].budget +
		    gap_of(&units[entries[first].unit]) > major + entries[first].offset) {
			found.reason = APIC_CALENDAR_GAP;
			found.bad = first;
			found.other = last;
			return found;
		}
	}
	found.reason = APIC_CALENDAR_OK;
	found.bad = APIC_CALENDAR_NONE;
	found.other = APIC_CALENDAR_NONE;
	return found;
}

/* Random tables, mostly nearly right, so that each verdict occurs often. */
static void property_test(struct kunit *test)
{
	struct apic_calendar_unit units[UNITS] = {
		user("a", 0), user("b", 0), function("c", 0), user("d", 1), function("e", 2),
	};
	u32 often[APIC_CALENDAR_REASONS] = { };
	struct apic_calendar_entry entries[ENTRIES];
	struct calendar_verdict found, wanted;
	struct rnd_state rnd;
	u32 i, n, run;
	u64 major, at;

	prandom_seed_state(&rnd, 1997);
	for (run = 0; run < TABLES; run++) {
		n = 1 + prandom_u32_state(&rnd) % ENTRIES;
		major = 48 + prandom_u32_state(&rnd) % 100;
		at = prandom_u32_state(&rnd) % 6;
		for (i = 0; i < n; i++) {
			entries[i] = (struct apic_calendar_entry) {
				.offset = at,
				.budget = 2 + prandom_u32_state(&rnd) % 20,
				.unit = prandom_u32_state(&rnd) % UNITS,
			};
			at += prandom_u32_state(&rnd) % 3 ? entries[i].budget : 0;
			at += prandom_u32_state(&rnd) % 8;
			switch (prandom_u32_state(&rnd) % 64) {
			case 0:
				entries[i].budget = prandom_u32_state(&rnd) % 3;
				break;
			case 1:
				entries[i].unit += prandom_u32_state(&rnd) % 3;
				break;
			case 2:
				entries[i].offset -= min_t(u64, entries[i].offset, 9);
				break;
			}
		}
		found = calendar_check_table(&tight, units, UNITS, major, entries, n, seen);
		if (major < tight.major_min) {
			KUNIT_ASSERT_EQ(test, found.reason, APIC_CALENDAR_BAD_MAJOR);
			continue;
		}
		wanted = slow(units, major, entries, n);
		KUNIT_ASSERT_EQ(test, found.reason, wanted.reason);
		KUNIT_ASSERT_EQ(test, found.bad, wanted.bad);
		KUNIT_ASSERT_EQ(test, found.other, wanted.other);
		often[found.reason]++;
	}
	/* Make sure that the comparison was meaningful. */
	KUNIT_EXPECT_GT(test, often[APIC_CALENDAR_OK], 1000U);
	for (i = APIC_CALENDAR_BAD_UNIT; i <= APIC_CALENDAR_LOAD_SHARE; i++)
		KUNIT_EXPECT_GT_MSG(test, often[i], 100U, "reason %u", i);
}

static struct kunit_case calendar_table_test_cases[] = {
	KUNIT_CASE(units_test),
	KUNIT_CASE(entries_test),
	KUNIT_CASE(property_test),
	{}
};

static struct kunit_suite calendar_table_test_suite = {
	.name = "apic_timer_calendar_table",
	.test_cases = calendar_table_test_cases,
};

kunit_test_suite(calendar_table_test_suite);
