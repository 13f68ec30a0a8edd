// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer trace: the life of a timer, from add to receipt, and why its
 * handler was late.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "files.h"
#include "json.h"
#include "say.h"
#include "trace.h"
#include "tracing.h"
#include "utf8.h"
#include "words.h"

#define TIMERS		256	/* that are followed at the same time */
#define STEPS		48	/* of a life */
#define NEARBY		64	/* events of a CPU that are kept: power of 2 */

static long count = 1, seconds, late = -1;
static const char *from;

static const struct opt options[] = {
	OPT_NUMBER('l', "late", "CYCLES", 0, 1000000000000,
		   "only expiries whose error is larger than this", &late),
	OPT_NUMBER('n', "count", "N", 0, 1000000,
		   "timer lives to print; 0: until stopped (1)", &count),
	OPT_NUMBER('s', "seconds", "N", 1, 86400, "give up after this time (60; never with -n 0)",
		   &seconds),
	OPT_FILE(0, "from", "FILE",
		 "read saved lines of trace_pipe (clock x86-tsc) instead", &from),
	FILES_OPT_ROOT,
	{}
};

/* An event at a time; the text is for people. */
struct step {
	uint64_t tsc;
	char what[16], text[96];
};

/* From add to receipt */
struct life {
	struct step step[STEPS];
	unsigned int steps;
};

struct timer {
	char name[24];		/* as in the trace: a hashed address */
	char function[112];
	struct life now, next;	/* next: added by its own handler */
	bool expiring;
	uint64_t used;		/* time of the last lookup */
};

/* Events of a CPU that belong to no timer: programming, deferral, throttling */
struct nearby {
	struct step step[NEARBY];
	uint64_t target[NEARBY];	/* target of a programming, or 0 */
	unsigned int steps;
};

/* Parts of the interval from when the hardware had to fire to the handler, in order of time */
enum part { ARMED_LATE, DELIVERY, DISPATCH, SPIN, PARTS };

static const struct {
	const char *id, *text;
} parts[] = {
	[ARMED_LATE] = { "armed_late", "armed late" },
	[DELIVERY] = { "delivery", "deadline to interrupt" },
	[DISPATCH] = { "dispatch", "interrupt to ready" },
	[SPIN] = { "spin", "ready to handler" },
};

struct receipt {
	uint64_t expires, entry, ready, now, lead, delta;
	int64_t error;
	/* Cycles of the whole interval, and of its part after the expiry */
	uint64_t cycles[PARTS], after[PARTS];
};

static struct timer *timers[TIMERS];
static struct nearby *nearby[CPUS];
static const char *wanted;
static uint64_t lines, unparsed, lost, printed;
static bool in_cycles, in_seconds;	/* kinds of time stamps seen */

static void add_step(struct life *life, uint64_t tsc, const char *what, const char *text)
{
	struct step *step;

	/* A timer that is modified again and again: forget the oldest but the first. */
	if (life->steps == STEPS) {
		memmove(&life->step[1], &life->step[2], (STEPS - 2) * sizeof(*step));
		life->steps--;
	}
	step = &life->step[life->steps++];
	step->tsc = tsc;
	snprintf(step->what, sizeof(step->what), "%s", what);
	snprintf(step->text, sizeof(step->text), "%s", text);
}

/* Check whether a timer is selected. "handler" also matches "handler [module]". */
static bool is_wanted(const char *timer, const char *function)
{
	size_t length = strlen(wanted);

	if (!strcmp(timer, wanted))
		return true;
	return !strncmp(function, wanted, length) &&
	       (!function[length] || function[length] == ' ');
}

static struct timer *timer_of(const char *fields)
{
	char name[24], function[112] = "";
	struct timer **oldest = &timers[0];
	unsigned int i;

