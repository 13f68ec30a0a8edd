/* SPDX-License-Identifier: GPL-2.0 */
/* What a report is made of: rows of other commands, by machine. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "value.h"

enum report_engine {
	REPORT_HARDWARE,
	REPORT_VIRTUAL,		/* a virtual machine on hardware: its CPUs' own instructions */
	REPORT_EMULATED,	/* an instruction is a cycle and a nanosecond */
	REPORT_MODELLED,	/* that, and what a model of caches adds: rows of the lab's */
};

/* A machine that has been measured */
struct report_machine {
	char name[64];
	enum report_engine engine;
	struct value **row;	/* by number in report_runs */
};

/* A command whose rows a report has */
struct report_run {
	const char *file;	/* without .json */
	bool instruments;	/* needs apic_measure and root */
	bool silicon;		/* says nothing where an instruction is a cycle */
	const char *command;	/* with blanks between the words; NULL: rows of the lab's */
	const char *full, *brief;
};

extern const struct report_run report_runs[];

/* Return: the rows of a file, or NULL. */
const struct value *report_rows(const struct report_machine *machine, const char *file);

/* Write the page. @bench: what the benchmark has found, or NULL. */
void report_page(FILE *file, const struct report_machine *machine, unsigned int count,
		 const struct value *bench);

#endif
