/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Small files of sysfs, procfs, debugfs and tracefs. Paths are those of the
 * running system, or are below --root, where tests have a tree of their own.
 */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>

#include "opt.h"

/* "" for the running system */
extern const char *files_root;

/* As many CPUs as a kernel for x86-64 can have */
#define CPUS	8192

/* Entry "--root DIR" of a table of options */
#define FILES_OPT_ROOT \
	OPT_DIRECTORY(0, "root", "DIR", "read the files below DIR instead of /", &files_root)

/* Return: an allocated path. */
char *files_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Return: the allocated text, without trailing blanks; NULL with errno. */
char *files_read(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Return: true if the text was written; otherwise errno has the reason. */
bool files_write(const char *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool files_exist(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Return: the number in a file, or @otherwise. */
long files_number(long otherwise, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Parse a list of CPUs, "0-3,8"; @in has room for @size. Return: false if it is not a list. */
bool files_cpulist(const char *list, bool *in, int size);
/* Return: the allocated list of the members. */
char *files_list(const bool *in, int size);

#endif
