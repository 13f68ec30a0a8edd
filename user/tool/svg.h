/* SPDX-License-Identifier: GPL-2.0 */
/* A histogram as an SVG file: the same bytes for the same counts. */
#ifndef SVG_H
#define SVG_H

#include <stdio.h>

#include "histogram.h"

void svg_write(FILE *file, const struct histogram *histogram, const char *title,
	       const char *unit);

#endif
