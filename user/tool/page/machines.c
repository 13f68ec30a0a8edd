// SPDX-License-Identifier: GPL-2.0
/* The machines of a report, and doctor's findings for them. */
#include <string.h>

#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "say.h"

static void about_model(const struct report_machine *machine)
{
	const struct value *caches = value_get(report_rows(machine, "model"), "caches"), *row;
	size_t i;

	html("<p>Not a machine, but a model of caches that the lab has computed with the code that "
	     "ran in virtual time. A hit in a first-level cache takes no longer than the "
	     "instruction; the CPU waits for everything else, including stores. The model has no "
	     "prefetching, no store buffer and no reordering. The TLB is for data; a page walk "
	     "takes its own cycles, and those of an access to the page's entry.</p>\n");
	html_table("The model; cycles are those that an access adds", "cache|KiB|ways|line|cycles");
	for (i = 0; i < value_count(caches); i++) {
		row = value_item(caches, i);
		if (!strcmp(value_text(row, "of"), "memory"))
			continue;
		html("<tr>");
		cell_text(value_text(row, "of"));
		cell_of(row, "kib");
		cell_of(row, "ways");
		cell_of(row, "line");
		cell_of(row, "cycles");
		html("</tr>\n");
	}
	html_table_end();
	row = value_find(caches, "of", "memory");
	html("<p>Memory takes %s cycles in a row of %s KiB that is open, one in each of %s banks, and ",
	     commas(value_number(row, "open", 0)), commas(value_number(row, "row_kib", 0)),
	     commas(value_number(row, "banks", 0)));
	html("%s in another; every ", commas(value_number(row, "closed", 0)));
	html("%s cycles it is refreshed, and does not answer for ",
	     commas(value_number(row, "refresh_each", 0)));
	html("%s.</p>\n", commas(value_number(row, "refresh", 0)));
}

void draw_machine(const struct report_machine *machine)
{
	static const char * const engines[REPORT_ENGINES] = {
		[REPORT_HARDWARE] = "hardware",
		[REPORT_VIRTUAL] = "virtual machine",
		[REPORT_EMULATED] = "virtual time",
	};
	const struct value *doctor = report_rows(machine, "doctor");
	const struct value *findings = value_get(doctor, "findings"), *finding;
	size_t i;

	html_machine(machine);
	if (machine->engine == REPORT_MODELLED) {
		about_model(machine);
		return;
	}
	if (machine->engine == REPORT_UNKNOWN) {
		html("<p>There are no rows of <code>apic-timer doctor</code>.</p>\n");
		return;
	}
	html("<p>%s: ", engines[machine->engine]);
	html_text(value_text(doctor, "cpu"));
	html(", TSC %s kHz</p>\n", commas(value_number(doctor, "tsc_khz", 0)));
	if (!findings)
		return;
	html_table("apic-timer doctor", "check| finding| cost, cycles");
	for (i = 0; i < value_count(findings); i++) {
		finding = value_item(findings, i);
		/* Facts that could not be determined do not interest the page's reader. */
		if (!strcmp(value_text(finding, "level"), "ok") ||
		    !strcmp(value_text(finding, "level"), "unknown"))
			continue;
		html("<tr>");
		cell_text(format_text("%s %s", value_text(finding, "level"),
				      value_text(finding, "id")));
		cell_long(value_text(finding, "finding"));
		if (value_number(finding, "cost_cycles", -1) >= 0)
			cell_of(finding, "cost_cycles");
		else
			cell_none();
		html("</tr>\n");
	}
	html_table_end();
}
