/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that write the sections of a page, to the file of html_begin(). */
#ifndef PAGE_HTML_H
#define PAGE_HTML_H

#include <stdio.h>

#include "chart.h"
#include "report.h"

/* Property of a machine that a figure depends on */
enum claim { CLAIM_PATH, CLAIM_CPU };

void html_begin(FILE *file);
void html(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Write a text as it is */
void html_text(const char *words);
void html_chart(struct chart *chart);

/* Write the findings of a paper */
void html_paper(const char *text);
/* Write how far the following figures are valid */
void html_claim(const struct report_machine *machine, enum claim from);
void html_machine(const struct report_machine *machine);
void html_missing(const struct report_machine *machine, const char *command);

/*
 * @heads: heads, separated by bars; the first column, and those whose head begins with a
 * blank, have text.
 */
void html_table(const char *caption, const char *heads);
void html_table_end(void);

void cell_none(void);
void cell_text(const char *text);
/* Write a cell of a text column other than the first */
void cell_word(const char *text);
void cell_long(const char *text);
void cell_whole(double number);
void cell_real(double number, int digits);
/* Write a cell of a row: a whole number, or nothing */
void cell_of(const struct value *row, const char *key);
/* p50 / p99 / max */
void cell_three(const struct value *row, const char *key);

#endif
