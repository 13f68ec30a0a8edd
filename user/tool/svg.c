// SPDX-License-Identifier: GPL-2.0
/*
 * A histogram as an SVG file: a panel for each group, a bar for each bucket,
 * on a scale of powers of 10.
 */
#include <inttypes.h>
#include <stdio.h>

#include "chart.h"
#include "say.h"
#include "svg.h"

#define WIDTH	720
#define LEFT	56
#define HEIGHT	120	/* of the bars */
#define PANEL	190	/* with title and labels */

/* Get the number of powers of 10 up to a number */
static unsigned int decades(uint64_t number)
{
	unsigned int powers = 0;

	for (; number > 1; number = (number + 9) / 10)
		powers++;
	return powers ? powers : 1;
}

static unsigned int height_of(uint64_t count, unsigned int powers)
{
	/* Make a count of 1 visible. */
	return count ? 2 + (HEIGHT - 2) * chart_log_ten(count) / powers : 0;
}

static void panel(FILE *file, const struct group *group, int top)
{
	unsigned int powers, height, power, step;
	uint64_t most = 1;
	double width = (double)(WIDTH - LEFT - 16) / (group->buckets ? group->buckets : 1);
	size_t i;

	for (i = 0; i < group->buckets; i++)
		if (group->bucket[i].count > most)
			most = group->bucket[i].count;
	powers = decades(most);
	fprintf(file, "<text x=\"%d\" y=\"%d\" class=\"head\">", LEFT, top + 16);
	chart_text(file, group->name);
	fprintf(file, " (%s)</text>\n", commas(group->count));
	for (power = 0; power <= powers; power++) {
		int y = top + 28 + HEIGHT - (int)(HEIGHT * power / powers);

		fprintf(file, "<path d=\"M%d %dH%d\" class=\"grid\"/>"
			"<text x=\"%d\" y=\"%d\" class=\"y\">10<tspan dy=\"-4\">%u</tspan></text>\n",
			LEFT, y, WIDTH - 16, LEFT - 6, y + 4, power);
	}
	step = group->buckets / 12 + 1;
	for (i = 0; i < group->buckets; i++) {
		const struct bucket *bucket = &group->bucket[i];
		double x = LEFT + i * width;

		height = height_of(bucket->count, powers);
		fprintf(file, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%u\"><title>"
			"%" PRId64 " to %" PRId64 ": %" PRIu64 "</title></rect>\n",
			x + width * 0.05, top + 28 + HEIGHT - (int)height, width * 0.9, height,
			bucket->low, bucket->high, bucket->count);
		if (i % step == 0)
			fprintf(file, "<text x=\"%.1f\" y=\"%d\" class=\"x\">%s</text>\n",
				x + width / 2, top + 28 + HEIGHT + 14, commas(bucket->high));
	}
}

void svg_write(FILE *file, const struct histogram *histogram, const char *title,
	       const char *unit)
{
	int height = 40 + PANEL * (histogram->groups ? histogram->groups : 1);
	size_t i;

	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n"
		"<style>rect{fill:#3b6ea5}.grid{stroke:#8886}.y{text-anchor:end}"
		".x{text-anchor:middle}.head{font-weight:bold}text{fill:currentColor}"
		"svg{color:#222;background:#fff}"
		"@media(prefers-color-scheme:dark){svg{color:#ddd;background:#181818}"
		"rect{fill:#7fb0e6}}</style>\n<title>", WIDTH, height);
	chart_text(file, title);
	fprintf(file, "</title>\n<text x=\"%d\" y=\"20\" font-size=\"13\">", LEFT);
	chart_text(file, title);
	fprintf(file, "; each bar is named by its highest %s</text>\n", unit);
	for (i = 0; i < histogram->groups; i++)
		panel(file, &histogram->group[i], 28 + PANEL * i);
	fprintf(file, "</svg>\n");
}
