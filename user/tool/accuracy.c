// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer accuracy: how far from its target a loop over the TSC ends, and
 * how far from its moment a periodic timer's handler starts. The experiments of
 * 1997.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "measure.h"
#include "say.h"
#include "series.h"
#include "tsc.h"

#define LAGS	200
#define FIRST	160	/* as many as the paper draws */
#define DRAWN	2000

enum { MODE_RAW = 1, MODE_MEAN, MODE_EXACT };

static long count, period = 100, walk, cpu = -1, ahead = 1000, bound = 100;
static int way = APIC_MEASURE_WAYS, behind = APIC_MEASURE_BEHIND_NOP, mode = MODE_RAW - 1;
static int keep = APIC_MEASURE_KEEP_ALL;
static bool flush;

static const struct opt options[] = {
	OPT_NUMBER('n', "count", "N", 1, 1000000, "shots per row (loop 20000, periodic 3000)",
		   &count),
	OPT_CHOICE('w', "way", "rdtsc|across|rdtscp|rdmsr|lfence|pause|counted|table|all",
		   "loop to measure (all)", &way),
	OPT_NUMBER('a', "ahead", "CYCLES", 1, 20000,
		   "distance of the loop's first target (1000)", &ahead),
	OPT_NUMBER('p', "period", "US", 5, 1000000, "period of the timer (100)", &period),
	OPT_CHOICE('m', "mode", "raw|mean|exact", "mode of the timer (raw)", &mode),
	OPT_CHOICE('b', "behind", "idle|nop|cpuid",
		   "activity that the timer interrupts (nop)", &behind),
	OPT_CHOICE('k', "keep", "all|outliers|none", "samples to store (all)", &keep),
	OPT_NUMBER(0, "bound", "CYCLES", 0, 1000000000,
		   "error or body above which a sample is an outlier (100)", &bound),
	OPT_NUMBER(0, "walk", "KIB", 1, 65536, "read this much other memory before each shot",
		   &walk),
	OPT_FLAG(0, "flush", "flush the instrument's code and data before each shot", &flush),
	OPT_NUMBER('c', "cpu", "N", 0, 1023, "CPU to measure on (the first)", &cpu),
	{}
};

static const char * const ways[APIC_MEASURE_WAYS] = {
	[APIC_MEASURE_RDTSC] = "rdtsc",
	[APIC_MEASURE_ACROSS] = "across",
	[APIC_MEASURE_RDTSCP] = "rdtscp",
	[APIC_MEASURE_RDMSR] = "rdmsr",
	[APIC_MEASURE_LFENCE] = "lfence",
	[APIC_MEASURE_PAUSE] = "pause",
	[APIC_MEASURE_COUNTED] = "counted",
	[APIC_MEASURE_TABLE] = "table",
};

static const char * const modes[] = { "-", "raw", "mean", "exact" };
static const char * const behinds[] = { "idle", "nop", "cpuid" };
static const char * const keeps[] = { "all", "outliers", "none" };

static unsigned int caches(void)
{
	return walk ? APIC_MEASURE_WALK : flush ? APIC_MEASURE_FLUSH : APIC_MEASURE_WARM;
}

static const char *caches_text(void)
{
	return walk ? format_text("after a walk through %ld KiB", walk) :
	       flush ? "flushed" : "as they are";
}

/* Print the first values in order of time, for a figure */
static void json_first(const char *name, const struct series *series, size_t most)
{
	size_t i;

	json_array(name);
	for (i = 0; i < series->count && i < most; i++)
		json_number(NULL, series->value[i]);
	json_end();
}

/* Find the period of values, without those that were much disturbed */
static unsigned int repeats(struct series *series, double *how)
{
	return series_period(series, LAGS, series_quantile(series, 99), how);
}

static void print_loop(int which, struct series *errors, unsigned int turn)
{
	int64_t most = series_quantile(errors, 99);
	double how;
	unsigned int lag = repeats(errors, &how);

	if (opt_json) {
		json_object(NULL);
		json_text("way", ways[which]);
		json_number("n", errors->count);
		json_number("min", series_quantile(errors, 0));
		json_number("p1", series_quantile(errors, 1));
		json_number("p50", series_quantile(errors, 50));
		json_number("p90", series_quantile(errors, 90));
		json_number("p99", most);
		json_number("max", series_quantile(errors, 100));
		json_real("sd", series_deviation(errors, most), 1);
		json_number("period", lag);
		json_real("repeats", how, 2);
		json_real("turn", turn / 1024.0, 3);
		json_first("first", errors, FIRST);
		json_end();
		return;
	}
	printf("%-8s %8s %8s %8s %8s %8s %10s %8.1f", ways[which],
	       commas(series_quantile(errors, 0)), commas(series_quantile(errors, 1)),
	       commas(series_quantile(errors, 50)), commas(series_quantile(errors, 90)),
	       commas(most), commas(series_quantile(errors, 100)),
	       series_deviation(errors, most));
	if (lag)
		printf(" %8u (%.2f)", lag, how);
	putchar('\n');
}

