// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer hist: how late handlers start, or how long they run, as counted by
 * the kernel.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "files.h"
#include "histogram.h"
#include "json.h"
#include "output.h"
#include "say.h"
#include "svg.h"
#include "tracing.h"
#include "utf8.h"
#include "words.h"

enum { OF_ERROR, OF_TIME };

static int by = HISTOGRAM_BY_HANDLER, of = OF_ERROR;
static long seconds = 5, linear;
static const char *svg, *from;

static const struct opt options[] = {
	OPT_CHOICE('b', "by", HISTOGRAM_BY,
		   "one histogram for each CPU, handler or CPU state (handler)", &by),
	OPT_CHOICE('o', "of", "error|time",
		   "what to count: the error, or the run time of handlers (error)", &of),
	OPT_NUMBER('s', "seconds", "N", 1, 86400, "how long to count (5)", &seconds),
	OPT_NUMBER('l', "linear", "CYCLES", 1, 1000000000,
		   "buckets of this width instead of powers of 2", &linear),
	OPT_FILE(0, "svg", "FILE", "also draw the histograms to FILE", &svg),
	OPT_FILE(0, "from", "FILE",
		 "read a saved copy of the kernel's file \"hist\" instead", &from),
	FILES_OPT_ROOT,
	{}
};

static const char *unit(void)
{
	return of == OF_ERROR ? "error in TSC cycles" : "time in TSC cycles";
}

static const char *field(void)
{
	return of == OF_ERROR ? "error" : "cycles";
}

static void print_json(const struct histogram *histogram)
{
	const struct group *group;
	size_t g, i;

	json_object(NULL);
	json_text("of", of == OF_ERROR ? "error" : "time");
	json_number("hits", histogram->hits);
	json_number("dropped", histogram->dropped);
	json_array("groups");
	for (g = 0; g < histogram->groups; g++) {
		group = &histogram->group[g];
		json_object(NULL);
		json_text("name", group->name);
		json_number("count", group->count);
		json_number("early", histogram_negative(group));
		json_number("p50", histogram_quantile(group, 0.5));
		json_number("p99", histogram_quantile(group, 0.99));
		json_number("max", histogram_quantile(group, 1));
		json_array("buckets");
		for (i = 0; i < group->buckets; i++) {
			json_array(NULL);
			json_number(NULL, group->bucket[i].low);
			json_number(NULL, group->bucket[i].high);
			json_number(NULL, group->bucket[i].count);
			json_end();
		}
		json_end();
		json_end();
	}
	json_end();
	json_end();
}

static void print_group(const struct group *group)
{
	static const char stars[] = "****************************************";
	uint64_t most = 1;
	size_t i;
	int width;

	printf("%s: %s, %s; p50 <= %s, p99 <= %s, max <= %s\n", group->name, commas(group->count),
	       unit(), commas(histogram_quantile(group, 0.5)),
	       commas(histogram_quantile(group, 0.99)), commas(histogram_quantile(group, 1)));
	for (i = 0; i < group->buckets; i++)
		if (group->bucket[i].count > most)
			most = group->bucket[i].count;
	printf("%12s    %-12s : %-10s distribution\n", "from", "to", "count");
	for (i = 0; i < group->buckets; i++) {
		width = (sizeof(stars) - 1) * group->bucket[i].count / most;
		printf("%12s -> %-12s : %-10s |%-40.*s|\n", commas(group->bucket[i].low),
		       commas(group->bucket[i].high), commas(group->bucket[i].count), width, stars);
	}
	putchar('\n');
}

static void count(struct histogram *histogram)
{
	const char *event = of == OF_ERROR ? EVENT_RECEIPT : EVENT_EXIT;
	long second;

	tracing_begin();
	histogram_start(event, field(), by, linear, of == OF_ERROR);
	for (second = 0; second < seconds && !tracing_stopped; second++) {
		progress("counting: %ld of %ld s", second, seconds);
		tracing_sleep(1);
	}
	progress_end();
	histogram_read(histogram, event, field());
	tracing_end();
}

static void load(struct histogram *histogram)
{
	char *text = files_read("%s", from);
	const char *line = text;

	if (!text)
		fail("can't read %s: %s", from, strerror(errno));
	utf8_make_printable(text);
	if (!histogram_parse(histogram, text, field(), &line))
		fail("%s: not a row of a histogram of %s: %.*s", from, field(),
		     (int)strcspn(line, "\n"), line);
	free(text);
}

static int run(int operands, char **operand)
{
	struct histogram histogram;
	FILE *drawing = NULL;
	size_t i;

	(void)operands;
	(void)operand;
	if (of == OF_TIME && by == HISTOGRAM_BY_CPU_STATE)
		fail("hist: --of time works with --by cpu or handler, not with --by state");
	/* Find out now whether it can be written, not after a day of counting. */
	if (svg)
		drawing = output_open(svg);
	if (from) {
		/* What was counted, and how, is in the file. */
		opt_refuse(&hist_command, &by, "--from");
		opt_refuse(&hist_command, &linear, "--from");
		opt_refuse(&hist_command, &seconds, "--from");
		load(&histogram);
	} else {
		count(&histogram);
	}
	if (opt_json) {
		print_json(&histogram);
	} else {
		for (i = 0; i < histogram.groups; i++)
			print_group(&histogram.group[i]);
		if (!histogram.groups)
			printf("no handler has run\n");
	}
	if (drawing) {
		svg_write(drawing, &histogram, of == OF_ERROR ? "apic-timer: error of handlers" :
			  "apic-timer: time of handlers", unit());
		output_close();
	}
	if (histogram.dropped) {
		warn("%s expiries are missing: the kernel ran out of rows; use wider buckets",
		     commas(histogram.dropped));
		return 1;
	}
	return 0;
}

const struct command hist_command = {
	.name = "hist",
	.summary = "Print histograms of how late handlers start, or of how long they run",
	.about = "The kernel counts in a tracefs instance, which is removed at exit, even by a signal.\n"
		 "No expiry is lost. A quantile is the upper end of its bucket.",
	.options = options,
	.run = run,
};
