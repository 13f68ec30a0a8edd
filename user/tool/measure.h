/* SPDX-License-Identifier: GPL-2.0 */
/* The device of the module apic_measure. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apic_measure.h"

/* Open it, on a CPU, -1: the first that is allowed. Ends the program on failure. */
void measure_begin(int cpu);
/* Close it. Ends the program if that was not measured on the CPU. */
void measure_end(void);
/* An ioctl(). Return: 0, or the error @may_fail; other errors end the program. */
int measure_call(unsigned long command, void *argument, int may_fail);
/* Measure one interrupt of the chain that was set. Ends the program on failure. */
void measure_read(struct apic_measure_record *record);
/* Get the CPU. */
int measure_cpu(void);

/* Run in real time from now on: SCHED_FIFO, and no page faults. */
void measure_real_time(void);
/* Start a shell command that runs meanwhile, in its own process group; NULL: none. */
void measure_load_start(const char *command);
void measure_load_stop(void);

#endif
