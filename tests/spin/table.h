/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SPIN_TABLE_H
#define _SPIN_TABLE_H

#include <stdio.h>
#include <stdlib.h>

static int table_compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

/* Print the head of a table of errors. */
static inline void table_head(const char *title)
{
	printf("%-46s %7s %7s %7s %9s\n", title, "min", "p50", "p99", "max");
}

/* Sort errors, TSC cycles, and print them as a row. */
static inline void table_row(const char *name, long long *errors, long count)
{
	qsort(errors, count, sizeof(*errors), table_compare);
	printf("%-46s %7lld %7lld %7lld %9lld\n", name, errors[0], errors[count / 2],
	       errors[count - 1 - count / 100], errors[count - 1]);
}

#endif /* _SPIN_TABLE_H */
