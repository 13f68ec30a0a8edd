/* SPDX-License-Identifier: GPL-2.0 */
/* A diagram as SVG within a page: see page/page.c for its colours. */
#ifndef CHART_H
#define CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct chart_line {
	const char *name;
	double *x, *y;
	size_t count;
};

struct chart {
	const char *title, *x, *y;	/* of the diagram, of its axes */
	bool log_x, log_y;	/* logarithmic: values below 1 are drawn at 1 */
	bool joined;		/* points are joined by lines */
	struct chart_line line[4];
	unsigned int lines;
};

/* Add a line; it is freed by chart_draw(). Return: the line, without points. */
struct chart_line *chart_line(struct chart *chart, const char *name);
/* Add a point; beyond 10^15, it is drawn at 10^15. */
void chart_point(struct chart_line *line, double x, double y);
void chart_draw(FILE *file, struct chart *chart);

/* Write a text, escaped for HTML and SVG. */
void chart_text(FILE *file, const char *words);
/* log10 without libm; 0 below 1 */
double chart_log_ten(double number);

#endif
