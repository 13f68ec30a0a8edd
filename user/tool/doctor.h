/* SPDX-License-Identifier: GPL-2.0 */
/* What doctor looks at, and what it can fix until its exit. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "module.h"

enum level {
	LEVEL_OK,
	LEVEL_UNKNOWN,	/* could not be read */
	LEVEL_NOTE,	/* so it is; it can't be changed, or need not be */
	LEVEL_WARN,	/* makes handlers late, or would */
};

struct finding {
	enum level level;
	char *text;
	const char *read;	/* the files, or the instruction */
	int64_t cost;		/* TSC cycles measured here, -1: none */
	const char *cost_of;	/* what costs that */
	const char *remedy;
};

enum fix { FIX_NONE, FIX_IDLE, FIX_GOVERNOR, FIX_IRQS };

struct check {
	const char *id;		/* stable */
	enum fix fix;		/* what --fix does about it */
	void (*look)(struct finding *finding);
};

/* What was read before the checks */
struct patient {
	bool loaded, readable;	/* the module; its files in debugfs */
	bool measured;		/* native is filled in */
	struct module_info info;
	struct module_stats stats;
	/* The highest of all CPUs, TSC cycles */
	struct module_lead lead;
	bool cpu[CPUS];		/* of the timers */
	bool some_cpus;		/* there are any: by --cpus, or isolated ones */
};

extern struct patient patient;

/* A NULL id ends them. */
extern const struct check checks[];

/* Say what is found. */
void finds(struct finding *finding, enum level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Keep others that would fix from doing so, and undo at the exit what is fixed from now on. */
void fix_begin(void);
/* Do what can be undone. */
void fix_apply(enum fix fix);

/* Interrupts that may come to the CPUs of the patient */
struct irq_counts {
	int all;
	bool known;	/* the kernel says of each whether it can be moved */
	int fixed;	/* those that are known not to */
	int only;	/* come to no other CPUs: by an administrator, or by a driver */
	/* When they were to be moved */
	int refused;	/* by the kernel, for their drivers */
	int failed;	/* for another reason */
	int error;	/* the last such reason */
};

/* Return: whether there are other CPUs. */
bool fix_count_irqs(struct irq_counts *counts);

#endif
