// SPDX-License-Identifier: GPL-2.0
/*
 * "Systems Performance Measurement on PCI Pamette", 1997: from an interrupt to a thread.
 */
#include <string.h>

#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "say.h"

static void buckets_line(struct chart *chart, const char *name, const struct value *buckets)
{
	struct chart_line *line = chart_line(chart, name);
	const struct value *bucket;
	size_t i;

	for (i = 0; i < value_count(buckets); i++) {
		bucket = value_item(buckets, i);
		chart_point(line, value_number(value_item(bucket, 0), NULL, 0),
			    value_number(value_item(bucket, 1), NULL, 0));
	}
}

static const struct value *chain_row(const struct value *found, const char *trigger,
				     const char *route)
{
	const struct value *rows = value_get(found, "rows"), *row;
	size_t i;

	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		if (!strcmp(value_text(row, "trigger"), trigger) &&
		    !strcmp(value_text(row, "route"), route))
			return row;
	}
	return NULL;
}

static void chain_chart(const struct value *idle, const struct value *loaded, const char *key,
			const char *route, const char *title)
{
	static const char * const triggers[] = { "apic", "hrtimer" };
	struct chart chart = { .title = title, .x = "TSC cycles", .y = "interrupts", .log_x = true,
			       .log_y = true, .joined = true };
	const struct value *row;
	unsigned int i;

	for (i = 0; i < COUNT(triggers); i++) {
		row = chain_row(idle, triggers[i], route);
		if (row)
			buckets_line(&chart, format_text("%s, idle", triggers[i]),
				     value_get(row, key));
		row = chain_row(loaded, triggers[i], route);
		if (row)
			buckets_line(&chart, format_text("%s, loaded", triggers[i]),
				     value_get(row, key));
	}
	html_chart(&chart);
}

static void chain_table(const struct value *found, const char *caption)
{
	const struct value *rows = value_get(found, "rows"), *row;
	size_t i;

	if (!rows)
		return;
	html_table(caption,
		   "trigger| route|shots|handler - expiry|handler|deferred - handler|thread - last|thread - expiry");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		html("<tr>");
		cell_text(value_text(row, "trigger"));
		cell_word(value_text(row, "route"));
		cell_of(row, "shots");
		cell_three(row, "entry");
		cell_three(row, "length");
		cell_three(row, "deferred");
		cell_three(row, "wake");
		cell_three(row, "user");
		html("</tr>\n");
	}
	html_table_end();
}

void draw_chain(const struct report_machine *machine)
{
	const struct value *idle = report_rows(machine, "chain");
	const struct value *loaded = report_rows(machine, "chain-load");

	html_machine(machine);
	if (!idle) {
		html_missing(machine, "chain");
		return;
	}
	html_claim(machine, CLAIM_PATH);
	html("<div class=\"panels\">\n");
	chain_chart(idle, loaded, "entry_buckets", "direct", "Handler - expiry (figure 4)");
	chain_chart(idle, loaded, "user_buckets", "direct", "Thread - expiry, woken by the handler");
	chain_chart(idle, loaded, "user_buckets", "tasklet",
		    "Thread - expiry, woken by a tasklet (figure 5)");
	chain_chart(idle, loaded, "user_buckets", "thread", "Thread - expiry, by a FIFO thread");
	if (chain_row(idle, "apic", "device"))
		chain_chart(idle, loaded, "user_buckets", "device",
			    "Thread - expiry, by /dev/apic_timer");
	html("</div>\n");
	chain_table(idle, "Idle; TSC cycles, p50 / p99 / max");
	chain_table(loaded, "Loaded; TSC cycles, p50 / p99 / max");
}
