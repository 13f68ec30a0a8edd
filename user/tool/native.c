// SPDX-License-Identifier: GPL-2.0
/* Measurements of a CPU that a process can make without the module. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "native.h"
#include "say.h"
#include "tsc.h"

#define MSR_SMI_COUNT	0x34
#define SLICE_MS	2
#define SLEEPS		40
#define CLOCK_READS	1000
#define MOST		16	/* CPUs that are measured, unless chosen */

struct native native;

static const struct {
	const char *name;
	int64_t *value;
} numbers[] = {
	{ "invariant", &native.invariant },
	{ "deadline", &native.deadline },
	{ "khz", &native.khz },
	{ "step", &native.step },
	{ "gap", &native.gap },
	{ "gap_switched", &native.gap_switched },
	{ "gaps", &native.gaps },
	{ "gap_cpu", &native.gap_cpu },
	{ "smis", &native.smis },
	{ "wake", &native.wake },
	{ "wake_awake", &native.wake_awake },
	{ "core_slept", &native.core_slept },
	{ "core_busy", &native.core_busy },
	{ "clock", &native.clock },
	{ "tai", &native.tai },
};

static bool read_saved(void)
{
	char *text = files_read("/native"), *line, name[32], word[64];
	unsigned int i;

	if (!text)
		return false;
	native.smis = -1;
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (sscanf(line, "%31s %63[^\n]", name, word) != 2)
			continue;
		for (i = 0; i < COUNT(numbers); i++)
			if (!strcmp(name, numbers[i].name))
				*numbers[i].value = strtoll(word, NULL, 0);
		if (!strcmp(name, "vendor"))
			snprintf(native.vendor, sizeof(native.vendor), "%.15s", word);
		else if (!strcmp(name, "hypervisor"))
			snprintf(native.hypervisor, sizeof(native.hypervisor), "%.15s", word);
		else if (!strcmp(name, "name"))
			snprintf(native.name, sizeof(native.name), "%s", word);
		else if (!strcmp(name, "looked"))
			native.looked = format_text("%s", word);
		else if (!strcmp(name, "residues"))
			snprintf(native.residues, sizeof(native.residues), "%s", word);
	}
	free(text);
	return true;
}

static void ask_cpuid(void)
{
	unsigned int words[12], a, b, c, d, i;

	__get_cpuid(0, &a, &words[0], &words[2], &words[1]);
	memcpy(native.vendor, words, 12);
	if (__get_cpuid(1, &a, &b, &c, &d)) {
		native.deadline = c >> 24 & 1;
		if (c >> 31 & 1) {
			__cpuid(0x40000000, a, words[0], words[1], words[2]);
			memcpy(native.hypervisor, words, 12);
			if (!*native.hypervisor)
				strcpy(native.hypervisor, "unknown");
		}
	}
	if (__get_cpuid(0x80000007, &a, &b, &c, &d))
		native.invariant = d >> 8 & 1;
	if (__get_cpuid(0x80000000, &a, &b, &c, &d) && a >= 0x80000004) {
		for (i = 0; i < 3; i++)
			__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1],
				    &words[4 * i + 2], &words[4 * i + 3]);
		snprintf(native.name, sizeof(native.name), "%.48s", (char *)words);
	}
}

/* Return: number of SMIs of a CPU since its reset, -1 if it cannot be read. */
static int64_t smi_count(int cpu)
{
	char *path = format_text("/dev/cpu/%d/msr", cpu);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t value;
	ssize_t got;

	free(path);
	if (fd < 0)
		return -1;
	got = pread(fd, &value, sizeof(value), MSR_SMI_COUNT);
	close(fd);
	return got == sizeof(value) ? (int64_t)(value & UINT32_MAX) : -1;
}

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw + usage.ru_nvcsw;
}

/* Look for gaps, in which a CPU did not run this program, for 100 ms. */
static void watch(int cpu)
{
	uint64_t slice = native.khz * SLICE_MS;
	struct tsc_gaps gaps;
	long before;
	int i;

	for (i = 0; i < 100 / SLICE_MS; i++) {
		before = switches();
		gaps = tsc_gaps_measure(slice, native.khz / 100);
		native.gaps += gaps.count;
		if (switches() != before) {
			if ((int64_t)gaps.longest > native.gap_switched)
				native.gap_switched = gaps.longest;
		} else if ((int64_t)gaps.longest > native.gap) {
			native.gap = gaps.longest;
			native.gap_cpu = cpu;
		}
	}
}

/* Measure by how many TSC cycles a sleep of 2 ms ends too late: the median */
static int64_t wake_late(void)
{
	struct timespec wait = { 0, 2000000 };
	uint64_t late[SLEEPS], start, asleep = 2 * native.khz;
	unsigned int i;

	for (i = 0; i < SLEEPS; i++) {
		start = tsc_read();
		nanosleep(&wait, NULL);
		late[i] = tsc_read() - start;
		late[i] = late[i] > asleep ? late[i] - asleep : 0;
	}
	return tsc_quantile(late, SLEEPS, 50);
}