/* Return: false if this machine has no such loop. */
static bool shots_of(int which, unsigned int step, struct series *errors, unsigned int *turn)
{
	int32_t *found = calloc(count, sizeof(*found));
	struct apic_measure_loop loop = {
		.way = which,
		.cache = caches(),
		.walk_kib = walk,
		.count = count,
		.least = ahead,
		.spread = count < 20000 ? count : 20000,
		.errors = (uintptr_t)found,
		.step = step,
	};
	bool there;
	long i;

	if (!found)
		fail("out of memory");
	/* Estimate for a TSC of 1 GHz, and caches with 10 GB/s. */
	progress_before(count * ((ahead + loop.spread) / 1e9 + walk / 1e7), "loop %s",
			ways[which]);
	there = !measure_call(APIC_MEASURE_LOOP, &loop, EOPNOTSUPP);
	progress_end();
	for (i = 0; there && i < count; i++)
		series_add(errors, found[i]);
	*turn = loop.turn;
	free(found);
	return there;
}

/*
 * Find the number of cycles after which the errors of the plain loop repeat: its turn, or
 * the TSC's step.
 */
static unsigned int step_of_loop(void)
{
	struct series errors = {};
	unsigned int turn, lag;
	double how;

	shots_of(APIC_MEASURE_RDTSC, 0, &errors, &turn);
	lag = repeats(&errors, &how);
	series_free(&errors);
	return lag <= APIC_MEASURE_STEP_MAX ? lag : 0;
}

static void measure_loop(int which)
{
	unsigned int turn, step = which == APIC_MEASURE_TABLE ? step_of_loop() : 0;
	struct series errors = {};

	if (which == APIC_MEASURE_TABLE && !step) {
		if (!opt_json)
			printf("%-8s errors do not repeat\n", ways[which]);
	} else if (shots_of(which, step, &errors, &turn)) {
		print_loop(which, &errors, turn);
	} else if (!opt_json) {
		printf("%-8s not on this machine\n", ways[which]);
	}
	series_free(&errors);
}

static void run_loops(void)
{
	struct tsc_step step;
	int which;

	measure_begin(cpu);
	step = tsc_step_measure();
	if (!count)
		count = 20000;
	if (opt_json) {
		json_object(NULL);
		json_text("of", "loop");
		json_number("cpu", measure_cpu());
		json_number("tsc_step", step.step);
		json_text("caches", caches_text());
		json_array("rows");
	} else {
		printf("TSC after the loop minus target, cycles, on CPU %d; the TSC counts in steps of %u; caches %s\n\n"
		       "%-8s %8s %8s %8s %8s %8s %10s %8s %8s\n", measure_cpu(), step.step,
		       caches_text(), "loop", "min", "p1", "p50", "p90", "p99", "max", "sd",
		       "repeats");
	}
	for (which = 0; which < APIC_MEASURE_WAYS; which++)
		if (way == APIC_MEASURE_WAYS || way == which)
			measure_loop(which);
	if (opt_json) {
		json_end();
		json_end();
	}
}

static void json_counts(const char *name, const struct apic_measure_counts *counts)
{
	unsigned int i;

	json_object(name);
	json_number("early", counts->early);
	json_number("p50", series_counted_quantile(counts, 50));
	json_number("p99", series_counted_quantile(counts, 99));
	json_number("max", series_counted_quantile(counts, 100));
	json_array("powers_of_2");
	for (i = 0; i < APIC_MEASURE_BUCKETS; i++)
		json_number(NULL, counts->bucket[i]);
	json_end();
	json_end();
}

static void json_periodic(const struct apic_measure_periodic *timer, struct series *errors,
			  struct series *bodies)
{
	double how;

	json_object(NULL);
	json_text("of", "periodic");
	json_number("cpu", measure_cpu());
	json_text("mode", modes[timer->mode]);
	json_number("period_us", period);
	json_text("behind", behinds[timer->behind]);
	json_text("caches", caches_text());
	json_text("keep", keeps[timer->keep]);
	json_number("n", timer->count);
	json_number("kept", timer->kept);
	json_number("missed", timer->missed);
	json_counts("errors", &timer->errors);
	json_counts("bodies", &timer->bodies);
	if (timer->keep == APIC_MEASURE_KEEP_ALL) {
		series_json("error", errors);
		json_number("error_min", series_quantile(errors, 0));
		json_real("error_sd", series_deviation(errors, INT64_MAX), 1);
		series_json("body", bodies);
		json_number("body_min", series_quantile(bodies, 0));
		json_number("body_period", series_period(bodies, 64, INT64_MAX, &how));
		json_real("body_repeats", how, 2);
		json_first("first", errors, DRAWN);
		json_first("first_bodies", bodies, DRAWN);
	}
	if (timer->keep == APIC_MEASURE_KEEP_OUTLIERS)
		json_first("outlier_numbers", bodies, DRAWN);
	json_end();
}

