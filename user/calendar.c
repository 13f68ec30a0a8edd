// SPDX-License-Identifier: GPL-2.0
/*
 * apic-calendar check FILE [CPUS] | show FILE [CPUS] | run FILE [SECONDS] [--table NAME].
 *
 * The check is the kernel module's own code, compiled here. It does not know which
 * functions are registered and which CPUs are online where the calendar will run: it
 * assumes CPUS CPUs, 256 by default. "run" leaves the check to the module.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calendar.h"

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

int calendar_refused(const struct calendar_file *from, const char *name, uint32_t table,
		     struct calendar_verdict verdict)
{
	uint32_t line = calendar_file_line(from, table, verdict.reason, verdict.bad);

	return wrong(name, line, calendar_reasons[verdict.reason],
		     verdict.other == APIC_CALENDAR_NONE ? 0 :
		     calendar_file_line(from, table, verdict.reason, verdict.other));
}

static int check(const char *name)
{
	static struct calendar_seen seen[APIC_CALENDAR_UNITS];
	struct calendar_verdict verdict;
	uint32_t i;

	verdict = calendar_check_units(&limits, file.units, file.n_units);
	if (verdict.reason)
		return calendar_refused(&file, name, 0, verdict);
	for (i = 0; i < file.n_tables; i++) {
		verdict = calendar_check_table(&limits, file.units, file.n_units,
					       file.tables[i].major,
					       file.entries + file.tables[i].first,
					       file.tables[i].n, seen);
		if (verdict.reason)
			return calendar_refused(&file, name, i, verdict);
	}
	return 0;
}

/* Print a CPU's part of a table: its windows, and the time left for other work. */
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
		printf("    %12.3f us  left, %.1f %%\n", (double)(table->major - busy) / 1000,
		       100 - 100.0 * (double)busy / (double)table->major);
}

static void show(void)
{
	const struct calendar_file_table *table;
	uint32_t cpu, i, most = 0;

	for (i = 0; i < file.n_units; i++)
		most = file.units[i].cpu > most ? file.units[i].cpu : most;
	for (table = file.tables; table < file.tables + file.n_tables; table++) {
		printf("table %s: %.3f us", table->name, (double)table->major / 1000);
		if (table->max_overruns)
			printf(", %s after %u overruns", file.tables[table->degraded].name,
			       table->max_overruns);
		putchar('\n');
		for (cpu = 0; cpu <= most; cpu++)
			show_cpu(table, cpu);
	}
}

static int help(FILE *to)
{
	fputs("usage: apic-calendar check FILE [CPUS]\n"
	      "       apic-calendar show FILE [CPUS]\n"
	      "       apic-calendar run FILE [SECONDS] [--table NAME]\n\n"
	      "check: check whether a machine with CPUS CPUs (default 256) can run the calendar\n"
	      "show:  also print what each CPU does, and the time that is left\n"
	      "run:   run the table NAME, or the first one, until SIGINT or SIGTERM, or for SECONDS,\n"
	      "       and print each unit's results every second; threads end their windows at\n"
	      "       once. It stops at the end of a major cycle, or after another second.\n"
	      "       Needs root and the module apic_calendar\n", to);
	return to == stderr ? 2 : 0;
}

static int parse(const char *name)
{
	FILE *from = fopen(name, "r");
	size_t size = 0;
	bool bad = true;

	if (from) {
		size = fread(text, 1, sizeof(text), from);
		bad = ferror(from);
	}
	if (bad)
		fprintf(stderr, "apic-calendar: %s: %s\n", name, strerror(errno));
	if (from)
		fclose(from);
	if (bad)
		return 2;
	if (size == sizeof(text))
		return wrong(name, 1, "the file is too long", 0);
	if (calendar_parse(&file, text, size))
		return wrong(name, file.line, file.error, 0);
	return 0;
}

static int command(int argc, char **argv)
{
	const char *table = NULL;
	unsigned long number = 0;
	char *end = "";
	int ret;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return help(stdout);
	if (argc > 4 && !strcmp(argv[1], "run") && !strcmp(argv[argc - 2], "--table")) {
		table = argv[argc - 1];
		argc -= 2;
	}
	if (argc == 4 && isdigit((unsigned char)*argv[3]))	/* strtoul() also takes "-1" */
		number = strtoul(argv[3], &end, 10);
	if (argc < 3 || argc > 4 || *end || (argc == 4 && !number))
		return help(stderr);
	ret = parse(argv[2]);
	if (ret)
		return ret;
	if (!strcmp(argv[1], "run"))
		return calendar_run(&file, argv[2], table, number);
	if (number)
		cpus = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
	ret = check(argv[2]);
	if (!strcmp(argv[1], "check"))
		return ret;
	if (strcmp(argv[1], "show"))
		return help(stderr);
	if (!ret)
		show();
	return ret;
}

int main(int argc, char **argv)
{
	int ret = command(argc, argv);

	if (!fflush(stdout) && !ferror(stdout))
		return ret;
	fputs("apic-calendar: can't write to standard output\n", stderr);
	return 2;
}
