/* SPDX-License-Identifier: GPL-2.0 */
/* A histogram as an SVG file: the same bytes for the same counts. */
#ifndef SVG_H
#define SVG_H

#include "histogram.h"

/* Return: false, with errno, if the file cannot be written. */
bool svg_write(const char *path, const struct histogram *histogram, const char *title,
	       const char *unit);

#endif
