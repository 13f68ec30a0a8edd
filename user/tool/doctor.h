/* SPDX-License-Identifier: GPL-2.0 */
/* The checks of doctor, and what it can fix until its exit. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "module.h"

enum level {
	LEVEL_OK,
	LEVEL_UNKNOWN,	/* could not be read */
	LEVEL_NOTE,	/* a fact that cannot be changed, or need not be */
	LEVEL_WARN,	/* makes handlers late, or would */
};

struct finding {
	enum level level;
	char *text;
	const char *read;	/* the files, or the instruction */
	int64_t cost;		/* TSC cycles measured here, -1: none */
	const char *cost_of;	/* what has this cost */
	const char *remedy;
};

enum fix { FIX_NONE, FIX_IDLE, FIX_GOVERNOR, FIX_IRQS, FIX_PAGES };

/* The higher, the fewer free pages a CPU keeps; 0: as many as the kernel chooses */
#define PAGES_FRACTION	"/proc/sys/vm/percpu_pagelist_high_fraction"
/* So high that a CPU keeps as few as possible */
#define PAGES_FEWEST	"1048576"

struct check {
	const char *id;		/* stable */
	enum fix fix;		/* what --fix does about it */
	void (*look)(struct finding *finding);
};

/* Data that was read before the checks */
struct patient {
	bool loaded, readable;	/* the module; its files in debugfs */
	bool measured;		/* native is filled in */
	struct module_info info;
	struct module_stats stats;
	/* The highest of all CPUs, TSC cycles */
	struct module_lead lead;
	bool cpu[CPUS];		/* CPUs of the timers */
	bool some_cpus;		/* there are such CPUs, by --cpus or isolated */
};

extern struct patient patient;

/* Ends with a NULL id. */
extern const struct check checks[];

/* Set the text of a finding. */
void finds(struct finding *finding, enum level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Keep other instances of doctor from fixing, and undo at the exit what is fixed from now on. */
void fix_begin(void);
/* Apply a fix that can be undone. */
void fix_apply(enum fix fix);

/* Numbers of interrupts that may arrive at the patient's CPUs */
struct irq_counts {
	int all;
	bool known;	/* the kernel reports which can be moved */
	int fixed;	/* known to be immovable */
	int only;	/* arrive at no other CPUs, by choice of an administrator or a driver */
	/* Interrupts that could not be moved */
	int refused;	/* by the kernel, for their drivers */
	int failed;	/* for another reason */
	int error;	/* the last such reason */
};

/* Return: whether there are other CPUs. */
bool fix_count_irqs(struct irq_counts *counts);

#endif
