// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer report: run all measurements, and make a page of them.
 *
 * The other commands run one after the other, as users run them, and their
 * output with --json is kept in DIR/rows/NAME. Rows of several machines can
 * thus be drawn together, and drawn again without measuring.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "files.h"
#include "output.h"
#include "report.h"
#include "say.h"

#define WORDS		40
#define MACHINES	16

/*
 * The chain's real-time priority would leave no CPU time to a load at ordinary priority,
 * unless the load forks.
 */
#define LOAD	"if command -v hackbench; then exec hackbench -g 1 -f 5 -l 1000000000; fi; " \
		"for cpu in $(seq $(nproc || echo 1)); do while :; do /bin/true; done & done; wait"

static bool brief, draw;
static long shots;	/* 0: the number of each command below */
static const char *name = "machine", *bench;

static const struct opt options[] = {
	OPT_FLAG('b', "brief", "measure less, in minutes", &brief),
	OPT_NUMBER('s', "shots", "N", 1, 10000000,
		   "maximum number of shots or expiries of a series", &shots),
	OPT_FLAG('d', "draw", "measure nothing; draw the rows in DIR", &draw),
	OPT_TEXT('n', "name", "NAME",
		 "name of this machine, a folder in DIR/rows (machine)", &name),
	OPT_FILE(0, "bench", "FILE", "also draw the rows of the benchmark's FILE", &bench),
	{}
};

#define PERIODIC(file, more) \
	{ file, true, false, "accuracy periodic " more, "--count 3000", "--count 1000" }

const struct report_run report_runs[] = {
	{ "doctor", false, false, "doctor", "", "" },
	{ "clocks", false, true, "clocks", "", "--rounds 1000" },
	{ "cycles", false, true, "cycles", "", "--repeats 50 --runs 5 --wait 5" },
	{ "memory", false, true, "memory", "", "--runs 5 --max 8192 --wait 5" },
	{ "pio", true, true, "pio", "", "" },
	{ "loop", true, false, "accuracy loop", "--count 20000", "--count 5000" },
	{ "loop-walk", true, true, "accuracy loop --walk 512", "--count 5000", "--count 1000" },
	{ "loop-flush", true, true, "accuracy loop --flush", "--count 20000", "--count 5000" },
	PERIODIC("100-nop", "--period 100 --behind nop"),
	PERIODIC("100-cpuid", "--period 100 --behind cpuid"),
	PERIODIC("15-nop", "--period 15 --behind nop"),
	PERIODIC("15-cpuid", "--period 15 --behind cpuid"),
	PERIODIC("100-nop-walk", "--period 100 --behind nop --walk 512"),
	PERIODIC("100-nop-flush", "--period 100 --behind nop --flush"),
	PERIODIC("100-nop-exact", "--period 100 --behind nop --mode exact"),
	PERIODIC("100-cpuid-exact", "--period 100 --behind cpuid --mode exact"),
	PERIODIC("15-nop-exact", "--period 15 --behind nop --mode exact"),
	PERIODIC("15-cpuid-exact", "--period 15 --behind cpuid --mode exact"),
	PERIODIC("100-nop-walk-exact", "--period 100 --behind nop --walk 512 --mode exact"),
	PERIODIC("100-nop-counted", "--period 100 --behind nop --keep none"),
	{ "chain", true, false, "chain", "--shots 10000", "--shots 1000 --most 520" },
	{ "chain-load", true, false, "chain --most 220 --load", "--shots 10000", "--shots 1000" },
	/* Data from the lab's plug-ins for QEMU: tools/lab/run/modelled.py and ports.py */
	{ .file = "model" },
	{ .file = "loop-off" },
	{ .file = "100-nop-off" },
	{ .file = "100-cpuid-off" },
	{ .file = "15-nop-off" },
	{ .file = "15-cpuid-off" },
	{ .file = "100-nop-walk-l1" },
	{ .file = "100-nop-walk-l3" },
	{ .file = "15-nop-stored" },
	{ .file = "15-nop-counted" },
	{ .file = "ports" },
	{}
};

const struct value *report_rows(const struct report_machine *machine, const char *file)
{
	unsigned int i;

	for (i = 0; report_runs[i].file; i++)
		if (!strcmp(report_runs[i].file, file))
			return machine->row[i];
	return NULL;
}

static void make_directory(const char *path)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		fail("can't create the folder %s: %s", path, strerror(errno));
}

/* Split into words, with a NULL behind the last. Return: number of words. */
static unsigned int split(char *text, char **words, unsigned int count)
{
	char *word;

	for (word = strtok(text, " "); word && count < WORDS; word = strtok(NULL, " "))
		words[count++] = word;
	return count;
}

/* Take fewer shots than a command would. */
static void limit_shots(char **words, unsigned int count, char *least)
{
	unsigned int i;

	for (i = 0; i + 1 < count; i++)
		if ((!strcmp(words[i], "--shots") || !strcmp(words[i], "--count")) &&
		    strtol(words[i + 1], NULL, 10) > shots)
			words[i + 1] = least;
}