static void print_row(const char *name, struct series *series)
{
	printf("%-8s %10s %10s %10s %10s %10.1f\n", name, commas(series_quantile(series, 0)),
	       commas(series_quantile(series, 50)), commas(series_quantile(series, 99)),
	       commas(series_quantile(series, 100)), series_deviation(series, INT64_MAX));
}

static const char *counted_text(const struct apic_measure_counts *counts, double percent)
{
	int64_t found = series_counted_quantile(counts, percent);

	return found < 0 ? "early" : commas(found);
}

static void print_counts(const char *name, const struct apic_measure_counts *counts)
{
	printf("%-8s %10s %10s %10s %10s\n", name, counts->early ? "early" : "",
	       counted_text(counts, 50), counted_text(counts, 99), counted_text(counts, 100));
}

static void print_periodic(const struct apic_measure_periodic *timer, struct series *errors,
			   struct series *bodies)
{
	unsigned int lag;
	double how;

	printf("%u expiries, every %ld us, mode %s, on CPU %d; behind: %s, caches %s; %u missed\n\n"
	       "%-8s %10s %10s %10s %10s %10s\n", timer->count, period, modes[timer->mode],
	       measure_cpu(), behinds[timer->behind], caches_text(), timer->missed, "cycles", "min",
	       "p50", "p99", "max", "sd");
	if (timer->keep != APIC_MEASURE_KEEP_ALL) {
		print_counts("error", &timer->errors);
		print_counts("body", &timer->bodies);
		if (timer->keep == APIC_MEASURE_KEEP_OUTLIERS)
			printf("\n%u outliers\n", timer->kept);
		return;
	}
	print_row("error", errors);
	print_row("body", bodies);
	lag = series_period(bodies, 64, INT64_MAX, &how);
	if (lag)
		printf("\nbodies repeat after %u expiries (%.2f); a cache line of 64 bytes holds %zu samples\n",
		       lag, how, 64 / sizeof(struct apic_measure_sample));
}

static void run_periodic(void)
{
	struct apic_measure_sample *samples;
	struct apic_measure_periodic timer = {
		.mode = mode + 1,
		.behind = behind,
		.cache = caches(),
		.walk_kib = walk,
		.keep = keep,
		.bound = bound,
		.count = count ? count : 3000,
		.period_ns = period * 1000,
	};
	struct series errors = {}, bodies = {};
	unsigned int i;

	samples = calloc(timer.count, sizeof(*samples));
	if (!samples)
		fail("out of memory");
	timer.samples = (uintptr_t)samples;
	measure_begin(cpu);
	progress_before((double)timer.count * timer.period_ns / 1e9, "%u expiries", timer.count);
	measure_call(APIC_MEASURE_PERIODIC, &timer, 0);
	progress_end();
	for (i = 0; i < timer.kept; i++) {
		series_add(&errors, samples[i].error);
		/* The first expiry has no previous one. */
		if (i || timer.keep == APIC_MEASURE_KEEP_OUTLIERS)
			series_add(&bodies, samples[i].body);
	}
	if (opt_json)
		json_periodic(&timer, &errors, &bodies);
	else
		print_periodic(&timer, &errors, &bodies);
	series_free(&errors);
	series_free(&bodies);
	free(samples);
}

/* Refuse an option of the other experiment: its value would seem to be that of the result. */
static void refuse_others(bool periodic)
{
	static const void * const of_loop[] = { &way, &ahead };
	static const void * const of_periodic[] = { &period, &mode, &behind, &keep, &bound };
	unsigned int i;

	for (i = 0; periodic && i < COUNT(of_loop); i++)
		opt_refuse(&accuracy_command, of_loop[i], "periodic");
	for (i = 0; !periodic && i < COUNT(of_periodic); i++)
		opt_refuse(&accuracy_command, of_periodic[i], "loop");
}

static int run(int operands, char **operand)
{
	bool periodic = !strcmp(operand[0], "periodic");

	(void)operands;
	if (!periodic && strcmp(operand[0], "loop"))
		fail("accuracy: the operand must be loop or periodic, not \"%s\"", operand[0]);
	refuse_others(periodic);
	if (walk && flush)
		fail("accuracy: --walk and --flush exclude each other");
	if (periodic)
		run_periodic();
	else
		run_loops();
	measure_end();
	return 0;
}

const struct command accuracy_command = {
	.name = "accuracy",
	.operands = "loop|periodic",
	.least = 1,
	.most = 1,
	.summary = "Measure how exactly a loop over the TSC, or a periodic timer, meets its targets",
	.about = "Needs the module apic_measure. \"loop\" waits for TSC values with interrupts off, by\n"
		 "loops of 1997 and newer ones. \"periodic\" is a timer that interrupts an activity; its\n"
		 "body is the time that the handler takes until its sample is stored.",
	.options = options,
	.run = run,
};