	if (!trace_word(fields, "timer", name, sizeof(name)))
		return NULL;
	trace_word(fields, "function", function, sizeof(function));
	if (!is_wanted(name, function))
		return NULL;
	for (i = 0; i < TIMERS; i++) {
		if (timers[i] && !strcmp(timers[i]->name, name))
			break;
		if (!timers[i] || (*oldest && timers[i]->used < (*oldest)->used))
			oldest = &timers[i];
	}
	if (i == TIMERS) {
		free(*oldest);
		*oldest = calloc(1, sizeof(**oldest));
		if (!*oldest)
			fail("out of memory");
		snprintf((*oldest)->name, sizeof(name), "%s", name);
		i = oldest - timers;
	}
	if (*function)
		snprintf(timers[i]->function, sizeof(function), "%s", function);
	timers[i]->used = lines;
	return timers[i];
}

static void note_nearby(const struct trace_line *line)
{
	const char *fields = line->fields;
	struct nearby *cpu;
	struct step *step;
	uint64_t target = 0;
	char text[96], *what;

	if (line->cpu < 0 || line->cpu >= CPUS)
		return;
	if (!strcmp(line->event, EVENT_PROGRAM)) {
		what = "program";
		target = trace_number(fields, "target", 0);
		snprintf(text, sizeof(text), "CPU %d, to fire in %s cycles", line->cpu,
			 commas(trace_number(fields, FIELD_DELTA, 0)));
	} else if (!strcmp(line->event, EVENT_DEFER)) {
		what = "deferred";
		snprintf(text, sizeof(text), "kernel event is served, %s cycles late",
			 commas(trace_number(fields, FIELD_DEFERRED, 0)));
	} else if (!strcmp(line->event, EVENT_THROTTLE)) {
		what = "throttle";
		snprintf(text, sizeof(text), "handlers ran for %s cycles without a break",
			 commas(trace_number(fields, "busy", 0)));
	} else if (!strcmp(line->event, EVENT_HW_DEAD)) {
		what = "hw_dead";
		snprintf(text, sizeof(text), "the LAPIC timer was stopped by other code");
	} else {
		return;
	}
	if (!nearby[line->cpu])
		nearby[line->cpu] = calloc(1, sizeof(*cpu));
	cpu = nearby[line->cpu];
	if (!cpu)
		fail("out of memory");
	step = &cpu->step[cpu->steps % NEARBY];
	cpu->target[cpu->steps++ % NEARBY] = target;
	step->tsc = line->tsc;
	snprintf(step->what, sizeof(step->what), "%s", what);
	snprintf(step->text, sizeof(step->text), "%s", text);
}

/*
 * Add the CPU's events since the timer was added; of the programmings, only
 * those for this expiry, or the last one before the interrupt.
 */
static void add_nearby(struct life *life, int number, const struct receipt *receipt)
{
	uint64_t start = life->steps ? life->step[0].tsc : receipt->expires - receipt->lead;
	struct nearby *cpu = number >= 0 && number < CPUS ? nearby[number] : NULL;
	unsigned int i, begin, last = 0;
	bool found = false, some = false;
	const struct step *step;

	if (!cpu)
		return;
	begin = cpu->steps > NEARBY ? cpu->steps - NEARBY : 0;
	for (i = begin; i < cpu->steps; i++) {
		step = &cpu->step[i % NEARBY];
		if (step->tsc < start || step->tsc > receipt->now)
			continue;
		if (!cpu->target[i % NEARBY]) {
			add_step(life, step->tsc, step->what, step->text);
		} else if (cpu->target[i % NEARBY] == receipt->expires - receipt->lead) {
			add_step(life, step->tsc, step->what, step->text);
			found = true;
		} else if (step->tsc < receipt->entry) {
			last = i;
			some = true;
		}
	}
	if (!found && some)
		add_step(life, cpu->step[last % NEARBY].tsc, cpu->step[last % NEARBY].what,
			 cpu->step[last % NEARBY].text);
}

/* Get the part of an interval that is after a moment */
static uint64_t after(uint64_t moment, uint64_t begin, uint64_t end)
{
	if (end <= begin || end <= moment)
		return 0;
	return end - (begin > moment ? begin : moment);
}

