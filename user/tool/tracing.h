/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A private tracefs instance, instances/apic-timer-PID, or PID.N if that is in use, so that
 * concurrent users, and users of the top instance, do not disturb each other. It is removed at
 * exit with its triggers, also on signals that end a process, except SIGKILL, real-time signals,
 * and signals of the program's own faults, such as SIGSEGV.
 */
#ifndef TRACING_H
#define TRACING_H

#include <stdbool.h>

/* Set by a signal, which also ends waiting: end the work. */
extern volatile bool tracing_stopped;

/* Install the signal handlers only. */
void tracing_signals(void);
/*
 * After tracing_signals(), run a command with signals as they were before, and pass on
 * to it those that do not come from the terminal. Return: its exit status, 130 if a
 * signal came before.
 */
int tracing_run(char **command);
/* Make the instance. */
void tracing_begin(void);
void tracing_end(void);

/* Add a histogram trigger to an event. */
void tracing_histogram(const char *event, const char *trigger);
/* Return: the allocated text of an event's histograms. */
char *tracing_read_histogram(const char *event);
/* Write a file of the instance, or end the program. */
void tracing_write(const char *file, const char *text);
/*
 * Have events printed in the kernel's default format. The instance has inherited the options of
 * the top one, which anybody may have changed.
 */
void tracing_format(void);
/* Give an event a filter, in place of the one that it has; NULL: none. */
void tracing_filter(const char *event, const char *filter);
/* Turn an event on. */
void tracing_enable(const char *event);
/* Return: a file descriptor of trace_pipe that does not block. */
int tracing_pipe(void);
/* Sleep; return early when stopped. */
void tracing_sleep(double seconds);

#endif
