// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer status: the source of the timers, pending timers by handler, and
 * problems.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apic_version.h"
#include "commands.h"
#include "files.h"
#include "json.h"
#include "module.h"
#include "say.h"
#include "tsc.h"
#include "words.h"

static const struct opt options[] = {
	FILES_OPT_ROOT,
	{}
};

static struct module_info info;
static struct module_stats stats;

/* Pending timers by handler */
struct waiting {
	char handler[112];
	uint64_t count;
	int64_t next;		/* TSC cycles until the first of them expires */
};

static struct waiting *waiting;
static size_t waitings;

static char **wrong;
static size_t wrongs;

static void is_wrong(char *text)
{
	wrong = grow(wrong, wrongs, sizeof(*wrong));
	wrong[wrongs++] = text;
}

/* "cpu 0: expires 12, in 34 cycles, flags 0x0, handler [module]" */
static void read_pending(void)
{
	char *text = files_read(DEBUG_DIR "/pending"), *line, handler[112];
	int64_t next;
	size_t i;

	if (!text) {
		warn("can't read the pending timers: more than 8 readers?");
		return;
	}
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (sscanf(line, "cpu %*d: expires %*u, in %" SCNd64 " cycles, flags %*x, %111[^\n]",
			   &next, handler) != 2)
			continue;
		for (i = 0; i < waitings; i++)
			if (!strcmp(waiting[i].handler, handler))
				break;
		if (i == waitings) {
			waiting = grow(waiting, waitings, sizeof(*waiting));
			memset(&waiting[waitings], 0, sizeof(*waiting));
			snprintf(waiting[waitings].handler, sizeof(handler), "%s", handler);
			waiting[waitings++].next = next;
		}
		waiting[i].count++;
		if (next < waiting[i].next)
			waiting[i].next = next;
	}
	free(text);
}

static void judge_counter(const char *name, const char *what, const char *remedy)
{
	int64_t count = module_stat(&stats, name, -1);

	if (count < 0)
		is_wrong(format_text("the module has no counter %s: another version?", name));
	else if (count)
		is_wrong(format_text("%s: %s %s; %s", name, commas(count), what, remedy));
}

static void judge(void)
{
	char *online = files_read("/sys/devices/system/cpu/online");
	static bool is_online[CPUS];
	int cpu;

	if (module_other_version())
		is_wrong(format_text("version mismatch: the module is %s, this program %s",
				     module_other_version(), APIC_TIMER_VERSION));
	if (online && files_cpulist(online, is_online, CPUS))
		for (cpu = 0; cpu < CPUS; cpu++)
			if (is_online[cpu] && !info.cpu[cpu].serves)
				is_wrong(format_text("CPU %d is online but accepts no timers; see the kernel log",
						     cpu));
	free(online);
	for (cpu = 0; cpu < info.cpus; cpu++) {
		if (info.cpu[cpu].serves && !info.cpu[cpu].stable) {
			is_wrong(format_text("the kernel has marked the TSC unstable"));
			break;
		}
	}
	judge_counter(STAT_HW_DEAD, "times other code had stopped the LAPIC timer",
		      "see docs/DEBUGGING.md");
	judge_counter(STAT_THROTTLED, "times handlers were throttled",
		      "make them shorter, or raise " PARAM_BUSY);
	judge_counter(STAT_LATE, "handlers started late", "apic-timer trace HANDLER --late CYCLES");
	judge_counter(STAT_SKIPPED, "handlers were skipped because they were late",
		      "apic-timer trace HANDLER --late CYCLES");
}

static const struct {
	const char *name, *head;
} columns[] = {
	{ STAT_ADDED, "added" },
	{ STAT_EXPIRED, "expired" },
	{ STAT_LATE, "late" },
	{ STAT_SKIPPED, "skipped" },
	{ STAT_DEFERRED, "deferred" },
	{ STAT_THROTTLED, "throttled" },
	{ STAT_HW_DEAD, "hw_dead" },
};

/* Measure the step on this CPU. Under --root, the TSC is not that of this machine. */
static struct tsc_step step_here(void)
{
	struct tsc_step none = {};

	return *files_root ? none : tsc_step_measure();
}

