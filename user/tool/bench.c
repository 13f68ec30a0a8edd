// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer bench: how late handlers start, and how much operations on timers
 * cost, for apic_timer and for the kernel's hrtimers on this machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "measure.h"
#include "say.h"
#include "series.h"

#define SEED	UINT64_C(88172645463325252)
/* Handlers that are not counted, while apic_timer learns this CPU's latency. */
#define WARM_UP	2000
#define LEAST_US	20
#define MOST_US		1020

static long shots = 10000, operations = 1000, cpu = -1;
static const char *load;

static const struct opt options[] = {
	OPT_NUMBER('n', "shots", "N", 1, 10000000, "expiries of each timer (10000)", &shots),
	OPT_NUMBER('o', "operations", "N", 1, 1000000, "operations of each kind (1000)",
		   &operations),
	OPT_TEXT(0, "load", "COMMAND", "shell command to run meanwhile", &load),
	OPT_NUMBER('c', "cpu", "N", 0, 1023, "CPU to measure on (the first)", &cpu),
	{}
};

/* Names as in the rows of the lab's benchmark. */
static const struct timer {
	unsigned int trigger;
	const char *name, *mode;
} timers[] = {
	{ APIC_MEASURE_APIC, "apic_timer", "exact" },
	{ APIC_MEASURE_APIC_MEAN, "apic_timer", "mean" },
	{ APIC_MEASURE_APIC_RAW, "apic_timer", "raw" },
	{ APIC_MEASURE_HRTIMER, "hrtimer_hard", "-" },
};

static const char * const names[APIC_MEASURE_OPERATIONS] = {
	[APIC_MEASURE_ADD] = "add",
	[APIC_MEASURE_DELETE] = "delete",
	[APIC_MEASURE_MODIFY] = "modify",
	[APIC_MEASURE_OLDER] = "older",
};

static const unsigned int pending[] = { 1, 1000, APIC_MEASURE_PENDING_MAX };

static void errors_of(const struct timer *timer, struct series *errors)
{
	struct apic_measure_chain chain = {
		.route = APIC_MEASURE_DIRECT,
		.trigger = timer->trigger,
		.least_ns = LEAST_US * 1000,
		.most_ns = MOST_US * 1000,
		.seed = SEED,
	};
	struct apic_measure_record record;
	long number;

	measure_call(APIC_MEASURE_CHAIN, &chain, 0);
	for (number = 0; number < shots + WARM_UP; number++) {
		if (number % 256 == 0)
			progress("%s %s: %ld of %ld", timer->name, timer->mode, number,
				 shots + WARM_UP);
		measure_read(&record);
		if (number >= WARM_UP)
			series_add(errors, (int64_t)(record.entry - record.expires));
	}
	progress_end();
}

static void costs_of(unsigned int trigger, unsigned int operation, unsigned int others,
		     struct series *costs)
{
	uint32_t *cycles = calloc(operations, sizeof(*cycles));
	struct apic_measure_cost cost = {
		.operation = operation,
		.trigger = trigger,
		.pending = others,
		.count = operations,
		.seed = SEED,
		.cycles = (uintptr_t)cycles,
	};
	long i;

	if (!cycles)
		fail("out of memory");
	progress("%s with %u pending", names[operation], others);
	measure_call(APIC_MEASURE_COST, &cost, 0);
	progress_end();
	for (i = 0; i < operations; i++)
		series_add(costs, cycles[i]);
	free(cycles);
}

static void json_row(const char *bench, const char *timer, const char *mode,
		     struct series *series)
{
	struct utsname name;

