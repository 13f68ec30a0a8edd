/* SPDX-License-Identifier: GPL-2.0 */
/* Data of a report: rows of other commands, by machine. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "value.h"

enum report_engine {
	REPORT_HARDWARE,
	REPORT_VIRTUAL,		/* a virtual machine on hardware, with native instructions */
	REPORT_EMULATED,	/* an instruction is a cycle and a nanosecond */
	REPORT_MODELLED,	/* emulated, plus the cost of a model of caches: rows of the lab */
	REPORT_UNKNOWN,		/* there are no rows of doctor */
	REPORT_ENGINES,
};

/* A machine that has been measured */
struct report_machine {
	char name[64];
	enum report_engine engine;
	struct value **row;	/* by number in report_runs */
};

/* A command whose rows are part of a report */
struct report_run {
	const char *file;	/* without .json */
	bool instruments;	/* needs apic_measure and root */
	bool silicon;		/* meaningless where an instruction is a cycle */
	const char *command;	/* words separated by blanks; NULL: rows of the lab */
	const char *full, *brief;
};

extern const struct report_run report_runs[];

/* Return: the rows of a file, or NULL. */
const struct value *report_rows(const struct report_machine *machine, const char *file);

/* Write the page. @bench: results of the benchmark, or NULL. */
void report_page(FILE *file, const struct report_machine *machine, unsigned int count,
		 const struct value *bench);

#endif