/* Run this program once more. Return: true if its rows are there. */
static bool measure(const struct report_run *run, const char *folder)
{
	char *path = format_text("%s/%s.json", folder, run->file);
	char *fresh = format_text("%s.new", path);
	char *command = format_text("%s", run->command);
	char *rest = format_text("%s", brief ? run->brief : run->full);
	char *least = format_text("%ld", shots);
	char *words[WORDS + 4] = { "apic-timer" };
	unsigned int count = split(command, words, 1);
	pid_t child, parent = getpid();
	int status, output;

	/* The only argument that contains blanks. */
	if (!strcmp(words[count - 1], "--load"))
		words[count++] = LOAD;
	count = split(rest, words, count);
	if (shots)
		limit_shots(words, count, least);
	words[count++] = "--json";
	words[count] = NULL;
	output = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (output < 0)
		fail("can't write %s: %s", fresh, strerror(errno));
	progress_end();
	child = fork();
	if (!child) {
		/* An orphaned measurement would disturb the next one. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(127);
		dup2(output, STDOUT_FILENO);
		execv("/proc/self/exe", words);
		warn("can't run /proc/self/exe: %s", strerror(errno));
		_exit(127);
	}
	close(output);
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("can't run %s: %s", run->command, strerror(errno));
	/* 1 is not a failure: it means that something was found. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		unlink(fresh);
		status = -1;
	} else if (rename(fresh, path)) {
		fail("can't write %s: %s", path, strerror(errno));
	}
	free(path);
	free(fresh);
	free(command);
	free(rest);
	free(least);
	return status >= 0;
}

static struct value *load(const char *path)
{
	char *text = files_read("%s", path);
	struct value *value;

	if (!text)
		return NULL;
	value = value_parse(text);
	if (!value)
		warn("%s is not JSON", path);
	free(text);
	return value;
}

static enum report_engine engine_of(const struct value *doctor, const struct value *model)
{
	const char *hypervisor = value_text(doctor, "hypervisor");

	if (model)
		return REPORT_MODELLED;
	if (!value_has(doctor, "hypervisor"))
		return REPORT_UNKNOWN;
	if (!strncmp(hypervisor, "TCG", 3))
		return REPORT_EMULATED;
	return *hypervisor ? REPORT_VIRTUAL : REPORT_HARDWARE;
}

/*
 * Make all rows of this name again, also those that an earlier run has left. Return: whether there
 * are any.
 */
static bool measure_all(const char *folder)
{
	bool there = !access("/dev/apic_measure", R_OK), emulated = false, any = false;
	const struct report_run *run;
	struct value *doctor;
	char *path;

	if (!there)
		warn("no module apic_measure, or no root: measuring only what needs neither");
	for (run = report_runs; run->file; run++) {
		if (!run->command)
			continue;
		path = format_text("%s/%s.json", folder, run->file);
		unlink(path);
		if ((!run->instruments || there) && !(run->silicon && emulated)) {
			fprintf(stderr, "apic-timer %s\n", run->command);
			if (measure(run, folder))
				any = true;
			else
				warn("no rows from apic-timer %s", run->command);
		}
		if (run == report_runs) {
			doctor = load(path);
			emulated = engine_of(doctor, NULL) == REPORT_EMULATED;
			value_free(doctor);
		}
		free(path);
	}
	return any;
}

static int no_dot(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static unsigned int load_machines(const char *rows, struct report_machine *machines)
{
	struct dirent **entries;
	int i, found = scandir(rows, &entries, no_dot, alphasort);
	unsigned int count = 0, j;
	char *path;

	if (found < 0)
		fail("can't read %s: %s", rows, strerror(errno));
	for (i = 0; i < found; i++) {
		struct report_machine *machine = &machines[count];

		if (count < MACHINES && strlen(entries[i]->d_name) < sizeof(machine->name)) {
			strcpy(machine->name, entries[i]->d_name);
			machine->row = calloc(COUNT(report_runs), sizeof(*machine->row));
			if (!machine->row)
				fail("out of memory");
			for (j = 0; report_runs[j].file; j++) {
				path = format_text("%s/%s/%s.json", rows, entries[i]->d_name,
						   report_runs[j].file);
				machine->row[j] = load(path);
				free(path);
			}
			machine->engine = engine_of(report_rows(machine, "doctor"),
						    report_rows(machine, "model"));
			count++;
		} else {
			warn("%s/%s is not drawn: %s", rows, entries[i]->d_name,
			     count < MACHINES ? "its name is too long" : "too many machines");
		}
		free(entries[i]);
	}
	free(entries);
	return count;
}

static int run(int operands, char **operand)
{
	char *rows = format_text("%s/rows", operand[0]), *folder, *path;
	static struct report_machine machines[MACHINES];
	struct value *benchmark = NULL;
	unsigned int count;

	(void)operands;
	if (!*name || strchr(name, '/') || *name == '.' || strlen(name) >= sizeof(machines->name))
		fail("report: --name takes a name without slashes, not \"%s\"", name);
	make_directory(operand[0]);
	make_directory(rows);
	if (!draw) {
		folder = format_text("%s/%s", rows, name);
		make_directory(folder);
		if (!measure_all(folder))
			fail("report: nothing was measured, so %s/index.html is not written",
			     operand[0]);
		free(folder);
	}
	count = load_machines(rows, machines);
	if (!count)
		fail("no rows in %s", rows);
	if (bench) {
		benchmark = load(bench);
		if (!benchmark)
			fail("can't read %s", bench);
	}
	path = format_text("%s/index.html", operand[0]);
	report_page(output_open(path), machines, count, benchmark);
	output_close();
	if (opt_json)
		printf("{\"page\":\"index.html\",\"machines\":%u}\n", count);
	else
		printf("%s\n", path);
	return 0;
}

const struct command report_command = {
	.name = "report",
	.operands = "DIR",
	.least = 1,
	.most = 1,
	.summary = "Measure all that this machine allows, and make a page of it",
	.about = "The page is DIR/index.html: one file, for any browser. Each figure is next to the\n"
		 "papers' own, with what may be concluded from it on the machine that it is from.\n"
		 "Rows are kept in DIR/rows; those of other machines there are also drawn.",
	.options = options,
	.run = run,
};
