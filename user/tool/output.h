/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file that takes the place of an older one once it is complete. There is one at a time. It is
 * written as PATH.new; if the program ends before it is complete, it is removed.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

/* Open it, or end the program. What is no regular file, such as a pipe, is itself written to. */
FILE *output_open(const char *path);
/* Put it in its place, or end the program. */
void output_close(void);

#endif
