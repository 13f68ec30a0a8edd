// SPDX-License-Identifier: GPL-2.0
/*
 * Diagrams as SVG.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "say.h"

#define WIDTH	640
#define HEIGHT	300
#define LEFT	64
#define RIGHT	16
#define TOP	34
#define BOTTOM	46
#define NAMES	16	/* at the bottom, if there are several lines */
/* Beyond it, doubles are further apart than an axis' marks may be: there would be no next mark. */
#define FARTHEST 1e15

struct axis {
	bool is_log;
	double low, high;	/* logarithms, if the axis has those */
};

void chart_text(FILE *file, const char *words)
{
	for (; *words; words++) {
		if (*words == '<')
			fputs("&lt;", file);
		else if (*words == '>')
			fputs("&gt;", file);
		else if (*words == '&')
			fputs("&amp;", file);
		else if (*words == '"')
			fputs("&quot;", file);
		else
			fputc(*words, file);
	}
}

struct chart_line *chart_line(struct chart *chart, const char *name)
{
	struct chart_line *line;

	if (chart->lines == COUNT(chart->line))
		fail("too many lines in a diagram");
	line = &chart->line[chart->lines++];
	memset(line, 0, sizeof(*line));
	line->name = name;
	return line;
}

static double drawable(double number)
{
	return number > FARTHEST ? FARTHEST : number < -FARTHEST ? -FARTHEST : number;
}

void chart_point(struct chart_line *line, double x, double y)
{
	line->x = grow(line->x, line->count, sizeof(*line->x));
	line->y = grow(line->y, line->count, sizeof(*line->y));
	line->x[line->count] = drawable(x);
	line->y[line->count++] = drawable(y);
}

/* Compute whole powers, then the binary digits by squaring */
double chart_log_ten(double number)
{
	double found = 0, digit;

	if (number < 1)
		return 0;
	for (; number >= 10; number /= 10)
		found++;
	for (digit = 0.5; digit > 0.0005; digit /= 2) {
		number *= number;
		if (number >= 10) {
			number /= 10;
			found += digit;
		}
	}
	return found;
}

static double scaled(const struct axis *axis, double number)
{
	return axis->is_log ? chart_log_ten(number) : number;
}

static void widen(struct axis *axis, const double *numbers, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		double at = scaled(axis, numbers[i]);

		if (at < axis->low)
			axis->low = at;
		if (at > axis->high)
			axis->high = at;
	}
}

/* Choose a round distance between marks, at most 7 of them */
static double mark_step(const struct axis *axis)
{
	static const double factors[] = { 2, 2.5, 2 };
	double step = axis->is_log ? 1 : 0.1;
	unsigned int i;

	for (i = 0; (axis->high - axis->low) / step > 7; i++)
		step *= axis->is_log ? 2 : factors[i % COUNT(factors)];
	return step;
}

/* Widen an axis to its next marks; an axis of shots ends with the last shot. */
static void finish(struct axis *axis, bool ends_there)
{
	double step;

	if (axis->is_log) {
		axis->low = (int)axis->low;
		axis->high = (int)axis->high + 1;
		return;
	}
	if (axis->high <= axis->low)
		axis->high = axis->low + 1;
	step = mark_step(axis);
	/* To the next marks: truncation is towards 0. */
	axis->low = (int64_t)(axis->low / step - (axis->low < 0)) * step;
	if (!ends_there)
		axis->high = (int64_t)(axis->high / step + 1) * step;
}

static double place(const struct axis *axis, double number, double from, double to)
{
	return from + (scaled(axis, number) - axis->low) / (axis->high - axis->low) * (to - from);
}

static void label(FILE *file, const struct axis *axis, double mark)
{
	if (axis->is_log && mark >= 3)
		fprintf(file, "10<tspan dy=\"-4\" font-size=\"9\">%d</tspan>", (int)mark);
	else if (axis->is_log)
		fprintf(file, "%s", mark < 1 ? "1" : mark < 2 ? "10" : "100");
	else if (mark == (int64_t)mark)
		fprintf(file, "%s", commas(mark));
	else
		fprintf(file, "%.1f", mark);
}

