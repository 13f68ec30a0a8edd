// SPDX-License-Identifier: GPL-2.0
/* Functions that write the sections of a page. */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "chart.h"
#include "page/html.h"
#include "say.h"

static FILE *page;

void html_begin(FILE *file)
{
	page = file;
}

void html(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(page, format, arguments);
	va_end(arguments);
}

void html_text(const char *words)
{
	chart_text(page, words);
}

void html_chart(struct chart *chart)
{
	chart_draw(page, chart);
}

void html_paper(const char *text)
{
	html("<p class=\"paper\"><b>The paper:</b> %s</p>\n", text);
}

void html_claim(const struct report_machine *machine, enum claim from)
{
	static const char * const texts[][REPORT_ENGINES] = {
		[CLAIM_PATH] = {
			[REPORT_HARDWARE] = "Measured on hardware.",
			[REPORT_VIRTUAL] = "Measured in a virtual machine, including what its host "
					   "does. Medians are valid for such machines, maxima are "
					   "not.",
			[REPORT_EMULATED] = "In virtual time, where an instruction takes one cycle "
					    "and one nanosecond: lengths of paths, and their "
					    "order. Every run is the same. Shows neither caches "
					    "nor times of hardware.",
			[REPORT_MODELLED] = "Modelled: the length of the path in virtual time, and "
					    "what a model of caches and memory adds to it. Shows "
					    "what caches do to it, and after how many shots. Every "
					    "run is the same. These are not the figures of any "
					    "CPU.",
			[REPORT_UNKNOWN] = "It is not known what this was measured on: there are "
					   "no rows of doctor. Medians may be valid, maxima are "
					   "not.",
		},
		[CLAIM_CPU] = {
			[REPORT_HARDWARE] = "Measured on hardware.",
			[REPORT_VIRTUAL] = "Measured in a virtual machine, by its CPU's own "
					   "instructions: rows whose runs differ by at most 2 % "
					   "are valid for the CPU, others do not describe this "
					   "machine.",
			[REPORT_EMULATED] = "Not measurable in virtual time, where an instruction "
					    "of any kind takes one cycle.",
			[REPORT_UNKNOWN] = "It is not known what this was measured on: there are "
					   "no rows of doctor. In virtual time nothing of it is "
					   "valid.",
		},
	};
	bool none = from == CLAIM_CPU && machine->engine == REPORT_EMULATED;

	html("<p class=\"claim%s\">%s</p>\n", none ? " no" : "", texts[from][machine->engine]);
}

void html_machine(const struct report_machine *machine)
{
	html("<h3>");
	html_text(machine->name);
	html("</h3>\n");
}

void html_missing(const struct report_machine *machine, const char *command)
{
	if (machine->engine == REPORT_EMULATED || machine->engine == REPORT_MODELLED)
		return;
	html("<p>Not measured here: <code>apic-timer %s</code> needs the module apic_measure and root.</p>\n",
	     command);
}

void html_table(const char *caption, const char *heads)
{
	size_t length;

	html("<div class=\"wide\"><table><caption>%s</caption><tr>", caption);
	for (;;) {
		length = strcspn(heads, "|");
		html("<th%s>%.*s</th>", *heads == ' ' ? " class=\"text\"" : "",
		     (int)length, heads);
		if (!heads[length])
			break;
		heads += length + 1;
	}
	html("</tr>\n");
}

void html_table_end(void)
{
	html("</table></div>\n");
}

void cell_none(void)
{
	html("<td>-</td>");
}

void cell_text(const char *text)
{
	html("<td>");
	html_text(text);
	html("</td>");
}

void cell_word(const char *text)
{
	html("<td class=\"text\">");
	html_text(text);
	html("</td>");
}

void cell_long(const char *text)
{
	html("<td class=\"text long\">");
	html_text(text);
	html("</td>");
}

void cell_whole(double number)
{
	html("<td>%s</td>", commas(number));
}

void cell_real(double number, int digits)
{
	html("<td>%.*f</td>", digits, number);
}

void cell_of(const struct value *row, const char *key)
{
	if (value_has(row, key))
		cell_whole(value_number(row, key, 0));
	else
		cell_none();
}

void cell_three(const struct value *row, const char *key)
{
	const struct value *found = value_get(row, key);

	if (!found) {
		cell_none();
		return;
	}
	html("<td>%s / %s / %s</td>", commas(value_number(found, "p50", 0)),
	     commas(value_number(found, "p99", 0)), commas(value_number(found, "max", 0)));
}