/* Return: when the timer was last armed, 0 if that is unknown. */
static uint64_t armed_at(const struct life *life)
{
	uint64_t found = 0;
	unsigned int i;

	for (i = 0; i < life->steps; i++)
		if (!strcmp(life->step[i].what, "add") || !strcmp(life->step[i].what, "mod"))
			found = life->step[i].tsc;
	return found;
}

static void judge(struct receipt *receipt, const struct life *life, const char *fields)
{
	uint64_t at[PARTS + 1], armed = armed_at(life), served;
	unsigned int i;

	receipt->expires = trace_number(fields, "expires", 0);
	receipt->entry = trace_number(fields, "entry", 0);
	receipt->ready = trace_number(fields, "ready", 0);
	receipt->now = trace_number(fields, "now", 0);
	receipt->error = trace_number(fields, "error", 0);
	receipt->lead = trace_number(fields, "lead", 0);
	receipt->delta = trace_number(fields, FIELD_DELTA, -1);
	/* A handler may arm a timer that the same interrupt then serves. */
	if (armed > receipt->ready)
		armed = receipt->ready;
	served = receipt->entry > armed ? receipt->entry : armed;
	/* Without a lead it was due at its own moment, unless it was served earlier. */
	at[ARMED_LATE] = receipt->expires - receipt->lead;
	if (!receipt->lead && served < receipt->expires)
		at[ARMED_LATE] = served;
	at[DELIVERY] = armed;
	at[DISPATCH] = receipt->entry;
	at[SPIN] = receipt->ready;
	at[PARTS] = receipt->now;
	for (i = 0; i < PARTS; i++) {
		/* What had already happened when a part began takes none of it. */
		if (at[i + 1] < at[i])
			at[i + 1] = at[i];
		receipt->cycles[i] = at[i + 1] - at[i];
		if (receipt->error > 0)
			receipt->after[i] = after(receipt->expires, at[i], at[i + 1]);
	}
}

/* Get what a CPU was last programmed for when an interrupt arrived, 0 if that is unknown. */
static uint64_t target_at(int number, uint64_t entry)
{
	struct nearby *cpu = number >= 0 && number < CPUS ? nearby[number] : NULL;
	uint64_t found = 0;
	unsigned int i;

	for (i = cpu && cpu->steps > NEARBY ? cpu->steps - NEARBY : 0; cpu && i < cpu->steps; i++)
		if (cpu->target[i % NEARBY] && cpu->step[i % NEARBY].tsc < entry)
			found = cpu->target[i % NEARBY];
	return found;
}

/* Describe the interrupt that served a timer. In mode raw there is never a lead. */
static const char *interrupt_text(const struct receipt *receipt, int cpu)
{
	if (receipt->lead ||
	    (receipt->delta && target_at(cpu, receipt->entry) == receipt->expires))
		return "from the hardware";
	if (!receipt->delta)
		return "at once: no time was left when the hardware was programmed";
	return "another interrupt, which also serves this timer";
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = ((const struct step *)a)->tsc, y = ((const struct step *)b)->tsc;

	return (x > y) - (x < y);
}

static void print_json(const struct timer *timer, const struct trace_line *line,
		       const struct receipt *receipt, const struct life *life)
{
	unsigned int i, whole[PARTS], tenths[PARTS];
	char word[24] = "";

	trace_shares(receipt->cycles, whole, PARTS);
	trace_shares(receipt->after, tenths, PARTS);
	json_object(NULL);
	json_text("handler", timer->function);
	json_text("timer", timer->name);
	json_number("cpu", line->cpu);
	trace_word(line->fields, "mode", word, sizeof(word));
	json_text("mode", word);
	*word = 0;
	trace_word(line->fields, FIELD_CPU_STATE, word, sizeof(word));
	json_text("cpu_state", word);
	json_text("interrupted", line->task);
	json_number("expires", receipt->expires);
	json_number("error", receipt->error);
	json_number("lead", receipt->lead);
	json_number("smi", trace_number(line->fields, "smi", 0));
	json_number("deferred", trace_number(line->fields, FIELD_DEFERRED, 0));
	json_bool("skipped", strstr(line->fields, " skipped"));
	json_array("steps");
	for (i = 0; i < life->steps; i++) {
		json_object(NULL);
		json_number("at", (int64_t)(life->step[i].tsc - receipt->expires));
		json_text("what", life->step[i].what);
		json_text("text", life->step[i].text);
		json_end();
	}
	json_end();
	json_array("shares");
	for (i = 0; i < PARTS; i++) {
		json_object(NULL);
		json_text("id", parts[i].id);
		json_number("cycles", receipt->cycles[i]);
		json_real("percent", whole[i] / 10.0, 1);
		json_number("after_expiry", receipt->after[i]);
		json_real("after_expiry_percent", tenths[i] / 10.0, 1);
		json_end();
	}
	json_end();
	json_end();
}

