// SPDX-License-Identifier: GPL-2.0
/*
 * What doctor --fix does, and undoes at its exit.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "files.h"
#include "say.h"

#define GOVERNOR "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor"

/* A file that was changed, and what was in it */
struct change {
	char *path, *before;
};

static struct change *changed;
static size_t changes;
static int latency_fd = -1;

static void change(const char *path, const char *text)
{
	char *before = files_read("%s", path);

	if (!before || !strcmp(before, text)) {
		free(before);
		return;
	}
	if (!files_write(text, "%s", path)) {
		/* Some interrupts can't be moved, and say so only now. */
		warn("%s stays as it is: %s", path, strerror(errno));
		free(before);
		return;
	}
	changed = grow(changed, changes, sizeof(*changed));
	changed[changes].path = format_text("%s", path);
	changed[changes++].before = before;
}

static void fix_idle(void)
{
	const int none = 0;
	char *path = files_path("/dev/cpu_dma_latency");

	if (latency_fd < 0)
		latency_fd = open(path, O_WRONLY | O_CLOEXEC);
	if (latency_fd < 0 || write(latency_fd, &none, sizeof(none)) != sizeof(none))
		warn("can't hold %s: %s", path, strerror(errno));
	free(path);
}

static void fix_governor(void)
{
	char *path;
	int cpu;

	for (cpu = 0; cpu < MODULE_CPUS; cpu++) {
		path = format_text(GOVERNOR, cpu);
		if (files_exist("%s", path))
			change(path, "performance");
		free(path);
	}
}

/* Return: the CPUs of a list without the patient's, as a list; NULL if none or all are left. */
static char *others(const char *list)
{
	static bool in[MODULE_CPUS];
	char *rest = NULL, *longer;
	bool ours = false;
	int cpu, to;

	if (!files_cpulist(list, in, MODULE_CPUS))
		return NULL;
	for (cpu = 0; cpu < MODULE_CPUS; cpu = to + 1) {
		to = cpu;
		if (!in[cpu])
			continue;
		if (patient.cpu[cpu]) {
			ours = true;
			continue;
		}
		while (to + 1 < MODULE_CPUS && in[to + 1] && !patient.cpu[to + 1])
			to++;
		longer = format_text(to > cpu ? "%s%s%d-%d" : "%s%s%d", rest ? rest : "",
				     rest ? "," : "", cpu, to);
		free(rest);
		rest = longer;
	}
	if (ours)
		return rest;
	free(rest);
	return NULL;
}

/* Go through the interrupts that could be moved; move them if so. Return: their number. */
static int each_irq(bool move)
{
	char *path = files_path("/proc/irq"), *file, *list, *rest;
	DIR *directory = opendir(path);
	struct dirent *entry;
	int count = 0;

	free(path);
	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		file = format_text("/proc/irq/%s/smp_affinity_list", entry->d_name);
		list = files_read("%s", file);
		rest = list ? others(list) : NULL;
		if (rest) {
			count++;
			if (move)
				change(file, rest);
		}
		free(rest);
		free(list);
		free(file);
	}
	if (directory)
		closedir(directory);
	return count;
}

int fix_count_irqs(void)
{
	return each_irq(false);
}

void fix_apply(enum fix fix)
{
	if (fix == FIX_IDLE)
		fix_idle();
	else if (fix == FIX_GOVERNOR)
		fix_governor();
	else if (fix == FIX_IRQS)
		each_irq(true);
}

void fix_undo(void)
{
	if (latency_fd >= 0)
		close(latency_fd);
	latency_fd = -1;
	/* From the last to the first: a file may have been changed twice. */
	while (changes) {
		changes--;
		if (!files_write(changed[changes].before, "%s", changed[changes].path))
			warn("can't undo: %s was \"%s\": %s", changed[changes].path,
			     changed[changes].before, strerror(errno));
		free(changed[changes].path);
		free(changed[changes].before);
	}
}
