/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether a table can be run. This compiles in user space, too, where apic-calendar
 * checks files by it: nothing but types of the uapi.
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

/* Limits in ns, by default, and in percent. */
#define CALENDAR_MAJOR_MIN	100000ULL
#define CALENDAR_MAJOR_MAX	86400000000000ULL	/* a day */
#define CALENDAR_BUDGET_MIN	5000
#define CALENDAR_GAP_USER	5000
#define CALENDAR_GAP_FUNCTION	2000
#define CALENDAR_SHARE		90

/**
 * struct calendar_limits - what a table must keep to
 * @major_min:	shortest major cycle. Lengths are in the unit of the table
 * @major_max:	longest one
 * @budget_min:	shortest budget
 * @gap_user:	shortest gap before a window of a thread
 * @gap_function: shortest gap before a window of a function
 * @share:	percent of a CPU that windows and their gaps may take
 * @has_cpu:	tells whether a CPU can be used
 * @has_function: tells whether a function is registered; NULL: any is
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
 * struct calendar_verdict - what is wrong with a table
 * @reason:	APIC_CALENDAR_OK, or why it is refused
 * @bad:	number of the entry or unit, APIC_CALENDAR_NONE: the table as a whole
 * @other:	of what it collides with, APIC_CALENDAR_NONE: nothing
 */
struct calendar_verdict {
	__u32 reason;
	__u32 bad;
	__u32 other;
};

/**
 * struct calendar_seen - what has been seen of a CPU's entries; the check's own
 * @cpu:	the CPU
 * @first:	its first entry
 * @last:	its last one so far
 * @end:	where that ends
 * @busy:	sum of windows and the gaps that they need
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
