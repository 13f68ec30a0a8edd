// SPDX-License-Identifier: GPL-2.0
/*
 * "Systems Performance Measurement on PCI Pamette", 1997: accesses to hardware.
 */
#include <string.h>

#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "say.h"

static void clock_table(const struct value *log)
{
	const struct value *accesses = value_get(log, "clock"), *row;
	size_t i;

	html_table("One reading of the clock (figure 3)", "port| access|value|cycles| by");
	for (i = 0; i < value_count(accesses); i++) {
		row = value_item(accesses, i);
		html("<tr>");
		cell_text(value_text(row, "port"));
		cell_word(value_text(row, "way"));
		html("<td>%02x</td>", (unsigned int)value_number(row, "value", 0));
		cell_of(row, "cycles");
		cell_word(value_text(row, "by"));
		html("</tr>\n");
	}
	html_table_end();
}

static void clock_chart(const struct value *log)
{
	static const char * const ports[] = { "0x70", "0x71" };
	struct chart chart = { .title = "One reading of the clock", .x = "cycles", .y = "value" };
	const struct value *accesses = value_get(log, "clock"), *row;
	struct chart_line *line;
	unsigned int i;
	size_t j;

	for (i = 0; i < COUNT(ports); i++) {
		line = chart_line(&chart, ports[i]);
		for (j = 0; j < value_count(accesses); j++) {
			row = value_item(accesses, j);
			if (!strcmp(value_text(row, "port"), ports[i]))
				chart_point(line, value_number(row, "cycles", 0),
					    value_number(row, "value", 0));
		}
	}
	html("<div class=\"panels\">\n");
	html_chart(&chart);
	html("</div>\n");
}

/* Write the accesses of a guest as seen from outside */
static void port_log(const struct value *log)
{
	const struct value *rows = value_get(log, "ports"), *row;
	size_t i;

	html("<p class=\"claim\">Seen from outside, by a plug-in of the emulator, in virtual time: "
	     "which code accesses what, in which order. Every run is the same. Durations need "
	     "hardware.</p>\n");
	clock_chart(log);
	clock_table(log);
	html_table(format_text("From boot on: %s accesses",
			       commas(value_number(log, "accesses", 0))),
		   "port|IN|OUT| most of them by");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_text(value_text(row, "port"));
		cell_of(row, "in");
		cell_of(row, "out");
		cell_word(value_text(row, "by"));
		html("</tr>\n");
	}
	html_table_end();
}

void draw_ports(const struct report_machine *machine)
{
	const struct value *rows = value_get(report_rows(machine, "pio"), "rows"), *row;
	const struct value *log = report_rows(machine, "ports");
	size_t i;

	html_machine(machine);
	if (log)
		port_log(log);
	if (!rows) {
		html_missing(machine, "pio");
		if (machine->engine == REPORT_EMULATED && !log)
			html_claim(machine, CLAIM_CPU);
		return;
	}
	html_claim(machine, CLAIM_CPU);
	html_table("Cost of an access, TSC cycles", "access| what|p5|p50|p99|max");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_text(value_text(row, "access"));
		cell_long(value_text(row, "what"));
		cell_of(row, "p5");
		cell_of(row, "cycles");
		cell_of(row, "p99");
		cell_of(row, "max");
		html("</tr>\n");
	}
	html_table_end();
}
