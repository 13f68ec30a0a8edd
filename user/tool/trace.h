/* SPDX-License-Identifier: GPL-2.0 */
/* A parsed line of trace_pipe. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_line {
	/* "name-pid" of the task that was interrupted, or that called; no control characters */
	char task[24];
	int cpu;
	uint64_t tsc;
	char event[40];
	const char *fields;	/* "timer=... function=..." */
};

/* Return: true if it is a line of one of our events, with the TSC as its clock. */
bool trace_line_parse(const char *text, struct trace_line *line);
/*
 * Return: true if it is such a line, but with another clock: its time is in seconds with
 * a fraction.
 */
bool trace_line_in_seconds(const char *text);
/* Return: true if it says that events are missing: "CPU:0 [LOST 12 EVENTS]", or no number. */
bool trace_line_is_loss(const char *text);
/* Return: a number among the fields, or @otherwise; decimal or 0x... */
int64_t trace_number(const char *fields, const char *name, int64_t otherwise);
/* Copy a word among the fields; a function includes its "[module]". Return: true if found. */
bool trace_word(const char *fields, const char *name, char *word, size_t size);

/* Compute parts of an amount in tenths of a per cent, which add up to 1000 (or are all 0). */
void trace_shares(const uint64_t *parts, unsigned int *tenths, unsigned int count);

#endif