static void measure_wake(void)
{
	/* The kernel may end a sleep as much later; COMMAND of "doctor --fix" inherits it. */
	int slack = prctl(PR_GET_TIMERSLACK);
	int32_t none = 0;
	int fd;

	prctl(PR_SET_TIMERSLACK, 1);
	native.wake = wake_late();
	native.wake_awake = -1;
	fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, &none, sizeof(none)) == sizeof(none))
			native.wake_awake = wake_late();
		close(fd);
	}
	prctl(PR_SET_TIMERSLACK, slack);
}

static void measure_core(void)
{
	struct timespec wait = { 0, 20000000 };
	uint64_t slept[8], end;
	unsigned int i;

	for (i = 0; i < COUNT(slept); i++) {
		nanosleep(&wait, NULL);
		slept[i] = tsc_chain(1000);
	}
	native.core_slept = tsc_quantile(slept, COUNT(slept), 50) / 16;
	end = tsc_read() + 20 * native.khz;
	while (tsc_read() < end)
		;
	native.core_busy = tsc_per_core_cycle() * 1000;
}

/* Disturbances make a read longer, never shorter. */
static void measure_clock(void)
{
	uint64_t start, took, least = UINT64_MAX;
	struct timespec now;
	unsigned int i;

	for (i = 0; i < CLOCK_READS; i++) {
		start = tsc_read();
		clock_gettime(CLOCK_MONOTONIC, &now);
		took = tsc_read() - start;
		if (took < least)
			least = took;
	}
	native.clock = least;
}

/* Measure a CPU from a process that is bound to it */
static void measure_cpu(int cpu, size_t *length, bool *can_count)
{
	struct tsc_step step;
	int64_t before, after;

	progress("looking for gaps on CPU %d", cpu);
	step = tsc_step_measure();
	if (step.step > native.step)
		native.step = step.step;
	if (*length < sizeof(native.residues) - 8)
		*length += sprintf(native.residues + *length, "%s%u", *length ? ", " : "",
				   step.residue);
	before = *can_count ? smi_count(cpu) : -1;
	watch(cpu);
	after = *can_count ? smi_count(cpu) : -1;
	if (before < 0 || after < 0)
		*can_count = false;
	else
		native.smis += after - before;
}

/* Measure the CPUs that matter to timers, and others as long as there is time. */
static void measure_cpus(const bool *first, const bool *others)
{
	static bool looked[CPUS];
	/* Only Intel has this counter; others may have another register there. */
	bool can_count = !strcmp(native.vendor, "GenuineIntel") && !*native.hypervisor;
	int i, cpu, done = 0, bound = -1;
	size_t length = 0;

	for (i = 0; i < 2 * CPUS; i++) {
		cpu = i % CPUS;
		if (i < CPUS ? !first[cpu] : !others[cpu] || looked[cpu] || done >= MOST)
			continue;
		/* A process may be bound to an isolated CPU, although it is not given one. */
		if (!tsc_may_run(cpu) || !tsc_pin(cpu))
			continue;
		measure_cpu(cpu, &length, &can_count);
		looked[cpu] = true;
		if (!done++)
			bound = cpu;
	}
	if (!done || !can_count)
		native.smis = -1;
	native.looked = files_list(looked, CPUS);
	/* Measurements of only one CPU are made on the first. */
	if (done)
		tsc_pin(bound);
}

/* Read the other clock between two readings of the one: fails only if a clock is set meanwhile. */
static void ask_tai(void)
{
	struct timespec before, tai, after;
	int tries;

	for (tries = 0; tries < 10; tries++) {
		clock_gettime(CLOCK_REALTIME, &before);
		clock_gettime(CLOCK_TAI, &tai);
		clock_gettime(CLOCK_REALTIME, &after);
		if (before.tv_sec == after.tv_sec && after.tv_nsec >= before.tv_nsec)
			break;
	}
	native.tai = tai.tv_sec - before.tv_sec;
}

const char *native_hypervisor(void)
{
	static const struct {
		const char *vendor, *name;
	} known[] = {
		{ "KVMKVMKVM", "KVM" },
		{ "Linux KVM Hv", "KVM" },
		{ "TCGTCGTCGTCG", "QEMU (TCG)" },
		{ "Microsoft Hv", "Hyper-V" },
		{ "VMwareVMware", "VMware" },
		{ "XenVMMXenVMM", "Xen" },
		{ "VBoxVBoxVBox", "VirtualBox" },
		{ "bhyve bhyve ", "bhyve" },
		{ "ACRNACRNACRN", "ACRN" },
	};
	unsigned int i;

	for (i = 0; i < COUNT(known); i++)
		if (!strcmp(native.hypervisor, known[i].vendor))
			return known[i].name;
	return native.hypervisor;
}

bool native_measure(const bool *first, const bool *others)
{
	struct tsc_cpus own;

	memset(&native, 0, sizeof(native));
	if (*files_root)
		return read_saved();
	own = tsc_cpus_get();
	ask_cpuid();
	native.khz = tsc_khz_measure();
	native.step = 1;
	measure_cpus(first, others);
	measure_wake();
	measure_core();
	measure_clock();
	ask_tai();
	progress_end();
	/* A command that doctor --fix runs must not stay on one CPU. */
	tsc_cpus_set(0, &own);
	tsc_cpus_free(&own);
	return true;
}
