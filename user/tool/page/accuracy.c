// SPDX-License-Identifier: GPL-2.0
/*
 * "Temporal accuracy and modern high performance processors", 1997.
 */
#include <stdint.h>
#include <string.h>

#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "say.h"

/* TSC cycles: a whole number where they are modelled */
static void cell_turn(const struct value *row)
{
	double turn = value_number(row, "turn", 0);

	if (turn == (int64_t)turn)
		cell_of(row, "turn");
	else
		cell_real(turn, 2);
}

static void loop_table(const struct value *loop, const char *caption)
{
	const struct value *rows = value_get(loop, "rows"), *row;
	size_t i;

	if (!rows)
		return;
	html_table(caption, "loop|min|p1|p50|p90|p99|max|sd|repeats after|how well|a turn");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_text(value_text(row, "way"));
		cell_of(row, "min");
		cell_of(row, "p1");
		cell_of(row, "p50");
		cell_of(row, "p90");
		cell_of(row, "p99");
		cell_of(row, "max");
		cell_real(value_number(row, "sd", 0), 1);
		if (value_number(row, "period", 0) > 0) {
			cell_of(row, "period");
			cell_real(value_number(row, "repeats", 0), 2);
		} else {
			cell_none();
			cell_none();
		}
		cell_turn(row);
		html("</tr>\n");
	}
	html_table_end();
}

static void shots_chart(const struct value *row, const char *key, size_t most, const char *title,
			const char *y)
{
	struct chart chart = { .title = title, .x = "shot", .y = y };
	const struct value *first = value_get(row, key);
	struct chart_line *line;
	size_t i;

	if (!value_count(first))
		return;
	line = chart_line(&chart, "");
	for (i = 0; i < value_count(first) && i < most; i++)
		chart_point(line, i, value_number(value_item(first, i), NULL, 0));
	html_chart(&chart);
}

static void loop_charts(const struct value *loop)
{
	const struct value *rows = value_get(loop, "rows"), *row;
	size_t i;

	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		shots_chart(row, "first", SIZE_MAX,
			    format_text("Loop %s, caches %s", value_text(row, "way"),
					value_text(loop, "caches")), "TSC - target");
	}
}

void draw_loops(const struct report_machine *machine)
{
	const struct value *loop = report_rows(machine, "loop");

	html_machine(machine);
	if (!loop) {
		html_missing(machine, "accuracy loop");
		return;
	}
	html_claim(machine, CLAIM_PATH);
	if (machine->engine == REPORT_MODELLED)
		html("<p>The error here is that of the loop's own last read of the TSC.</p>\n");
	else
		html("<p>The TSC counts in steps of %s here.</p>\n",
		     commas(value_number(loop, "tsc_step", 1)));
	loop_table(loop, "Caches as they are (figures 3, 5 and 7); cycles");
	loop_table(report_rows(machine, "loop-off"),
		   "Without caches (figure 4; across two lines: figure 6)");
	loop_table(report_rows(machine, "loop-walk"),
		   "After a walk through 512 KiB of other memory (instead of figure 4)");
	loop_table(report_rows(machine, "loop-flush"),
		   "The loop flushed from the caches before each shot");
	html("<div class=\"panels\">\n");
	loop_charts(loop);
	loop_charts(report_rows(machine, "loop-off"));
	html("</div>\n");
}

static const char * const panels[] = {
	"100-nop", "100-cpuid", "15-nop", "15-cpuid", "100-nop-walk", "100-nop-flush",
	"100-nop-exact", "100-cpuid-exact", "15-nop-exact", "15-cpuid-exact", "100-nop-walk-exact",
	"100-nop-counted", "100-nop-off", "100-cpuid-off", "15-nop-off", "15-cpuid-off",
	"100-nop-walk-l1", "100-nop-walk-l3", "15-nop-stored", "15-nop-counted",
};

/* Number of bodies, few enough to see that every eighth one differs */
#define BODIES	160

static const char *panel_title(const struct value *row)
{
	bool counted = !strcmp(value_text(row, "keep"), "none");

	return format_text("%s us, %s, %s, caches %s%s",
			   commas(value_number(row, "period_us", 0)), value_text(row, "mode"),
			   value_text(row, "behind"), value_text(row, "caches"),
			   counted ? ", samples counted" : "");
}

