// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer chain: from an interrupt to the thread that waits for it.
 *
 * The module records when the interrupt was due, its handler's start and end, and the
 * start of the deferred procedure; this thread, which waits in read(), records when it
 * runs again. For comparison, a thread sleeps with /dev/apic_timer, which wakes it
 * early by the learnt lead.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apic_timer_user.h"
#include "commands.h"
#include "json.h"
#include "measure.h"
#include "say.h"
#include "series.h"
#include "tsc.h"

#define SEED	UINT64_C(88172645463325252)
#define WARM_UP	100
#define RATE_WAIT_US	2000

/* A route that does not belong to the module apic_measure */
#define DEVICE	APIC_MEASURE_ROUTES

static const char * const routes[DEVICE + 1] = {
	[APIC_MEASURE_DIRECT] = "direct",
	[APIC_MEASURE_TASKLET] = "tasklet",
	[APIC_MEASURE_IRQ_WORK] = "irq_work",
	[APIC_MEASURE_BH] = "bh",
	[APIC_MEASURE_THREAD] = "thread",
	[APIC_MEASURE_HIGHPRI] = "highpri",
	[APIC_MEASURE_WORK] = "work",
	[DEVICE] = "device",
};

static const char * const triggers[] = {
	[APIC_MEASURE_APIC] = "apic",
	[APIC_MEASURE_HRTIMER] = "hrtimer",
};

#define BOTH	COUNT(triggers)

static long shots = 10000, cpu = -1, least = 20, most = 1020;
static int trigger = BOTH;
static const char *via, *load;
static bool counts;

static const struct opt options[] = {
	OPT_NUMBER('n', "shots", "N", 1, 10000000, "interrupts of each series (10000)", &shots),
	OPT_TEXT('v', "via", "LIST",
		 "routes: direct,tasklet,irq_work,bh,thread,highpri,work,device (all)", &via),
	OPT_CHOICE('t', "trigger", "apic|hrtimer|both", "timer that interrupts (both)", &trigger),
	OPT_NUMBER('l', "least", "US", 2, 1000000, "minimum time until an interrupt (20)", &least),
	OPT_NUMBER('m', "most", "US", 2, 1000000, "maximum time until an interrupt (1020)", &most),
	OPT_TEXT(0, "load", "COMMAND", "shell command to run meanwhile", &load),
	OPT_FLAG(0, "counts", "with --json: how often each value occurred", &counts),
	OPT_NUMBER('c', "cpu", "N", 0, 1023, "CPU to measure on (the first)", &cpu),
	{}
};

/* Distances computed from the records of a series, TSC cycles */
struct links {
	struct series entry;	/* handler's start - expiry */
	struct series length;	/* its end - its start */
	struct series deferred;	/* deferred procedure - handler's start */
	struct series wake;	/* thread - deferred procedure, or handler's end */
	struct series user;	/* thread - expiry */
	uint64_t disorder;	/* records whose time stamps are not in order */
};

/* Return: the place of a name in the list, with the rest in *text; -1. */
static int next_name(const char **text)
{
	size_t length = strcspn(*text, ",");
	unsigned int i;

	for (i = 0; i < COUNT(routes); i++)
		if (strlen(routes[i]) == length && !memcmp(routes[i], *text, length)) {
			*text += length + ((*text)[length] == ',');
			return i;
		}
	return -1;
}

static void choose(bool *chosen)
{
	const char *text = via;
	int route;

	memset(chosen, !via, COUNT(routes) * sizeof(*chosen));
	while (text && *text) {
		route = next_name(&text);
		if (route < 0)
			fail("chain: --via takes a list of direct,tasklet,irq_work,bh,thread,highpri,work,device, not \"%s\"",
			     via);
		chosen[route] = true;
	}
}

/* The device has a timer of its own, which is one of apic_timer. */
static bool is_pair(unsigned int from, unsigned int route)
{
	return (trigger == BOTH || trigger == (int)from) &&
	       (route != DEVICE || from == APIC_MEASURE_APIC);
}

/* End the program if there is nothing to measure. */
static void need_pair(const bool *chosen)
{
	unsigned int from, route;

	for (from = 0; from < COUNT(triggers); from++)
		for (route = 0; route < COUNT(routes); route++)
			if (chosen[route] && is_pair(from, route))
				return;
	if (chosen[DEVICE])
		fail("chain: the route device has no trigger %s", triggers[trigger]);
	fail("chain: --via names no route");
}

static void one(struct links *links, uint64_t number)
{
	struct apic_measure_record record;
	uint64_t user, from;

	measure_read(&record);
	user = tsc_read();
	if (record.number != number)
		fail("record %" PRIu64 " is missing", number);
	if (number < WARM_UP)
		return;
	from = record.deferred ? record.deferred : record.exit;
	/* A deferred procedure on another CPU may come before the handler's end. */
	if (record.entry > record.exit || record.entry > from || from > user)
		links->disorder++;
	series_add(&links->entry, (int64_t)(record.entry - record.expires));
	series_add(&links->length, (int64_t)(record.exit - record.entry));
	if (record.deferred)
		series_add(&links->deferred, (int64_t)(record.deferred - record.entry));
	series_add(&links->wake, (int64_t)(user - from));
	series_add(&links->user, (int64_t)(user - record.expires));
}

/* Get the next distance of a sleep, ns; Marsaglia's xorshift */
static uint64_t distance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return least * 1000 + *state % ((most - least) * 1000 + 1);
}