static void print_shares(const struct receipt *receipt)
{
	unsigned int i, whole[PARTS], tenths[PARTS], sums[2] = {};
	uint64_t cycles[2] = {};

	trace_shares(receipt->cycles, whole, PARTS);
	trace_shares(receipt->after, tenths, PARTS);
	printf("  %-26s %10s %7s %16s\n", "share", "cycles", "%", "after expiry  %");
	for (i = 0; i < PARTS; i++) {
		if (i == ARMED_LATE && !receipt->cycles[i])
			continue;
		printf("  %-26s %10s %5u.%u %10s %3u.%u\n", parts[i].text,
		       commas(receipt->cycles[i]), whole[i] / 10, whole[i] % 10,
		       commas(receipt->after[i]), tenths[i] / 10, tenths[i] % 10);
		cycles[0] += receipt->cycles[i];
		cycles[1] += receipt->after[i];
		sums[0] += whole[i];
		sums[1] += tenths[i];
	}
	printf("  %-26s %10s %5u.%u %10s %3u.%u\n\n", "sum", commas(cycles[0]), sums[0] / 10,
	       sums[0] % 10, commas(cycles[1]), sums[1] / 10, sums[1] % 10);
}

static void print_text(const struct timer *timer, const struct trace_line *line,
		       const struct receipt *receipt, const struct life *life)
{
	char mode[24] = "", state[24] = "";
	unsigned int i;

	trace_word(line->fields, "mode", mode, sizeof(mode));
	trace_word(line->fields, FIELD_CPU_STATE, state, sizeof(state));
	printf("%s, timer %s, CPU %d, mode %s, expires %" PRIu64 "\n", timer->function,
	       timer->name, line->cpu, mode, receipt->expires);
	for (i = 0; i < life->steps; i++)
		printf("  %+14" PRId64 "  %-10s %s\n",
		       (int64_t)(life->step[i].tsc - receipt->expires), life->step[i].what,
		       life->step[i].text);
	printf("  error %s; the CPU was %s; interrupted task: %s; SMIs %s; deferral %s%s\n",
	       commas(receipt->error), state, line->task,
	       commas(trace_number(line->fields, "smi", 0)),
	       commas(trace_number(line->fields, FIELD_DEFERRED, 0)),
	       strstr(line->fields, " skipped") ? "; skipped" : "");
	print_shares(receipt);
	fflush(stdout);
}

static void end_life(struct timer *timer, const struct trace_line *line)
{
	struct receipt receipt = {};
	struct life *life = &timer->now;
	char text[96];

	judge(&receipt, life, line->fields);
	if (late < 0 || receipt.error > late) {
		if (receipt.lead)
			add_step(life, receipt.expires - receipt.lead, "due", "the hardware's deadline");
		add_step(life, receipt.entry, "interrupt", interrupt_text(&receipt, line->cpu));
		add_step(life, receipt.ready, "ready", "the handler could start");
		snprintf(text, sizeof(text), "starts, error %s", commas(receipt.error));
		add_step(life, receipt.now, strstr(line->fields, " skipped") ? "skipped" : "handler",
			 text);
		add_nearby(life, line->cpu, &receipt);
		qsort(life->step, life->steps, sizeof(life->step[0]), by_time);
		if (opt_json)
			print_json(timer, line, &receipt, life);
		else
			print_text(timer, line, &receipt, life);
		printed++;
	}
	timer->now = timer->next;
	timer->next.steps = 0;
	timer->expiring = false;
}

