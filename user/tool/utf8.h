/* SPDX-License-Identifier: GPL-2.0 */
/* Text from elsewhere, which may be cut anywhere or be no text at all. */
#ifndef UTF8_H
#define UTF8_H

#include <stdint.h>

/* Read the character at @at into @code. Return: its length in bytes; 0 if none begins there. */
int utf8_read(const char *at, uint32_t *code);

/* Replace what a terminal would obey, except for ends of lines, and what is no text. */
void utf8_make_printable(char *text);

#endif
