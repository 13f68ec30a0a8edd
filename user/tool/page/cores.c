// SPDX-License-Identifier: GPL-2.0
/*
 * "Testing Reveals x86 Core Differences", 1998.
 */
#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "say.h"

void draw_cycles(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "cycles");
	const struct value *rows = value_get(found, "rows"), *row, *then;
	size_t i, j;

	html_machine(machine);
	html_claim(machine, CLAIM_CPU);
	if (!rows)
		return;
	html_table(format_text("Core cycles of a turn of each loop, with DEC and JNZ; %s runs",
			       commas(value_number(found, "runs", 0))),
		   "loop|cycles|IPC|lowest|highest|spread, %|1998: Pentium II|P55C|K6");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_text(value_text(row, "loop"));
		cell_real(value_number(row, "cycles", 0), 3);
		cell_real(value_number(row, "ipc", 0), 2);
		cell_real(value_number(row, "lowest", 0), 3);
		cell_real(value_number(row, "highest", 0), 3);
		cell_real(value_number(row, "spread_percent", 0), 2);
		then = value_get(row, "cycles_1998");
		for (j = 0; j < 3; j++)
			cell_text(value_text(value_item(then, j), NULL));
		html("</tr>\n");
	}
	html_table_end();
}

void draw_searches(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "cycles");
	const struct value *rows = value_get(found, "searches"), *row;
	size_t i;

	html_machine(machine);
	html_claim(machine, CLAIM_CPU);
	if (!rows)
		return;
	html_table(format_text("Core cycles of a key; %s runs",
			       commas(value_number(found, "runs", 0))),
		   "cipher|cycles|1,000 keys/s|lowest|highest|spread, %");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_text(value_text(row, "cipher"));
		cell_real(value_number(row, "cycles", 0), 1);
		cell_whole(value_number(row, "kkeys_per_s", 0));
		cell_real(value_number(row, "lowest", 0), 1);
		cell_real(value_number(row, "highest", 0), 1);
		cell_real(value_number(row, "spread_percent", 0), 2);
		html("</tr>\n");
	}
	html_table_end();
}

static void memory_table(const struct value *found, const char *key, const char *caption,
			 const char *first, const char *second)
{
	const struct value *rows = value_get(found, key), *row;
	size_t i;

	if (!rows)
		return;
	html_table(caption, format_text("%s%s%s|cycles|spread, %%", first, second ? "|" : "",
					second ? second : ""));
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_of(row, first);
		if (second)
			cell_of(row, second);
		cell_real(value_number(row, "cycles", 0), 2);
		cell_real(value_number(row, "spread_percent", 0), 2);
		html("</tr>\n");
	}
	html_table_end();
}

/* Within a line, and across two: a pointer of 8 bytes in a line of 64 */
#define WITHIN	0
#define ACROSS	60

/* Return: the cycles of a load at an offset in the line; -1 if there is no such row. */
static double load_at(const struct value *rows, double offset)
{
	const struct value *row;
	size_t i;

	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		if (value_number(row, "offset", -1) == offset)
			return value_number(row, "cycles", -1);
	}
	return -1;
}

/* Compare the figures of the paper's table 3 that are known here with ours. */
static void across_table(const struct value *found)
{
	static const struct {
		const char *key, *load;
		int then;
	} rows[] = {
		{ "by_alignment_l1", "L1 hit", 9 },
		{ "by_alignment_l2", "L1 miss, L2 hit", 38 },
	};
	double within, across;
	unsigned int i;

	html_table("Extra cycles of a load across two lines", "load|here|1998: Pentium II");
	for (i = 0; i < COUNT(rows); i++) {
		within = load_at(value_get(found, rows[i].key), WITHIN);
		across = load_at(value_get(found, rows[i].key), ACROSS);
		html("<tr>");
		cell_text(rows[i].load);
		if (within >= 0 && across >= 0)
			cell_real(across - within, 2);
		else
			cell_none();
		cell_whole(rows[i].then);
		html("</tr>\n");
	}
	html_table_end();
}

void draw_memory(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "memory"), *sizes, *row;
	struct chart chart = { .title = "Latency of a load by size", .x = "KiB", .y = "core cycles",
			       .log_x = true, .log_y = true, .joined = true };
	struct chart_line *line;
	size_t i;

	html_machine(machine);
	html_claim(machine, CLAIM_CPU);
	if (!found)
		return;
	sizes = value_get(found, "by_size");
	line = chart_line(&chart, "");
	for (i = 0; i < value_count(sizes); i++) {
		row = value_item(sizes, i);
		chart_point(line, value_number(row, "kib", 1), value_number(row, "cycles", 1));
	}
	html("<div class=\"panels\">\n");
	html_chart(&chart);
	memory_table(found, "by_size", "A ring through memory of a size", "kib", NULL);
	memory_table(found, "by_set", "Nodes that share a set of the L1 cache", "stride", "nodes");
	memory_table(found, "by_alignment_l1", "Offset in the line, L1 hit",
		     "offset", NULL);
	memory_table(found, "by_alignment_l2", "Offset in the line, L2 hit",
		     "offset", NULL);
	across_table(found);
	html("</div>\n");
}
