/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Check whether a table can be run. This also compiles in user space, where apic-calendar
 * checks files by it, so it uses only types of the uapi.
 */
#ifndef _APIC_CALENDAR_TABLE_H
#define _APIC_CALENDAR_TABLE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <uapi/linux/apic_calendar.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/apic_calendar.h>
#endif

/* Default limits, in ns and in percent. */
#define CALENDAR_MAJOR_MIN	100000ULL
#define CALENDAR_MAJOR_MAX	86400000000000ULL	/* a day */
#define CALENDAR_BUDGET_MIN	5000
#define CALENDAR_GAP_USER	5000
#define CALENDAR_GAP_FUNCTION	2000
#define CALENDAR_SHARE		90

/**
 * struct calendar_limits - limits for a table
 * @major_min:	shortest major cycle. Lengths are in the table's unit of time
 * @major_max:	longest major cycle
 * @budget_min:	shortest budget
 * @gap_user:	shortest gap before a window of a thread
 * @gap_function: shortest gap before a window of a function
 * @share:	percent of a CPU that windows and their gaps may take
 * @has_cpu:	checks whether a CPU can be used
 * @has_function: checks whether a function is registered; NULL: accept any
 */
struct calendar_limits {
	__u64 major_min;
	__u64 major_max;
	__u64 budget_min;
	__u64 gap_user;
	__u64 gap_function;
	__u32 share;
	bool (*has_cpu)(__u32 cpu);
	bool (*has_function)(const char *name, __u32 kind);
};

/**
 * struct calendar_verdict - result of a check
 * @reason:	APIC_CALENDAR_OK, or why the table is rejected
 * @bad:	number of the wrong entry or unit, APIC_CALENDAR_NONE: the table as a whole
 * @other:	number of the entry or unit it collides with, APIC_CALENDAR_NONE: none
 */
struct calendar_verdict {
	__u32 reason;
	__u32 bad;
	__u32 other;
};

/**
 * struct calendar_seen - the entries of a CPU checked so far; private to the check
 * @cpu:	the CPU
 * @first:	its first entry
 * @last:	its last entry so far
 * @end:	end of its last entry
 * @busy:	sum of its windows and the gaps that they need
 */
struct calendar_seen {
	__u32 cpu;
	__u32 first;
	__u32 last;
	__u64 end;
	__u64 busy;
};

struct calendar_verdict calendar_check_units(const struct calendar_limits *limits,
					     const struct apic_calendar_unit *units,
					     __u32 n_units);
struct calendar_verdict calendar_check_table(const struct calendar_limits *limits,
					     const struct apic_calendar_unit *units,
					     __u32 n_units, __u64 major,
					     const struct apic_calendar_entry *entries,
					     __u32 n_entries, struct calendar_seen *seen);

#endif /* _APIC_CALENDAR_TABLE_H */