static void timer_row(const struct value *row)
{
	const struct value *error = value_get(row, "error");

	html("<tr>");
	cell_text(panel_title(row));
	cell_of(row, "n");
	cell_of(row, "error_min");
	if (!error)
		error = value_get(row, "errors");
	cell_of(error, "p50");
	cell_of(error, "p99");
	cell_of(error, "max");
	if (value_has(row, "error_sd"))
		cell_real(value_number(row, "error_sd", 0), 1);
	else
		cell_none();
	cell_three(row, value_has(row, "body") ? "body" : "bodies");
	if (value_number(row, "body_period", 0) > 0)
		html("<td>%s (%.2f)</td>", commas(value_number(row, "body_period", 0)),
		     value_number(row, "body_repeats", 0));
	else
		cell_none();
	html("</tr>\n");
}

/* Return: true if an error exceeds the period, for a TSC that counts nanoseconds. */
static bool overrun(const struct report_machine *machine)
{
	const struct value *row;
	unsigned int i;

	for (i = 0; i < COUNT(panels); i++) {
		row = report_rows(machine, panels[i]);
		if (value_number(value_get(row, "error"), "p50", 0) >
		    1000 * value_number(row, "period_us", 0))
			return machine->engine == REPORT_MODELLED;
	}
	return false;
}

/* The paper's artefact */
static void steps(const struct value *row)
{
	const struct value *found = value_get(row, "steps"), *step;
	size_t i;

	if (!value_count(found))
		return;
	html_table("Storing samples: cycles by which the body is longer where a sample begins a "
		   "line, and, of those, where it begins a page", "each|bytes|longer by");
	for (i = 0; i < value_count(found); i++) {
		step = value_item(found, i);
		html("<tr>");
		cell_of(step, "samples");
		cell_of(step, "bytes");
		cell_of(step, "cycles");
		html("</tr>\n");
	}
	html_table_end();
	html("<p>Samples that begin a line, but are not drawn below, because something else raised "
	     "them above %s cycles: ", commas(value_number(row, "lines_most", 0)));
	html("%s.</p>\n", commas(value_number(row, "lines_left_out", 0)));
}

static void lines_chart(const struct value *row)
{
	struct chart chart = { .title = "Body of the handler, samples that begin a line",
			       .x = "sample", .y = "cycles" };
	const struct value *lines = value_get(row, "lines"), *point;
	struct chart_line *line;
	size_t i;

	if (!value_count(lines))
		return;
	line = chart_line(&chart, "");
	for (i = 0; i < value_count(lines); i++) {
		point = value_item(lines, i);
		chart_point(line, value_number(value_item(point, 0), NULL, 0),
			    value_number(value_item(point, 1), NULL, 0));
	}
	html_chart(&chart);
}

void draw_timers(const struct report_machine *machine)
{
	const struct value *row;
	unsigned int i;

	html_machine(machine);
	if (!report_rows(machine, panels[0])) {
		html_missing(machine, "accuracy periodic");
		return;
	}
	html_claim(machine, CLAIM_PATH);
	html_table("A periodic timer: error of its handler, and its body (p50 / p99 / max); cycles",
		   "timer|n|min|p50|p99|max|sd|body|it repeats after");
	for (i = 0; i < COUNT(panels); i++) {
		row = report_rows(machine, panels[i]);
		if (row)
			timer_row(row);
	}
	html_table_end();
	if (overrun(machine))
		html("<p>Some errors exceed the period: a CPU as slow as that could not keep up "
		     "with the timer. The guest that was modelled does, because it is not slowed "
		     "down.</p>\n");
	if (machine->engine == REPORT_MODELLED)
		html("<p>The lead of mode exact is the guest's, estimated without what the model "
		     "adds. A CPU as slow as that would learn to fire earlier.</p>\n");
	steps(report_rows(machine, "15-nop-stored"));
	html("<div class=\"panels\">\n");
	for (i = 0; i < COUNT(panels); i++) {
		row = report_rows(machine, panels[i]);
		shots_chart(row, "first", SIZE_MAX, row ? panel_title(row) : "",
			    "handler - expiry, cycles");
	}
	shots_chart(report_rows(machine, "15-nop-stored"), "first_bodies", BODIES,
		    "Body of the handler, samples stored", "cycles");
	shots_chart(report_rows(machine, "15-nop-counted"), "first_bodies", BODIES,
		    "Body of the handler, samples only counted", "cycles");
	lines_chart(report_rows(machine, "15-nop-stored"));
	html("</div>\n");
}
