/* SPDX-License-Identifier: GPL-2.0 */
/* The module's state in sysfs and debugfs. */
#ifndef MODULE_H
#define MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "files.h"

/* A line of the file "info" */
struct module_cpu {
	bool possible, serves;		/* serves: accepts timers */
	char source[16], hardware[64], kind[16];
	unsigned long tsc_khz;
	bool stable;
};

struct module_info {
	struct module_cpu cpu[CPUS];
	int cpus;		/* 1 + the highest number */
	long epoch;
	char mode[16];
	char *latency;		/* allocated */
};

/* Leads that the module has learnt on a CPU, TSC cycles */
struct module_lead {
	uint64_t exact, defer, steps;
};

struct module_stats {
	char *text;
	int cpus;
};

/* End the program, with the reason, if the module's files cannot be read. */
void module_need(void);
/* Return: whether the module is loaded. */
bool module_loaded(void);
/* Return: NULL, or the loaded module's version if it is not this program's. */
const char *module_other_version(void);

/* Read the file "info". @info is zero, or from an earlier call. */
bool module_read_info(struct module_info *info);
/* Return: the allocated text of the file "lead", or NULL. */
char *module_leads(void);
/* Find a CPU's leads in such a text, or NULL. */
bool module_lead(const char *leads, int cpu, struct module_lead *lead);
bool module_read_stats(struct module_stats *stats);
/* Return: a counter of a CPU, -1 if there is none; cpu -1: of all CPUs. */
int64_t module_stat(const struct module_stats *stats, const char *name, int cpu);
/* Return: a numeric parameter, or @otherwise. */
long module_parameter(const char *name, long otherwise);
/* Return: the TSC's rate according to the module, or 0. */
unsigned long module_tsc_khz(void);

#endif
