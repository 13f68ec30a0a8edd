// SPDX-License-Identifier: GPL-2.0
/* Read the module's state in sysfs and debugfs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apic_version.h"
#include "files.h"
#include "module.h"
#include "say.h"
#include "words.h"

bool module_loaded(void)
{
	return files_exist(MODULE_DIR);
}

const char *module_other_version(void)
{
	static char *version;

	free(version);
	version = files_read(MODULE_DIR "/version");
	return version && strcmp(version, APIC_TIMER_VERSION) ? version : NULL;
}

void module_need(void)
{
	char *text;
	int error;

	if (!module_loaded())
		fail("the module apic_timer is not loaded: sudo modprobe apic_timer");
	text = files_read(DEBUG_DIR "/info");
	if (text) {
		free(text);
		return;
	}
	error = errno;
	if (!*files_root && geteuid())
		fail("only root can read " DEBUG_DIR ": run it with sudo");
	if (!files_exist("/sys/kernel/debug/tracing") && !files_exist(DEBUG_DIR))
		fail("debugfs is not mounted: mount -t debugfs none /sys/kernel/debug");
	if (module_other_version())
		fail("version mismatch: the module is %s, this program %s: no " DEBUG_DIR "/info",
		     module_other_version(), APIC_TIMER_VERSION);
	fail("can't read " DEBUG_DIR "/info: %s", strerror(error));
}

/* Copy the text between two places, as far as there is room. */
static void copy(char *to, size_t size, const char *from, const char *end)
{
	snprintf(to, size, "%.*s", (int)(end - from), from);
}

/* "cpu 0: source proxy, one-shot LAPIC timer, xAPIC, TSC 999999 kHz, plain, stable" */
static void read_cpu(const char *line, struct module_info *info)
{
	const char *source, *hardware, *tsc, *end = line + strcspn(line, "\n");
	char kind[16], stable[16];
	struct module_cpu *cpu;
	int number;

	if (sscanf(line, "cpu %d:", &number) != 1 || number < 0 || number >= CPUS)
		return;
	cpu = &info->cpu[number];
	cpu->possible = true;
	if (number >= info->cpus)
		info->cpus = number + 1;
	source = strstr(line, ": source ");
	tsc = strstr(line, ", TSC ");
	if (!source || !tsc || source > tsc || tsc > end)
		return;
	source += strlen(": source ");
	hardware = strstr(source, ", ");
	copy(cpu->source, sizeof(cpu->source), source, hardware);
	if (hardware < tsc)
		copy(cpu->hardware, sizeof(cpu->hardware), hardware + 2, tsc);
	if (sscanf(tsc, ", TSC %lu kHz, %15[^,], %15s", &cpu->tsc_khz, kind, stable) != 3)
		return;
	snprintf(cpu->kind, sizeof(cpu->kind), "%s", kind);
	cpu->stable = !strcmp(stable, "stable");
	cpu->serves = true;
}

bool module_read_info(struct module_info *info)
{
	char *text = files_read(DEBUG_DIR "/info"), *line;

	free(info->latency);
	memset(info, 0, sizeof(*info));
	info->latency = format_text("%s", "");
	if (!text)
		return false;
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		read_cpu(line, info);
		sscanf(line, "TSC epoch: %ld", &info->epoch);
		sscanf(line, "default mode: %15s", info->mode);
		if (!strncmp(line, "latency requests: ", 18)) {
			free(info->latency);
			info->latency = format_text("%s", line + 18);
		}
	}
	free(text);
	return info->cpus > 0;
}

/* Get the number after "; NAME " or ", NAME " in a line of the file "lead" */
static uint64_t named(const char *line, const char *name)
{
	const char *end = line + strcspn(line, "\n"), *at = line;
	size_t length = strlen(name);

	for (; (at = strstr(at, name)) && at < end; at += length)
		if (at > line && at[-1] == ' ' && at[length] == ' ')
			return strtoull(at + length, NULL, 10);
	return 0;
}

char *module_leads(void)
{
	return files_read(DEBUG_DIR "/lead");
}

bool module_lead(const char *leads, int cpu, struct module_lead *lead)
{
	char *name = format_text("cpu %d:", cpu), *line;

	memset(lead, 0, sizeof(*lead));
	line = leads ? strstr(leads, name) : NULL;
	if (line) {
		lead->exact = named(line, "exact");
		lead->defer = named(line, LEAD_DEFER);
		lead->steps = named(line, "steps");
	}
	free(name);
	return line;
}

bool module_read_stats(struct module_stats *stats)
{
	const char *at;

	memset(stats, 0, sizeof(*stats));
	stats->text = files_read(DEBUG_DIR "/stats");
	if (!stats->text)
		return false;
	for (at = stats->text; *at && *at != '\n'; at++)
		if (*at == ' ' && at[1] != ' ' && at[1] != '\n')
			stats->cpus++;
	return true;
}

int64_t module_stat(const struct module_stats *stats, const char *name, int cpu)
{
	size_t length = strlen(name);
	uint64_t number, sum = 0;
	const char *at;
	char *end;
	int column;

	for (at = stats->text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, name, length) || at[length] != ' ')
			continue;
		at += length;
		for (column = 0; column < stats->cpus; column++, at = end) {
			number = strtoull(at, &end, 10);
			if (end == at)
				break;
			if (column == cpu)
				return number;
			sum += number;
		}
		return cpu < 0 ? (int64_t)sum : -1;
	}
	return -1;
}

long module_parameter(const char *name, long otherwise)
{
	return files_number(otherwise, PARAMETER_DIR "/%s", name);
}

unsigned long module_tsc_khz(void)
{
	static struct module_info info;
	int cpu;

	if (!module_read_info(&info))
		return 0;
	for (cpu = 0; cpu < info.cpus; cpu++)
		if (info.cpu[cpu].serves)
			return info.cpu[cpu].tsc_khz;
	return 0;
}
