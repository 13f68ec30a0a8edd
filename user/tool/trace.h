/* SPDX-License-Identifier: GPL-2.0 */
/* A line of trace_pipe, taken apart. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_line {
	char task[24];		/* "name-pid" of what was interrupted, or called */
	int cpu;
	uint64_t tsc;
	char event[40];
	const char *fields;	/* "timer=... function=..." */
};

/* Return: whether it is a line of one of our events, with the TSC as its clock. */
bool trace_line_parse(const char *text, struct trace_line *line);
/* Return: whether it is one that has seconds with a fraction for its time, of another clock. */
bool trace_line_in_seconds(const char *text);
/* Return: a number among the fields, or @otherwise; decimal or 0x... */
int64_t trace_number(const char *fields, const char *name, int64_t otherwise);
/* Copy a word among the fields; of a function with its "[module]". Return: whether it is there. */
bool trace_word(const char *fields, const char *name, char *word, size_t size);

/* Parts of an amount, in tenths of a per cent, which add up to 1000 (or are all 0). */
void trace_shares(const uint64_t *parts, unsigned int *tenths, unsigned int count);

#endif