/* Return: whether there is /dev/apic_timer. */
static bool sleep_by_device(struct links *links)
{
	uint64_t state = SEED, expires, user;
	struct at at;
	long number;
	int error;

	memset(links, 0, sizeof(*links));
	error = at_open(&at);
	if (error == -ENOENT)
		return false;
	if (error)
		fail("can't open " AT_DEVICE ": %s", strerror(-error));
	for (number = 0; number < shots + WARM_UP; number++) {
		if (number % 256 == 0)
			progress("%s: %ld of %ld", routes[DEVICE], number, shots + WARM_UP);
		expires = at_readtsc() + at_ns_to_tsc(&at, distance(&state));
		error = at_mdelay(&at, expires);
		user = at_readtsc();
		/* The device limits a user's rate: wait until there is some more, and try again. */
		if (error == -EAGAIN) {
			usleep(RATE_WAIT_US);
			number--;
			continue;
		}
		if (error)
			fail(AT_DEVICE ": %s", strerror(-error));
		if (number >= WARM_UP)
			series_add(&links->user, (int64_t)(user - expires));
	}
	progress_end();
	at_close(&at);
	return true;
}

/* Return: whether the kernel has such a route. */
static bool measure(int from, int route, struct links *links)
{
	struct apic_measure_chain chain = {
		.route = route,
		.trigger = from,
		.least_ns = least * 1000,
		.most_ns = most * 1000,
		.seed = SEED,
	};
	long number;

	if (route == DEVICE)
		return sleep_by_device(links);
	memset(links, 0, sizeof(*links));
	if (measure_call(APIC_MEASURE_CHAIN, &chain, EOPNOTSUPP))
		return false;
	for (number = 0; number < shots + WARM_UP; number++) {
		if (number % 256 == 0)
			progress("%s by %s: %ld of %ld", routes[route], triggers[from], number,
				 shots + WARM_UP);
		one(links, number);
	}
	progress_end();
	return true;
}

static void print_links(int from, int route, struct links *links)
{
	struct series *all[] = { &links->entry, &links->length, &links->deferred, &links->wake,
				 &links->user };
	char text[64];
	unsigned int i;

	printf("%-8s %-8s", triggers[from], routes[route]);
	for (i = 0; i < COUNT(all); i++) {
		snprintf(text, sizeof(text), "%s/%s/%s", commas(series_quantile(all[i], 50)),
			 commas(series_quantile(all[i], 99)), commas(series_quantile(all[i], 100)));
		printf(" %20s", all[i]->count ? text : "-");
	}
	putchar('\n');
	fflush(stdout);
}

static void json_links(int from, int route, struct links *links)
{
	json_object(NULL);
	json_text("trigger", triggers[from]);
	json_text("route", routes[route]);
	json_number("shots", links->user.count);
	json_number("disorder", links->disorder);
	if (route == DEVICE) {
		series_json("user", &links->user);
		series_json_buckets("user_buckets", &links->user);
		if (counts)
			series_json_counts("user_counts", &links->user);
		json_end();
		return;
	}
	series_json("entry", &links->entry);
	series_json("length", &links->length);
	if (links->deferred.count)
		series_json("deferred", &links->deferred);
	series_json("wake", &links->wake);
	series_json("user", &links->user);
	series_json_buckets("entry_buckets", &links->entry);
	series_json_buckets("user_buckets", &links->user);
	if (counts) {
		series_json_counts("entry_counts", &links->entry);
		series_json_counts("user_counts", &links->user);
	}
	json_end();
}

static void free_links(struct links *links)
{
	series_free(&links->entry);
	series_free(&links->length);
	series_free(&links->deferred);
	series_free(&links->wake);
	series_free(&links->user);
}

static void head(void)
{
	if (opt_json) {
		json_object(NULL);
		json_number("cpu", measure_cpu());
		json_number("least_us", least);
		json_number("most_us", most);
		if (load)
			json_text("load", load);
		else
			json_null("load");
		json_array("rows");
		return;
	}
	printf("%ld interrupts each on CPU %d, %ld to %ld us ahead; TSC cycles, p50/p99/max\n\n"
	       "%-8s %-8s %20s %20s %20s %20s %20s\n", shots, measure_cpu(), least, most,
	       "trigger", "route", "handler - expiry", "handler", "deferred - handler",
	       "thread - last", "thread - expiry");
}

static int run(int operands, char **operand)
{
	bool chosen[COUNT(routes)];
	uint64_t disorder = 0;
	struct links links;
	unsigned int from, route;

	(void)operands;
	(void)operand;
	choose(chosen);
	need_pair(chosen);
	if (least > most)
		fail("chain: --least is larger than --most");
	measure_begin(cpu);
	measure_load_start(load);
	measure_real_time();
	head();
	for (from = 0; from < COUNT(triggers); from++) {
		for (route = 0; route < COUNT(routes); route++) {
			if (!chosen[route] || !is_pair(from, route))
				continue;
			if (!measure(from, route, &links)) {
				if (!opt_json)
					printf("%-8s %-8s %s\n", triggers[from], routes[route],
					       route == DEVICE ? "no " AT_DEVICE " here" :
								 "not in this kernel");
				continue;
			}
			if (opt_json)
				json_links(from, route, &links);
			else
				print_links(from, route, &links);
			disorder += links.disorder;
			free_links(&links);
		}
	}
	if (opt_json) {
		json_end();
		json_end();
	}
	measure_load_stop();
	measure_end();
	if (disorder)
		warn("%s records have time stamps out of order: the CPUs' TSCs differ",
		     commas(disorder));
	return disorder > 0;
}

const struct command chain_command = {
	.name = "chain",
	.summary = "Measure the path from an interrupt to the thread that waits for it",
	.about = "Needs the module apic_measure. The interrupt's handler starts the deferred procedure,\n"
		 "which wakes this thread; \"direct\" wakes it from the handler.",
	.options = options,
	.run = run,
};
