// SPDX-License-Identifier: GPL-2.0
/* Today's timers, from the benchmark. */
#include <string.h>

#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "say.h"

static void bench_made(const struct value *made)
{
	size_t i;

	html("<p>Made by");
	for (i = 0; i < value_count(made); i++) {
		const struct value *one = value_item(made, i);

		html(i ? ", " : " ");
		html_text(one->key ? one->key : "");
		html(" ");
		html_text(value_text(one, NULL));
	}
	html(".</p>\n");
}

void draw_bench(const struct value *found)
{
	const struct value *rows = value_get(found, "rows"), *row;
	size_t i;

	bench_made(value_get(found, "made"));
	html_table("Error of a timer's handler under loads, TSC cycles",
		   "timer| mode| source| load|n|min|p50|p99|p99.9|max");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		if (strcmp(value_text(row, "bench"), "error") ||
		    strcmp(value_text(row, "unit"), "cycles"))
			continue;
		html("<tr>");
		cell_text(value_text(row, "timer"));
		cell_word(value_text(row, "mode"));
		cell_word(value_text(row, "source"));
		cell_word(value_text(row, "load"));
		cell_of(row, "n");
		cell_of(row, "min");
		cell_of(row, "p50");
		cell_of(row, "p99");
		cell_of(row, "p999");
		cell_of(row, "max");
		html("</tr>\n");
	}
	html_table_end();
}