static void draw_axes(FILE *file, const struct chart *chart, const struct axis *x,
		      const struct axis *y)
{
	double mark, step = mark_step(y), at;

	for (mark = y->low; mark <= y->high + step / 1000; mark += step) {
		at = HEIGHT - BOTTOM - (mark - y->low) / (y->high - y->low) *
		     (HEIGHT - TOP - BOTTOM);
		fprintf(file, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, at, WIDTH - RIGHT);
		fprintf(file, "<text class=\"y\" x=\"%d\" y=\"%.1f\">", LEFT - 6, at + 4);
		label(file, y, mark);
		fputs("</text>\n", file);
	}
	step = mark_step(x);
	for (mark = x->low; mark <= x->high + step / 1000; mark += step) {
		at = LEFT + (mark - x->low) / (x->high - x->low) * (WIDTH - LEFT - RIGHT);
		fprintf(file, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", at, TOP, HEIGHT - BOTTOM);
		fprintf(file, "<text class=\"x\" x=\"%.1f\" y=\"%d\">", at, HEIGHT - BOTTOM + 15);
		label(file, x, mark);
		fputs("</text>\n", file);
	}
	fprintf(file, "<text class=\"x\" x=\"%d\" y=\"%d\">", (LEFT + WIDTH - RIGHT) / 2,
		HEIGHT - 10);
	chart_text(file, chart->x);
	fprintf(file, "</text>\n<text class=\"x\" transform=\"translate(12 %d) rotate(-90)\">",
		(TOP + HEIGHT - BOTTOM) / 2);
	chart_text(file, chart->y);
	fputs("</text>\n", file);
}

static void draw_line(FILE *file, const struct chart *chart, unsigned int number,
		      const struct axis *x, const struct axis *y)
{
	const struct chart_line *line = &chart->line[number];
	double at_x, at_y;
	size_t i;

	fprintf(file, "<g class=\"s%u\">", number);
	if (chart->joined && line->count) {
		fputs("<path class=\"line\" d=\"", file);
		for (i = 0; i < line->count; i++)
			fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M',
				place(x, line->x[i], LEFT, WIDTH - RIGHT),
				place(y, line->y[i], HEIGHT - BOTTOM, TOP));
		fputs("\"/>\n", file);
	}
	/* Draw points as one path of short strokes, which takes a tenth of the bytes. */
	fputs("<path class=\"dots\" d=\"", file);
	for (i = 0; i < line->count; i++) {
		at_x = place(x, line->x[i], LEFT, WIDTH - RIGHT);
		at_y = place(y, line->y[i], HEIGHT - BOTTOM, TOP);
		fprintf(file, "M%.1f %.1fh0", at_x, at_y);
	}
	fputs("\"/></g>\n", file);
}

void chart_draw(FILE *file, struct chart *chart)
{
	struct axis x = { .is_log = chart->log_x, .low = 1e300, .high = -1e300 };
	struct axis y = { .is_log = chart->log_y, .low = 1e300, .high = -1e300 };
	unsigned int i;

	for (i = 0; i < chart->lines; i++) {
		widen(&x, chart->line[i].x, chart->line[i].count);
		widen(&y, chart->line[i].y, chart->line[i].count);
	}
	if (x.low > x.high) {	/* there are no points */
		x = (struct axis){ .is_log = chart->log_x };
		y = (struct axis){ .is_log = chart->log_y };
	}
	/* Let counts and errors begin at 0. */
	if (y.low > 0)
		y.low = 0;
	finish(&x, true);
	finish(&y, false);
	fprintf(file, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH,
		chart->lines > 1 ? HEIGHT + NAMES : HEIGHT);
	chart_text(file, chart->title);
	fprintf(file, "</title>\n<text class=\"head\" x=\"%d\" y=\"18\">", LEFT);
	chart_text(file, chart->title);
	fputs("</text>\n", file);
	draw_axes(file, chart, &x, &y);
	for (i = 0; i < chart->lines; i++)
		draw_line(file, chart, i, &x, &y);
	for (i = 0; i < chart->lines && chart->lines > 1; i++) {
		fprintf(file, "<g class=\"s%u\"><text class=\"name\" x=\"%u\" y=\"%d\">",
			i, LEFT + i * (WIDTH - LEFT - RIGHT) / chart->lines, HEIGHT + NAMES / 2);
		chart_text(file, chart->line[i].name);
		fputs("</text></g>\n", file);
	}
	fputs("</svg></figure>\n", file);
	for (i = 0; i < chart->lines; i++) {
		free(chart->line[i].x);
		free(chart->line[i].y);
	}
	chart->lines = 0;
}