static void follow(const char *text)
{
	struct trace_line line;
	struct timer *timer;
	struct life *life;
	char words[96];

	lines++;
	if (trace_line_is_loss(text)) {
		lost++;
		return;
	}
	if (!trace_line_parse(text, &line)) {
		in_seconds |= trace_line_in_seconds(text);
		unparsed += *text && *text != '#';
		return;
	}
	in_cycles = true;
	note_nearby(&line);
	timer = timer_of(line.fields);
	if (!timer)
		return;
	life = timer->expiring ? &timer->next : &timer->now;
	if (!strcmp(line.event, EVENT_ADD)) {
		life->steps = 0;
		snprintf(words, sizeof(words), "by %s, on CPU %" PRId64, line.task,
			 trace_number(line.fields, "cpu", -1));
		add_step(life, line.tsc, "add", words);
	} else if (!strcmp(line.event, EVENT_MOD)) {
		snprintf(words, sizeof(words), "by %s, to %" PRId64, line.task,
			 trace_number(line.fields, "expires", 0));
		add_step(life, line.tsc, "mod", words);
	} else if (!strcmp(line.event, EVENT_MIGRATE)) {
		snprintf(words, sizeof(words), "to CPU %" PRId64,
			 trace_number(line.fields, "cpu", -1));
		add_step(life, line.tsc, "migrate", words);
	} else if (!strcmp(line.event, EVENT_DEL) || !strcmp(line.event, EVENT_CANCEL)) {
		life->steps = 0;
	} else if (!strcmp(line.event, EVENT_ENTRY)) {
		timer->expiring = true;
	} else if (!strcmp(line.event, EVENT_EXIT)) {
		snprintf(words, sizeof(words), "after %s cycles",
			 commas(trace_number(line.fields, "cycles", 0)));
		add_step(&timer->now, line.tsc, "returns", words);
	} else if (!strcmp(line.event, EVENT_RECEIPT)) {
		end_life(timer, &line);
	}
}

static bool enough(void)
{
	return tracing_stopped || ferror(stdout) || (count && printed >= (uint64_t)count);
}

/* Process the lines of a buffer, and keep an incomplete last line. Return: its length. */
static size_t feed(char *buffer, size_t length)
{
	char *line = buffer, *end;

	while (!enough() && (end = memchr(line, '\n', buffer + length - line))) {
		*end = 0;
		follow(line);
		line = end + 1;
	}
	length -= line - buffer;
	memmove(buffer, line, length);
	return length;
}

static char module[64];	/* that has the handler, or "" */
static ino_t load;	/* what load_of() returned for it last */

/* Return: the inode of the module's directory, which no two loads share; 0 while it is unloaded. */
static ino_t load_of(void)
{
	char *path = files_path("/sys/module/%s", module);
	struct stat directory;
	int error = stat(path, &directory);

	free(path);
	return error ? 0 : directory.st_ino;
}

/*
 * Return: "function == 0x..." for the handler's symbol, or NULL: filter here. Sets the module that
 * has the symbol.
 */
static char *filter_of(void)
{
	char *symbols = files_read("/proc/kallsyms"), *found = symbols, *line;
	size_t length = strlen(wanted);
	unsigned int matches = 0;
	uint64_t address = 0;

	/* "address type name", and a tab and a module: 200,000 lines, too many to parse each. */
	for (; length && found && (found = strstr(found, wanted)); found++) {
		if (found == symbols || found[-1] != ' ' || !strchr("\t\n", found[length]))
			continue;
		line = memrchr(symbols, '\n', found - symbols);
		address = strtoull(line ? line + 1 : symbols, NULL, 16);
		*module = 0;
		sscanf(found + length, "\t[%63[^]]]", module);
		matches++;
	}
	free(symbols);
	return matches == 1 && address ? format_text("function == 0x%" PRIx64, address) : NULL;
}

