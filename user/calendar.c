// SPDX-License-Identifier: GPL-2.0
/*
 * apic-calendar check FILE [CPUS] | show FILE [CPUS] - calendars, without running them.
 *
 * The check is the kernel module's own, compiled here. It knows neither which functions
 * are registered where the calendar will run, nor which CPUs are online: there are CPUS,
 * 256 by default.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apic_calendar_file.h"
#include "table.h"

#define MAX_TEXT	1000000

static char text[MAX_TEXT];
static struct calendar_file file;
static uint32_t cpus = 256;

static bool has_cpu(__u32 cpu)
{
	return cpu < cpus;
}

static const struct calendar_limits limits = {
	.major_min = CALENDAR_MAJOR_MIN, .major_max = CALENDAR_MAJOR_MAX,
	.budget_min = CALENDAR_BUDGET_MIN, .gap_user = CALENDAR_GAP_USER,
	.gap_function = CALENDAR_GAP_FUNCTION, .share = CALENDAR_SHARE, .has_cpu = has_cpu,
};

static int wrong(const char *name, uint32_t line, const char *what, uint32_t other)
{
	fprintf(stderr, "%s:%u: %s", name, line, what);
	if (other)
		fprintf(stderr, " (line %u)", other);
	fputc('\n', stderr);
	return 1;
}

static int refused(const char *name, uint32_t table, struct calendar_verdict verdict)
{
	uint32_t line = calendar_file_line(&file, table, verdict.reason, verdict.bad);

	return wrong(name, line, calendar_reasons[verdict.reason],
		     verdict.other == APIC_CALENDAR_NONE ? 0 :
		     calendar_file_line(&file, table, verdict.reason, verdict.other));
}

static int check(const char *name)
{
	static struct calendar_seen seen[APIC_CALENDAR_UNITS];
	struct calendar_verdict verdict;
	uint32_t i;

	if (calendar_parse(&file, text, strlen(text)))
		return wrong(name, file.line, file.error, 0);
	verdict = calendar_check_units(&limits, file.units, file.n_units);
	if (verdict.reason)
		return refused(name, 0, verdict);
	for (i = 0; i < file.n_tables; i++) {
		verdict = calendar_check_table(&limits, file.units, file.n_units,
					       file.tables[i].major,
					       file.entries + file.tables[i].first,
					       file.tables[i].n, seen);
		if (verdict.reason)
			return refused(name, i, verdict);
	}
	return 0;
}

/* A CPU's part of a table: its windows, and what is left for others. */
static void show_cpu(const struct calendar_file_table *table, uint32_t cpu)
{
	const struct apic_calendar_entry *entry;
	uint64_t busy = 0;
	uint32_t i;

	for (i = table->first; i < table->first + table->n; i++) {
		entry = &file.entries[i];
		if (file.units[entry->unit].cpu != cpu)
			continue;
		if (!busy)
			printf("  CPU %u\n", cpu);
		busy += entry->budget;
		printf("    %12.3f us  %-20s %12.3f us\n", (double)entry->offset / 1000,
		       file.units[entry->unit].name, (double)entry->budget / 1000);
	}
	if (busy)
		printf("    %12.3f us  are left, %.1f %%\n", (double)(table->major - busy) / 1000,
		       100 - 100.0 * (double)busy / (double)table->major);
}

static void show(void)
{
	const struct calendar_file_table *table;
	uint32_t cpu;

	for (table = file.tables; table < file.tables + file.n_tables; table++) {
		printf("table %s: %.3f us", table->name, (double)table->major / 1000);
		if (table->max_overruns)
			printf(", %s after %u overruns", file.tables[table->degraded].name,
			       table->max_overruns);
		putchar('\n');
		for (cpu = 0; cpu < cpus; cpu++)
			show_cpu(table, cpu);
	}
}

int main(int argc, char **argv)
{
	FILE *from;
	size_t size;
	int ret;

	if (argc < 3 || argc > 4 || (strcmp(argv[1], "check") && strcmp(argv[1], "show"))) {
		fputs("usage: apic-calendar check|show FILE [CPUS]\n", stderr);
		return 2;
	}
	if (argc == 4)
		cpus = (uint32_t)strtoul(argv[3], NULL, 10);
	from = fopen(argv[2], "r");
	if (!from) {
		fprintf(stderr, "apic-calendar: %s: %s\n", argv[2], strerror(errno));
		return 2;
	}
	size = fread(text, 1, sizeof(text) - 1, from);
	fclose(from);
	if (size == sizeof(text) - 1)
		return wrong(argv[2], 1, "the file is too long", 0);
	ret = check(argv[2]);
	if (!ret && !strcmp(argv[1], "show"))
		show();
	return ret;
}
