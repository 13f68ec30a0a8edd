/* SPDX-License-Identifier: GPL-2.0 */
/* What the sections of a page are written with. They go to the file of html_begin(). */
#ifndef PAGE_HTML_H
#define PAGE_HTML_H

#include <stdio.h>

#include "chart.h"
#include "report.h"

/* What a figure follows from */
enum claim { CLAIM_PATH, CLAIM_CPU };

void html_begin(FILE *file);
void html(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A text as it is */
void html_text(const char *words);
void html_chart(struct chart *chart);

/* What a paper has found */
void html_paper(const char *text);
/* What may be claimed of the figures that follow */
void html_claim(const struct report_machine *machine, enum claim from);
void html_machine(const struct report_machine *machine);
void html_missing(const struct report_machine *machine, const char *command);

/* @heads: between bars; the first column has text, as have those that begin with a blank. */
void html_table(const char *caption, const char *heads);
void html_table_end(void);

void cell_none(void);
void cell_text(const char *text);
/* Of a column of words that is not the first */
void cell_word(const char *text);
void cell_long(const char *text);
void cell_whole(double number);
void cell_real(double number, int digits);
/* Of a row: a whole number, or nothing */
void cell_of(const struct value *row, const char *key);
/* p50 / p99 / max */
void cell_three(const struct value *row, const char *key);

#endif
