// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer top: rates, errors and times of handlers, live. The kernel counts;
 * this program reads some rows each interval.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "files.h"
#include "histogram.h"
#include "json.h"
#include "say.h"
#include "tracing.h"
#include "tsc.h"
#include "words.h"

static int by = HISTOGRAM_BY_HANDLER;
static long interval = 1, turns;
static bool quiet;

static const struct opt options[] = {
	OPT_CHOICE('b', "by", HISTOGRAM_BY, "one row for each CPU, handler or CPU state (handler)",
		   &by),
	OPT_NUMBER('i', "interval", "N", 1, 3600, "seconds between two tables (1)", &interval),
	OPT_NUMBER('n', "count", "N", 0, 1000000, "tables to print; 0: until stopped (0)",
		   &turns),
	OPT_FLAG('q', "quiet", "print one table at the end, for the whole run", &quiet),
	FILES_OPT_ROOT,
	{}
};

/* All counts up to a moment */
struct sample {
	struct histogram errors, times;
	uint64_t tsc;
	double own;		/* seconds of CPU time that this program has used */
};

static double own_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void take(struct sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	histogram_read(&sample->errors, EVENT_RECEIPT, "error");
	if (by != HISTOGRAM_BY_CPU_STATE)
		histogram_read(&sample->times, EVENT_EXIT, "cycles");
	sample->tsc = tsc_read();
	sample->own = own_time();
}

static void drop(struct sample *sample)
{
	histogram_free(&sample->errors);
	histogram_free(&sample->times);
}

/* A row of the table, from the counts between two samples */
struct row {
	const struct group *errors, *times;
	double rate, busy;	/* expiries/s; share of the time that its handlers run, in % */
};

static struct row row_of(const struct sample *between, size_t i, double khz)
{
	double cycles = between->tsc;
	struct row row = { .errors = &between->errors.group[i] };

	row.times = histogram_group(&between->times, row.errors->name);
	row.rate = row.errors->count * khz * 1000 / cycles;
	row.busy = row.times ? row.times->sum * 100 / cycles : 0;
	return row;
}

/* Sum up the rows. The kernel prints its own total after them, when more have been counted. */
static uint64_t expiries(const struct sample *between)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < between->errors.groups; i++)
		sum += between->errors.group[i].count;
	return sum;
}

static void print_row(const struct row *row)
{
	printf("%-40.40s %10.0f", row->errors->name, row->rate);
	printf(" %9s %9s %9s %7s", commas(histogram_quantile(row->errors, 0.5)),
	       commas(histogram_quantile(row->errors, 0.99)),
	       commas(histogram_quantile(row->errors, 1)),
	       commas(histogram_negative(row->errors)));
	if (row->times)
		printf(" %9s %9s %6.2f", commas(histogram_quantile(row->times, 0.5)),
		       commas(histogram_quantile(row->times, 0.99)), row->busy);
	putchar('\n');
}

static void print_table(const struct sample *between, double khz)
{
	double seconds = between->tsc / khz / 1000;
	struct row row;
	size_t i;

	if (isatty(STDOUT_FILENO) && !quiet)
		printf("\033[H\033[J");
	printf("%-40s %10s %29s %7s %s\n", "", "", "error <=", "", by == HISTOGRAM_BY_CPU_STATE ?
	       "" : "      time <=        % of");
	printf("%-40s %10s %9s %9s %9s %7s %s\n", by == HISTOGRAM_BY_CPU ? "CPU" :
	       by == HISTOGRAM_BY_HANDLER ? "handler" : "CPU was", "expiries/s", "p50", "p99",
	       "max", "early", by == HISTOGRAM_BY_CPU_STATE ? "" : "      p50       p99  a CPU");
	for (i = 0; i < between->errors.groups; i++) {
		if (!between->errors.group[i].count)
			continue;
		row = row_of(between, i, khz);
		print_row(&row);
	}
	printf("%s expiries in %.1f s, in TSC cycles; this program used %.2f %% of a CPU\n",
	       commas(expiries(between)), seconds, between->own * 100 / seconds);
	if (between->errors.dropped + between->times.dropped)
		printf("%s entries are missing: the kernel ran out of rows\n",
		       commas(between->errors.dropped + between->times.dropped));
	putchar('\n');
	fflush(stdout);
}

static void print_json(const struct sample *between, double khz)
{
	double seconds = between->tsc / khz / 1000;
	struct row row;
	size_t i;

	json_object(NULL);
	json_real("seconds", seconds, 3);
	json_number("expiries", expiries(between));
	json_number("dropped", between->errors.dropped + between->times.dropped);
	json_real("own_cpu_percent", between->own * 100 / seconds, 3);
	json_array("rows");
	for (i = 0; i < between->errors.groups; i++) {
		row = row_of(between, i, khz);
		json_object(NULL);
		json_text("name", row.errors->name);
		json_number("count", row.errors->count);
		json_real("rate", row.rate, 1);
		json_number("error_p50", histogram_quantile(row.errors, 0.5));
		json_number("error_p99", histogram_quantile(row.errors, 0.99));
		json_number("error_max", histogram_quantile(row.errors, 1));
		json_number("early", histogram_negative(row.errors));
		if (row.times) {
			json_number("time_p50", histogram_quantile(row.times, 0.5));
			json_number("time_p99", histogram_quantile(row.times, 0.99));
			json_real("busy_percent", row.busy, 3);
		}
		json_end();
	}
	json_end();
	json_end();
}

static void print(const struct sample *since, const struct sample *until, double khz)
{
	struct sample between = *until;

	histogram_copy(&between.errors, &until->errors);
	histogram_copy(&between.times, &until->times);
	histogram_subtract(&between.errors, &since->errors);
	histogram_subtract(&between.times, &since->times);
	between.tsc -= since->tsc;
	between.own -= since->own;
	if (opt_json)
		print_json(&between, khz);
	else
		print_table(&between, khz);
	drop(&between);
}

static int run(int operands, char **operand)
{
	struct sample before, now;
	uint64_t dropped;
	double khz;
	long turn;

	(void)operands;
	(void)operand;
	tracing_begin();
	khz = tsc_khz_measure();
	histogram_start(EVENT_RECEIPT, "error", by, 0, true);
	if (by != HISTOGRAM_BY_CPU_STATE)
		histogram_start(EVENT_EXIT, "cycles", by, 0, false);
	/* Creating a histogram takes a while, in which others already count. */
	take(&before);
	for (turn = 1; !tracing_stopped && !ferror(stdout) && (!turns || turn <= turns); turn++) {
		tracing_sleep(interval);
		if (quiet)
			continue;
		take(&now);
		print(&before, &now, khz);
		drop(&before);
		before = now;
	}
	if (quiet) {
		take(&now);
		print(&before, &now, khz);
		before = now;
	}
	tracing_end();
	dropped = before.errors.dropped + before.times.dropped;
	drop(&before);
	return dropped ? 1 : 0;
}

const struct command top_command = {
	.name = "top",
	.summary = "Show rates, errors and run times of handlers every second",
	.about = "The kernel counts in a tracefs instance, which is removed at exit, even by a signal.\n"
		 "No expiry is lost. A quantile is the upper end of its bucket.",
	.options = options,
	.run = run,
};
