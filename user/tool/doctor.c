// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer doctor: report what makes timers inexact on this machine, what it
 * costs here, and what to do about it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "doctor.h"
#include "files.h"
#include "json.h"
#include "native.h"
#include "say.h"
#include "tracing.h"
#include "tsc.h"
#include "words.h"

struct patient patient;

static bool fix;
static const char *cpus;

static const struct opt options[] = {
	OPT_FLAG('f', "fix", "fix what can be undone, until stopped or while COMMAND runs", &fix),
	OPT_TEXT('c', "cpus", "LIST", "CPUs that run timers (the isolated CPUs)",
		 &cpus),
	FILES_OPT_ROOT,
	{}
};

static const char * const levels[] = {
	[LEVEL_OK] = "ok", [LEVEL_UNKNOWN] = "unknown", [LEVEL_NOTE] = "NOTE",
	[LEVEL_WARN] = "WARN",
};

static void read_lead(void)
{
	char *leads = module_leads();
	struct module_lead lead;
	int cpu;

	for (cpu = 0; cpu < patient.info.cpus; cpu++) {
		if (!patient.info.cpu[cpu].serves || !module_lead(leads, cpu, &lead))
			continue;
		if (lead.exact > patient.lead.exact)
			patient.lead.exact = lead.exact;
		if (lead.defer > patient.lead.defer)
			patient.lead.defer = lead.defer;
	}
	free(leads);
}

/* End the program if a CPU of --cpus is not online. */
static void need_online(void)
{
	static bool online[CPUS], offline[CPUS];
	char *list = files_read("/sys/devices/system/cpu/online");
	bool known = list && files_cpulist(list, online, CPUS), some = false;
	int cpu;

	free(list);
	for (cpu = 0; known && cpu < CPUS; cpu++) {
		offline[cpu] = patient.cpu[cpu] && !online[cpu];
		some |= offline[cpu];
	}
	if (some)
		fail("doctor: CPUs of --cpus that are not online: %s", files_list(offline, CPUS));
}

static void choose_cpus(void)
{
	char *isolated = NULL;
	int cpu;

	if (!cpus) {
		isolated = files_read("/sys/devices/system/cpu/isolated");
		files_cpulist(isolated ? isolated : "", patient.cpu, CPUS);
	} else if (!files_cpulist(cpus, patient.cpu, CPUS)) {
		fail("doctor: --cpus takes a list of CPUs such as 0-3,8, not \"%s\"", cpus);
	}
	free(isolated);
	if (cpus)
		need_online();
	for (cpu = 0; cpu < CPUS; cpu++)
		patient.some_cpus |= patient.cpu[cpu];
}

static void examine(void)
{
	static bool allowed[CPUS];

	tsc_allowed(allowed, CPUS);
	patient.loaded = module_loaded();
	patient.readable = patient.loaded && module_read_info(&patient.info) &&
			   module_read_stats(&patient.stats);
	if (patient.readable)
		read_lead();
	choose_cpus();
	patient.measured = native_measure(patient.cpu, allowed);
}

static void print_json(const struct finding *findings, unsigned int count)
{
	unsigned int i;

	json_object(NULL);
	json_text("cpu", native.name);
	json_text("hypervisor", native.hypervisor);
	json_number("tsc_khz", native.khz);
	json_text("looked_at", native.looked ? native.looked : "");
	json_array("findings");
	for (i = 0; i < count; i++) {
		json_object(NULL);
		json_text("id", checks[i].id);
		json_text("level", findings[i].level == LEVEL_WARN ? "warn" :
			  findings[i].level == LEVEL_NOTE ? "note" : levels[findings[i].level]);
		json_text("finding", findings[i].text);
		json_text("read", findings[i].read);
		if (findings[i].cost >= 0) {
			json_number("cost_cycles", findings[i].cost);
			json_text("cost_of", findings[i].cost_of);
		} else {
			json_null("cost_cycles");
		}
		if (findings[i].remedy)
			json_text("remedy", findings[i].remedy);
		json_bool("fixable", checks[i].fix != FIX_NONE);
		json_end();
	}
	json_end();
	json_end();
}

static void print_text(const struct finding *findings, unsigned int count)
{
	const struct finding *f;
	unsigned int i;

	if (patient.measured)
		printf("%s%s%s; TSC %.3f MHz; checked CPUs %s\n", native.name,
		       *native.hypervisor ? ", guest of " : "", native_hypervisor(),
		       native.khz / 1000.0, native.looked ? native.looked : "unknown");
	for (i = 0; i < count; i++) {
		f = &findings[i];
		printf("%-7s %-16s %s\n", levels[f->level], checks[i].id, f->text);
		if (f->level < LEVEL_NOTE)
			continue;
		printf("%25sread: %s\n", "", f->read);
		if (f->cost >= 0)
			printf("%25scost: %s cycles, %s\n", "", commas(f->cost), f->cost_of);
		if (f->remedy)
			printf("%25sremedy: %s\n", "", f->remedy);
	}
}

/* Return: the exit status, also after a WARN: that has been printed, and fixed where possible. */
static int wait_for_signal(void)
{
	fflush(stdout);
	fprintf(opt_json ? stderr : stdout,
		"fixed until this program is stopped (Ctrl-C)\n");
	fflush(stdout);
	while (!tracing_stopped)
		tracing_sleep(3600);
	return 0;
}

static int run(int operands, char **operand)
{
	static struct finding findings[32];
	unsigned int i, count, worst = LEVEL_OK;

	if (operands && !fix)
		fail("doctor: COMMAND requires --fix");
	examine();
	for (count = 0; checks[count].id; count++) {
		findings[count].cost = -1;
		finds(&findings[count], LEVEL_UNKNOWN, "not known");
		checks[count].look(&findings[count]);
		if (findings[count].level > worst)
			worst = findings[count].level;
	}
	if (opt_json)
		print_json(findings, count);
	else
		print_text(findings, count);
	if (!fix)
		return worst == LEVEL_WARN ? 1 : 0;
	if (!*files_root && geteuid())
		fail("--fix needs root: run it with sudo");
	tracing_signals();
	fix_begin();
	for (i = 0; i < count; i++)
		if (findings[i].level >= LEVEL_NOTE)
			fix_apply(checks[i].fix);
	return *operand ? tracing_run(operand) : wait_for_signal();
}

const struct command doctor_command = {
	.name = "doctor",
	.operands = "[COMMAND...]",
	.most = -1,
	.summary = "Find what makes timers inexact on this machine, what it costs, and a remedy",
	.about = "Works without the module and without root, with fewer checks. Costs are measured here.\n"
		 "The exit status is 1 if there is a WARN; with --fix it is that of COMMAND, or 0 without\n"
		 "one. With --fix, deep idle states are avoided, the frequency governor, the affinity of\n"
		 "interrupts and the number of free pages that a CPU keeps are changed, and all is\n"
		 "restored at exit, except that tunables of a governor return to their defaults. Options\n"
		 "must precede COMMAND: the arguments after its name are its own.",
	.options = options,
	.run = run,
};
