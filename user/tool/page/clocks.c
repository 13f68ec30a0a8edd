// SPDX-License-Identifier: GPL-2.0
/*
 * "TSC resynchronization", 2011.
 */
#include "chart.h"
#include "page/html.h"
#include "page/sections.h"

/* Compute the time of its 100,000,000 calls, s */
static double calls(double cycles, double khz)
{
	return khz > 0 ? cycles * 1e8 / (khz * 1000) : 0;
}

static void clock_costs(const struct value *found)
{
	const struct value *rows = value_get(found, "clocks"), *row;
	double khz = value_number(found, "tsc_khz", 0), cycles;
	size_t i;

	html_table("A read of each clock", "clock|cycles, p50|p99|100,000,000 take, s|step| of");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		cycles = value_number(row, "cycles_p50", 0);
		html("<tr>");
		cell_text(value_text(row, "name"));
		cell_real(cycles, 1);
		cell_real(value_number(row, "cycles_p99", 0), 1);
		cell_real(calls(cycles, khz), 1);
		if (value_number(row, "step", 0) > 0) {
			cell_of(row, "step");
			cell_word(value_text(row, "step_unit"));
		} else {
			cell_none();
			cell_none();
		}
		html("</tr>\n");
	}
	html_table_end();
}

static void skews(const struct value *found)
{
	const struct value *rows = value_get(found, "skew"), *row;
	size_t i;

	if (!value_count(rows))
		return;
	html_table("TSCs of CPUs; cycles",
		   "CPU|against|apart at least|at most|round trip");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_of(row, "cpu");
		cell_of(row, "against");
		cell_of(row, "low");
		cell_of(row, "high");
		cell_of(row, "round_trip");
		html("</tr>\n");
	}
	html_table_end();
}

void draw_clocks(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "clocks");
	const char *source = value_text(found, "clocksource");

	html_machine(machine);
	if (!found)
		return;
	html_claim(machine, CLAIM_PATH);
	if (*source) {
		html("<p>The clocksource is ");
		html_text(source);
		html(".</p>\n");
	}
	clock_costs(found);
	skews(found);
}
