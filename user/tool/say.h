/* SPDX-License-Identifier: GPL-2.0 */
/* Messages for people, and memory that is there or ends the program. */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The command can't do its work: exit status 2. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What runs now and how far it is, on a terminal, once 2 s have passed. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same before one call that takes that many seconds: it shows the line now, or never. */
void progress_before(double seconds, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void progress_end(void);

void *grow(void *array, size_t count, size_t size);
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* 1,234,567; one of 16 buffers in turn */
const char *commas(int64_t number);

#endif
