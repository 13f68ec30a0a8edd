/* SPDX-License-Identifier: GPL-2.0 */
/* Messages for people, and allocation that ends the program on failure. */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* End the program because the command cannot do its work: exit status 2. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Show what is running and how far it is, on a terminal, once 2 s have passed. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same before a single call that takes @seconds: shows the line now or not at all. */
void progress_before(double seconds, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void progress_end(void);

void *grow(void *array, size_t count, size_t size);
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Format as 1,234,567, in one of 16 buffers in turn */
const char *commas(int64_t number);

#endif