	uname(&name);
	json_object(NULL);
	json_text("bench", bench);
	json_text("kernel", name.release);
	json_text("engine", "host");
	json_number("cpus", sysconf(_SC_NPROCESSORS_ONLN));
	json_text("mode", mode);
	json_text("timer", timer);
	json_text("load", load ? load : "idle");
	json_text("unit", "cycles");
	json_number("n", series->count);
	json_number("min", series_quantile(series, 0));
	json_number("p50", series_quantile(series, 50));
	json_number("p99", series_quantile(series, 99));
	json_number("p999", series_quantile(series, 99.9));
	json_number("max", series_quantile(series, 100));
	json_real("mean", series_mean(series), 1);
	json_real("sd", series_deviation(series, INT64_MAX), 1);
	json_end();
}

static void show_errors(void)
{
	struct series errors = {};
	unsigned int i;

	if (!opt_json)
		printf("Handler start minus expiry, TSC cycles, on CPU %d, "
		       "%d to %d us ahead\n\n%-19s %9s %10s %10s %10s %10s %10s\n",
		       measure_cpu(), LEAST_US, MOST_US,
		       "timer", "expiries", "min", "p50", "p99", "p99.9", "max");
	for (i = 0; i < COUNT(timers); i++) {
		errors_of(&timers[i], &errors);
		if (opt_json)
			json_row("error", timers[i].name, timers[i].mode, &errors);
		else
			printf("%-12s %-6s %9s %10s %10s %10s %10s %10s\n", timers[i].name,
			       timers[i].mode, commas(errors.count),
			       commas(series_quantile(&errors, 0)),
			       commas(series_quantile(&errors, 50)),
			       commas(series_quantile(&errors, 99)),
			       commas(series_quantile(&errors, 99.9)),
			       commas(series_quantile(&errors, 100)));
		fflush(stdout);
		series_free(&errors);
	}
}

/* Measure both kinds in turn, so that other activity affects them alike. */
static void show_cost(unsigned int operation, unsigned int others)
{
	struct series ours = {}, hrtimers = {};
	int64_t own, rival;
	char bench[40];

	costs_of(APIC_MEASURE_APIC, operation, others, &ours);
	costs_of(APIC_MEASURE_HRTIMER, operation, others, &hrtimers);
	own = series_quantile(&ours, 50);
	rival = series_quantile(&hrtimers, 50);
	if (opt_json) {
		snprintf(bench, sizeof(bench), "cost/%s/%u", names[operation], others);
		json_row(bench, "apic_timer", "exact", &ours);
		json_row(bench, "hrtimer_hard", "-", &hrtimers);
	} else {
		printf("%-10s %9s %12s %12s", names[operation], commas(others), commas(own),
		       commas(rival));
		if (rival > 0)
			printf(" %8.2f", (double)own / rival);
		putchar('\n');
		fflush(stdout);
	}
	series_free(&ours);
	series_free(&hrtimers);
}

static void show_costs(void)
{
	unsigned int operation, i;

	if (!opt_json)
		printf("\nMedian cost of an operation, TSC cycles; %s of each\n\n"
		       "%-10s %9s %12s %12s %8s\n", commas(operations), "operation", "pending",
		       "apic_timer", "hrtimer", "ratio");
	for (operation = 0; operation < COUNT(names); operation++)
		for (i = 0; i < COUNT(pending); i++)
			show_cost(operation, pending[i]);
}

static int run(int operands, char **operand)
{
	(void)operands;
	(void)operand;
	measure_begin(cpu);
	measure_load_start(load);
	measure_real_time();
	if (opt_json) {
		json_object(NULL);
		json_number("cpu", measure_cpu());
		json_number("least_us", LEAST_US);
		json_number("most_us", MOST_US);
		json_array("rows");
	}
	show_errors();
	show_costs();
	if (opt_json) {
		json_end();
		json_end();
	}
	measure_load_stop();
	measure_end();
	return 0;
}

const struct command bench_command = {
	.name = "bench",
	.summary = "Compare the timers of apic_timer with the kernel's hrtimers",
	.about = "Needs the module apic_measure. Interrupts are disabled only during each operation. The\n"
		 "source tree's benchmark, make bench, has more loads, distances and other timers.",
	.options = options,
	.run = run,
};
