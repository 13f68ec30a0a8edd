// SPDX-License-Identifier: GPL-2.0
/*
 * Check whether a table can be run, and if not, find which entry is wrong and why.
 *
 * The units are checked one after the other, then the table as a whole, then its entries. The
 * verdict names the first mistake. One major cycle follows another, so a CPU's first entry
 * comes after its last one.
 */
#ifdef __KERNEL__
#include <linux/string.h>
#endif

#include "table.h"

#define SIGNALS		64

static struct calendar_verdict verdict(__u32 reason, __u32 bad, __u32 other)
{
	return (struct calendar_verdict) { .reason = reason, .bad = bad, .other = other };
}

static const struct calendar_verdict fine = {
	.reason = APIC_CALENDAR_OK, .bad = APIC_CALENDAR_NONE, .other = APIC_CALENDAR_NONE,
};

/* Check that a name is not empty, and is terminated. */
static bool is_name(const char *name)
{
	return name[0] && strnlen(name, APIC_CALENDAR_NAME) < APIC_CALENDAR_NAME;
}

static bool policy_fits(const struct apic_calendar_unit *unit)
{
	if (unit->kind != APIC_CALENDAR_USER)
		return !unit->on_overrun && !unit->signal;
	if (unit->on_overrun >= APIC_CALENDAR_POLICIES)
		return false;
	if (unit->on_overrun == APIC_CALENDAR_SIGNAL)
		return unit->signal >= 1 && unit->signal <= SIGNALS;
	return !unit->signal;
}

static bool function_fits(const struct calendar_limits *limits,
			  const struct apic_calendar_unit *unit)
{
	if (unit->kind == APIC_CALENDAR_USER)
		return !unit->function[0];
	return is_name(unit->function) &&
	       (!limits->has_function || limits->has_function(unit->function, unit->kind));
}

static struct calendar_verdict check_unit(const struct calendar_limits *limits,
					  const struct apic_calendar_unit *units, __u32 n)
{
	const struct apic_calendar_unit *unit = &units[n];
	__u32 i;

	if (!is_name(unit->name))
		return verdict(APIC_CALENDAR_BAD_NAME, n, APIC_CALENDAR_NONE);
	for (i = 0; i < n; i++) {
		if (!strncmp(units[i].name, unit->name, APIC_CALENDAR_NAME))
			return verdict(APIC_CALENDAR_BAD_NAME, n, i);
	}
	if (unit->kind >= APIC_CALENDAR_KINDS || unit->reserved[0] || unit->reserved[1])
		return verdict(APIC_CALENDAR_BAD_KIND, n, APIC_CALENDAR_NONE);
	if (!policy_fits(unit))
		return verdict(APIC_CALENDAR_BAD_POLICY, n, APIC_CALENDAR_NONE);
	if (!limits->has_cpu(unit->cpu))
		return verdict(APIC_CALENDAR_BAD_CPU, n, APIC_CALENDAR_NONE);
	if (!function_fits(limits, unit))
		return verdict(APIC_CALENDAR_BAD_FUNCTION, n, APIC_CALENDAR_NONE);
	return fine;
}

/**
 * calendar_check_units() - check the units of a calendar
 * @limits:	limits for the units
 * @units:	the units
 * @n_units:	their number
 *
 * Context: Any that the functions of @limits may be called in.
 * Return: the verdict.
 */
struct calendar_verdict calendar_check_units(const struct calendar_limits *limits,
					     const struct apic_calendar_unit *units,
					     __u32 n_units)
{
	struct calendar_verdict found;
	__u32 i;

	if (!n_units || n_units > APIC_CALENDAR_UNITS)
		return verdict(APIC_CALENDAR_BAD_COUNT, APIC_CALENDAR_NONE,
			       APIC_CALENDAR_NONE);
	for (i = 0; i < n_units; i++) {
		found = check_unit(limits, units, i);
		if (found.reason)
			return found;
	}
	return fine;
}