static const char * const of_timers[] = {
	EVENT_ADD, EVENT_MOD, EVENT_DEL, EVENT_CANCEL, EVENT_MIGRATE, EVENT_ENTRY, EVENT_EXIT,
	EVENT_RECEIPT,
};

/* Have the kernel select the handler's events, if it can. */
static void select_handler(void)
{
	char *filter = filter_of();
	unsigned int i;

	for (i = 0; i < COUNT(of_timers); i++)
		tracing_filter(of_timers[i], filter);
	free(filter);
}

/*
 * The filter has the handler's address, and the module may come back at another one. Without the
 * filter while it is away, not even the first timers of its next load are missed.
 */
static void follow_module(void)
{
	ino_t now = *module ? load_of() : 0;
	unsigned int i;

	if (now == load)
		return;
	load = now;
	if (load)
		select_handler();
	for (i = 0; !load && i < COUNT(of_timers); i++)
		tracing_filter(of_timers[i], NULL);
}

static void read_live(void)
{
	static const char * const of_cpus[] = {
		EVENT_PROGRAM, EVENT_DEFER, EVENT_THROTTLE, EVENT_HW_DEAD,
	};
	static char buffer[1 << 16];
	struct timespec now;
	struct pollfd pipe;
	time_t end = 0;
	size_t length = 0;
	unsigned int i;
	ssize_t got;

	tracing_begin();
	tracing_write("trace_clock", "x86-tsc");
	tracing_format();
	for (i = 0; i < COUNT(of_cpus); i++)
		tracing_enable(of_cpus[i]);
	select_handler();
	if (*module)
		load = load_of();
	for (i = 0; i < COUNT(of_timers); i++)
		tracing_enable(of_timers[i]);
	pipe.fd = tracing_pipe();
	pipe.events = POLLIN;
	if (!seconds && count)
		seconds = 60;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (seconds)
		end = now.tv_sec + seconds;
	while (!enough()) {
		/* The pipe may never be empty, because the events of CPUs are not filtered. */
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (end && now.tv_sec >= end)
			break;
		follow_module();
		got = read(pipe.fd, buffer + length, sizeof(buffer) - length);
		if (got > 0) {
			length = feed(buffer, length + got);
			if (length == sizeof(buffer))
				length = 0;
			continue;
		}
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			fail("can't read trace_pipe: %s", strerror(errno));
		if (end)
			progress("waiting for %s: %ld s", wanted, (long)(end - now.tv_sec));
		else
			progress("waiting for %s", wanted);
		poll(&pipe, 1, 200);
	}
	progress_end();
	tracing_end();
}

static void read_saved(void)
{
	char *text = files_read("%s", from), *line;

	if (!text)
		fail("can't read %s: %s", from, strerror(errno));
	utf8_make_printable(text);
	for (line = strtok(text, "\n"); line && !enough(); line = strtok(NULL, "\n"))
		follow(line);
	free(text);
	if (in_seconds && !in_cycles)
		fail("%s: its time stamps are not TSC values; trace with the clock x86-tsc", from);
}

static int run(int operands, char **operand)
{
	(void)operands;
	wanted = operand[0];
	if (from) {
		opt_refuse(&trace_command, &seconds, "--from");
		read_saved();
	} else {
		read_live();
	}
	if (lost)
		warn("events are missing: the trace buffer overflowed %s times", commas(lost));
	if (unparsed && !in_cycles)
		fail("none of %s lines is an event of apic_timer in the default format of trace_pipe",
		     commas(unparsed));
	if (!printed && !tracing_stopped)
		warn("%s did not expire%s", wanted, late < 0 ? "" : " that late");
	return printed && !lost ? 0 : 1;
}

const struct command trace_command = {
	.name = "trace",
	.operands = "TIMER|HANDLER",
	.least = 1,
	.most = 1,
	.summary = "Print the life of a timer, and what made its handler late",
	.about = "HANDLER is a function's name, TIMER a value of timer= in the trace. Times are TSC\n"
		 "cycles from the expiry; the shares of each column add up to 100 %.",
	.options = options,
	.run = run,
};
