/* SPDX-License-Identifier: GPL-2.0 */
/* The device of the module apic_measure. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apic_measure.h"

/* Open it, on a CPU, -1: the first that is allowed. Ends the program where it can't. */
void measure_begin(int cpu);
void measure_end(void);
/* An ioctl(). Return: 0, or an error that @may_fail allows; others end the program. */
int measure_call(unsigned long command, void *argument, int may_fail);
/* Of the chain that was set: one interrupt. Ends the program when it fails. */
void measure_read(struct apic_measure_record *record);
/* The CPU. */
int measure_cpu(void);

/* Run in real time from now on: SCHED_FIFO, and no page faults. */
void measure_real_time(void);
/* A shell command that runs meanwhile, in its own process group; NULL: none. */
void measure_load_start(const char *command);
void measure_load_stop(void);

#endif