static void print_json(void)
{
	struct tsc_step step = step_here();
	const struct module_cpu *cpu;
	struct module_lead lead;
	unsigned int i;
	int number;
	char *version = files_read(MODULE_DIR "/version"), *leads = module_leads();

	json_object(NULL);
	json_text("version", version ? version : "");
	json_text("mode", info.mode);
	json_number("tsc_epoch", info.epoch);
	if (step.step)
		json_number("tsc_step", step.step);
	json_array("cpus");
	for (number = 0; number < info.cpus; number++) {
		cpu = &info.cpu[number];
		if (!cpu->possible)
			continue;
		json_object(NULL);
		json_number("cpu", number);
		json_bool("serves", cpu->serves);
		if (cpu->serves) {
			json_text("source", cpu->source);
			json_text("hardware", cpu->hardware);
			json_number("tsc_khz", cpu->tsc_khz);
			json_text("tsc_kind", cpu->kind);
			json_bool("tsc_stable", cpu->stable);
		}
		if (module_lead(leads, number, &lead))
			json_number("lead_exact", lead.exact);
		for (i = 0; i < COUNT(columns); i++)
			json_number(columns[i].head, module_stat(&stats, columns[i].name, number));
		json_end();
	}
	json_end();
	json_array("pending");
	for (i = 0; i < waitings; i++) {
		json_object(NULL);
		json_text("handler", waiting[i].handler);
		json_number("timers", waiting[i].count);
		json_number("next_in", waiting[i].next);
		json_end();
	}
	json_end();
	json_text("latency_requests", info.latency);
	json_array("wrong");
	for (i = 0; i < wrongs; i++)
		json_text(NULL, wrong[i]);
	json_end();
	json_end();
	free(version);
	free(leads);
}

/* Compare two CPUs. CPUs with the same source are printed once: "CPUs 0-3: ..." */
static bool alike(const struct module_cpu *a, const struct module_cpu *b)
{
	return a->possible == b->possible && a->serves == b->serves && a->stable == b->stable &&
	       a->tsc_khz == b->tsc_khz && !strcmp(a->source, b->source) &&
	       !strcmp(a->hardware, b->hardware) && !strcmp(a->kind, b->kind);
}

static void print_sources(void)
{
	const struct module_cpu *cpu;
	int from, to;

	for (from = 0; from < info.cpus; from = to) {
		cpu = &info.cpu[from];
		for (to = from; to < info.cpus && alike(cpu, &info.cpu[to]);)
			to++;
		if (!cpu->possible)
			continue;
		if (to - from > 1)
			printf("CPU %d-%d: ", from, to - 1);
		else
			printf("CPU %d: ", from);
		if (!cpu->serves)
			printf("accepts no timers\n");
		else
			printf("source %s, %s; TSC %.3f MHz, %s, %s\n", cpu->source, cpu->hardware,
			       cpu->tsc_khz / 1000.0, cpu->kind,
			       cpu->stable ? "stable" : "unstable");
	}
}

static void print_counters(void)
{
	unsigned int i;
	int cpu;

	printf("\n%-5s", "CPU");
	for (i = 0; i < COUNT(columns); i++)
		printf(" %12s", columns[i].head);
	putchar('\n');
	for (cpu = 0; cpu < stats.cpus; cpu++) {
		if (cpu < CPUS && !info.cpu[cpu].serves)
			continue;
		printf("%-5d", cpu);
		for (i = 0; i < COUNT(columns); i++)
			printf(" %12s", commas(module_stat(&stats, columns[i].name, cpu)));
		putchar('\n');
	}
}

static void print_text(void)
{
	struct tsc_step step = step_here();
	char *version = files_read(MODULE_DIR "/version");
	size_t i;

	printf("apic_timer %s, default mode %s\n", version ? version : "(unknown)", info.mode);
	free(version);
	print_sources();
	if (step.step > 1)
		printf("TSC counts in steps of %u cycles; epoch %ld\n", step.step, info.epoch);
	else
		printf("TSC epoch %ld\n", info.epoch);
	printf("kept out of deep idle states: %s\n", info.latency);
	print_counters();
	printf("\npending%s\n", waitings ? "" : ": none");
	for (i = 0; i < waitings; i++)
		printf("  %s: %s timer%s, the next in %s cycles\n", waiting[i].handler,
		       commas(waiting[i].count), waiting[i].count == 1 ? "" : "s",
		       commas(waiting[i].next));
	for (i = 0; i < wrongs; i++)
		printf("%swrong: %s\n", i ? "" : "\n", wrong[i]);
}

static int run(int count, char **operands)
{
	(void)count;
	(void)operands;
	module_need();
	if (!module_read_info(&info) || !module_read_stats(&stats))
		fail("the files in " DEBUG_DIR " do not match version %s",
		     APIC_TIMER_VERSION);
	read_pending();
	judge();
	if (opt_json)
		print_json();
	else
		print_text();
	return wrongs ? 1 : 0;
}

const struct command status_command = {
	.name = "status",
	.summary = "Show the source of each CPU's timers, what is pending, and what went wrong",
	.about = "Counters start at zero when the module is loaded. The exit status is 1 if a line\n"
		 "begins with \"wrong\".",
	.options = options,
	.run = run,
};