static __u64 gap_before(const struct calendar_limits *limits,
			const struct apic_calendar_unit *unit)
{
	return unit->kind == APIC_CALENDAR_FUNCTION ? limits->gap_function :
						      limits->gap_user;
}

static struct calendar_verdict check_entry(const struct calendar_limits *limits,
					   const struct apic_calendar_unit *units,
					   __u32 n_units, __u64 major,
					   const struct apic_calendar_entry *entries,
					   __u32 n, struct calendar_seen *seen, __u32 *n_seen)
{
	const struct apic_calendar_entry *entry = &entries[n];
	const struct apic_calendar_unit *unit;
	struct calendar_seen *cpu;
	__u64 gap;

	if (entry->unit >= n_units || entry->flags)
		return verdict(APIC_CALENDAR_BAD_UNIT, n, APIC_CALENDAR_NONE);
	if (n && entry->offset < entries[n - 1].offset)
		return verdict(APIC_CALENDAR_BAD_ORDER, n, n - 1);
	if (entry->budget < limits->budget_min)
		return verdict(APIC_CALENDAR_BAD_BUDGET, n, APIC_CALENDAR_NONE);
	if (entry->offset >= major || entry->budget > major - entry->offset)
		return verdict(APIC_CALENDAR_BAD_END, n, APIC_CALENDAR_NONE);

	unit = &units[entry->unit];
	gap = gap_before(limits, unit);
	for (cpu = seen; cpu < seen + *n_seen && cpu->cpu != unit->cpu; cpu++)
		;
	if (cpu == seen + *n_seen) {
		++*n_seen;
		*cpu = (struct calendar_seen) { .cpu = unit->cpu, .first = n };
	} else {
		if (entry->offset < cpu->end)
			return verdict(APIC_CALENDAR_OVERLAP, n, cpu->last);
		if (entry->offset - cpu->end < gap)
			return verdict(APIC_CALENDAR_GAP, n, cpu->last);
	}
	cpu->last = n;
	cpu->end = entry->offset + entry->budget;
	cpu->busy += entry->budget + gap;
	/* Exact, and cannot overflow: a major cycle is at most a day. */
	if (cpu->busy * 100 > major * limits->share)
		return verdict(APIC_CALENDAR_LOAD_SHARE, n, APIC_CALENDAR_NONE);
	return fine;
}

/**
 * calendar_check_table() - check a table
 * @limits:	limits for the table
 * @units:	units of the calendar, already checked
 * @n_units:	their number
 * @major:	length of the major cycle
 * @entries:	the entries
 * @n_entries:	their number
 * @seen:	scratch memory, %APIC_CALENDAR_UNITS structures
 *
 * Context: Any.
 * Return: the verdict.
 */
struct calendar_verdict calendar_check_table(const struct calendar_limits *limits,
					     const struct apic_calendar_unit *units,
					     __u32 n_units, __u64 major,
					     const struct apic_calendar_entry *entries,
					     __u32 n_entries, struct calendar_seen *seen)
{
	struct calendar_seen *cpu;
	const struct apic_calendar_entry *first;
	struct calendar_verdict found;
	__u32 i, n_seen = 0;

	if (major < limits->major_min || major > limits->major_max)
		return verdict(APIC_CALENDAR_BAD_MAJOR, APIC_CALENDAR_NONE,
			       APIC_CALENDAR_NONE);
	if (!n_entries || n_entries > APIC_CALENDAR_ENTRIES)
		return verdict(APIC_CALENDAR_BAD_COUNT, APIC_CALENDAR_NONE,
			       APIC_CALENDAR_NONE);
	for (i = 0; i < n_entries; i++) {
		found = check_entry(limits, units, n_units, major, entries, i, seen, &n_seen);
		if (found.reason)
			return found;
	}
	for (cpu = seen; cpu < seen + n_seen; cpu++) {
		first = &entries[cpu->first];
		if (major - cpu->end + first->offset < gap_before(limits, &units[first->unit]))
			return verdict(APIC_CALENDAR_GAP, cpu->first, cpu->last);
	}
	return fine;
}
