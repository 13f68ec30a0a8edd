/* SPDX-License-Identifier: GPL-2.0 */
/* Code shared by the commands of apic-calendar. */
#ifndef APIC_CALENDAR_COMMANDS_H
#define APIC_CALENDAR_COMMANDS_H

#include "apic_calendar_file.h"
#include "table.h"

/* Print which line is wrong, and why; return 1. */
int calendar_refused(const struct calendar_file *file, const char *name, uint32_t table,
		     struct calendar_verdict verdict);

/* calendar_run.c. @table: name, NULL: the first one. Return an exit status. */
int calendar_run(const struct calendar_file *file, const char *name, const char *table,
		 unsigned long seconds);

#endif /* APIC_CALENDAR_COMMANDS_H */
