// SPDX-License-Identifier: GPL-2.0
/* Fixes of doctor --fix, which are undone at its exit. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "files.h"
#include "say.h"

#define FREQUENCY "/sys/devices/system/cpu/cpu%d/cpufreq"

/* A file that was changed, by us or by the kernel, with its former content */
struct change {
	char *path, *before;
};

static struct change *changed;
static size_t changes;
static int latency_fd = -1;

/* Have a file restored at the exit. Files are restored from the last to the first. */
static void remember(const char *path, char *before)
{
	changed = grow(changed, changes, sizeof(*changed));
	changed[changes].path = format_text("%s", path);
	changed[changes++].before = before;
}

/* Return: true if it was changed; otherwise errno has the reason. */
static bool change(const char *path, const char *text)
{
	char *before = files_read("%s", path);
	bool same = before && !strcmp(before, text);

	if (!before || same || !files_write(text, "%s", path)) {
		free(before);
		return same;
	}
	remember(path, before);
	return true;
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

/* Have a file restored that the kernel changes with the governor. */
static void remember_of(int cpu, const char *name)
{
	char *path = format_text(FREQUENCY "/%s", cpu, name);
	char *before = files_read("%s", path);

	if (before && strcmp(before, "<unsupported>"))
		remember(path, before);
	else
		free(before);
	free(path);
}

/*
 * With the governor performance, amd-pstate and intel_pstate set the preference to performance
 * and refuse any other; amd-pstate leaves it there afterwards. The governor userspace forgets its
 * frequency when it is left. Both can be restored only after the governor, so they are remembered
 * before it. The tunables of ondemand, conservative and schedutil are not restored: the kernel
 * frees them with the last policy that has such a governor.
 */
static void fix_governor_of(int cpu)
{
	char *path = format_text(FREQUENCY "/scaling_governor", cpu);
	char *governor = files_read("%s", path);

	if (!files_exist("%s", path))
		goto out;
	/* CPUs may share a policy: it is changed with the first of them. */
	if (governor && strcmp(governor, "performance")) {
		remember_of(cpu, "energy_performance_preference");
		if (!strcmp(governor, "userspace"))
			remember_of(cpu, "scaling_setspeed");
	}
	if (!change(path, "performance"))
		warn("can't change %s: %s", path, strerror(errno));
out:
	free(governor);
	free(path);
}

/* Find CPUs that are online. Return: false if the kernel does not say which. */
static bool find_online(bool *online)
{
	char *list = files_read("/sys/devices/system/cpu/online");
	bool known = files_cpulist(list ? list : "", online, CPUS);

	free(list);
	return known;
}

/* The files of a CPU that is offline are there, but the kernel refuses to read or write them. */
static void fix_governor(void)
{
	static bool online[CPUS];
	bool known = find_online(online);
	int cpu;

	for (cpu = 0; cpu < CPUS; cpu++)
		if (online[cpu] || !known)
			fix_governor_of(cpu);
}

/* Find CPUs that are online and not the patient's. Return: true if there are any. */
static bool find_others(bool *others)
{
	bool some = false;
	int cpu;

	find_online(others);
	for (cpu = 0; cpu < CPUS; cpu++) {
		others[cpu] &= !patient.cpu[cpu];
		some |= others[cpu];
	}
	return some;
}

/*
 * Return: new list of CPUs for an interrupt that has @list now: its CPUs without the patient's,
 * or, if it has the patient's *only, all other CPUs; NULL if it has none of the patient's.
 */
static char *elsewhere(const char *list, const bool *others, bool *only)
{
	static bool in[CPUS];
	bool ours = false, rest = false;
	int cpu;

	if (!files_cpulist(list, in, CPUS))
		return NULL;
	for (cpu = 0; cpu < CPUS; cpu++) {
		ours |= in[cpu] && patient.cpu[cpu];
		in[cpu] &= others[cpu];
		rest |= in[cpu];
	}
	*only = ours && !rest;
	return ours ? files_list(rest ? in : others, CPUS) : NULL;
}

/* Return: true if no device has a handler for an interrupt. It cannot occur then. */
static bool unused(const char *number)
{
	char *actions = files_read("/sys/kernel/irq/%s/actions", number);
	bool none = actions && !*actions;

	free(actions);
	return none;
}

/*
 * Return: true if the kernel does not let an interrupt be moved. 6.12 and later make the file
 * read-only; in 6.1, only a write fails. One read-only file shows that the kernel makes them so:
 * there is always that of interrupt 2, the cascade of the old controllers.
 */
static bool immovable(const char *file)
{
	char *path = files_path("%s", file);
	struct stat status;
	bool may_write;

	may_write = stat(path, &status) || (status.st_mode & 0200);
	free(path);
	return !may_write;
}

static void move_irq(const char *file, const char *list, struct irq_counts *counts)
{
	if (change(file, list))
		return;
	/* Errors for an immovable interrupt: EIO in 6.1, EPERM in 6.12. */
	if (errno == EIO || errno == EPERM) {
		counts->refused++;
		return;
	}
	counts->failed++;
	counts->error = errno;
}

/* Check one interrupt, and move it if @move. */
static void one_irq(const char *number, bool move, const bool *others, struct irq_counts *counts)
{
	char *file = format_text("/proc/irq/%s/smp_affinity_list", number);
	char *list = NULL, *rest = NULL;
	bool fixed, only = false;

	fixed = immovable(file);
	counts->known |= fixed;
	/* The kernel's timer, which no kernel lets be moved: arch/x86/kernel/time.c. */
	fixed |= !strcmp(number, "0");
	if (unused(number))
		goto out;
	/* It stays where it is, even if other CPUs are allowed for it. */
	if (fixed)
		list = files_read("/proc/irq/%s/effective_affinity_list", number);
	if (!list)
		list = files_read("%s", file);
	rest = list ? elsewhere(list, others, &only) : NULL;
	if (!rest)
		goto out;
	counts->all++;
	counts->fixed += fixed;
	counts->only += only;
	if (move && fixed)
		counts->refused++;
	else if (move)
		move_irq(file, rest, counts);
out:
	free(rest);
	free(list);
	free(file);
}

/*
 * Check all interrupts that may arrive at the patient's CPUs; move them if @move.
 * Return: whether there are other CPUs.
 */
static bool each_irq(bool move, struct irq_counts *counts)
{
	static bool others[CPUS];
	struct dirent *entry;
	DIR *directory;
	char *path;

	memset(counts, 0, sizeof(*counts));
	if (!find_others(others))
		return false;
	path = files_path("/proc/irq");
	directory = opendir(path);
	free(path);
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			one_irq(entry->d_name, move, others, counts);
	if (directory)
		closedir(directory);
	return true;
}

bool fix_count_irqs(struct irq_counts *counts)
{
	return each_irq(false, counts);
}

static void fix_irqs(void)
{
	struct irq_counts counts;

	each_irq(true, &counts);
	if (counts.refused)
		warn("drivers do not let %d of %d interrupts be moved; isolcpus=managed_irq helps for those that also have other CPUs",
		     counts.refused, counts.all);
	if (counts.failed)
		warn("can't move %d of %d interrupts: %s", counts.failed, counts.all,
		     strerror(counts.error));
}

static void fix_pages(void)
{
	if (!change(PAGES_FRACTION, PAGES_FEWEST))
		warn("can't change " PAGES_FRACTION ": %s", strerror(errno));
}

void fix_apply(enum fix fix)
{
	if (fix == FIX_IDLE)
		fix_idle();
	else if (fix == FIX_GOVERNOR)
		fix_governor();
	else if (fix == FIX_IRQS)
		fix_irqs();
	else if (fix == FIX_PAGES)
		fix_pages();
}

/* Write nothing that is there already, as by intel_pstate: a driver may refuse any write. */
static void restore(const struct change *to)
{
	char *now = files_read("%s", to->path);

	if ((!now || strcmp(now, to->before)) && !files_write(to->before, "%s", to->path))
		warn("can't restore %s to \"%s\": %s", to->path, to->before, strerror(errno));
	free(now);
}

static void fix_undo(void)
{
	if (latency_fd >= 0)
		close(latency_fd);
	latency_fd = -1;
	/* Undo from the last to the first: a file may have been changed twice. */
	while (changes) {
		restore(&changed[--changes]);
		free(changed[changes].path);
		free(changed[changes].before);
	}
}

void fix_begin(void)
{
	/*
	 * Lock a file of sysfs, not one of our own: all processes that share a sysfs share the
	 * lock. Only root can open this file; otherwise any user could block us. The lock is
	 * held until the exit.
	 */
	char *path = files_path("/sys/bus/cpu/uevent");
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	free(path);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		fail("another doctor --fix is running");
	atexit(fix_undo);
}
