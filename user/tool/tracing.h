/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tracefs instance of one's own, instances/apic-timer-PID, or PID.N where that is in
 * use, so that two users at once, and whoever uses the top instance, don't see one another. It is
 * removed at exit, with its triggers, also on the signals that end a process, except
 * SIGKILL, those of real time, and those of a fault of its own such as SIGSEGV.
 */
#ifndef TRACING_H
#define TRACING_H

#include <stdbool.h>

/* Set by a signal: end the work, as waiting has ended. */
extern volatile bool tracing_stopped;

/* Heed the signals only. */
void tracing_signals(void);
/*
 * Then: run a command, with signals as they were before, and pass on to it those
 * that are not the terminal's. Return: its exit status, 130 where a signal came before.
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
/* Turn an event on, with a filter or NULL. */
void tracing_enable(const char *event, const char *filter);
/* Return: a file descriptor of trace_pipe that does not block. */
int tracing_pipe(void);
/* Sleep; less when stopped. */
void tracing_sleep(double seconds);

#endif
