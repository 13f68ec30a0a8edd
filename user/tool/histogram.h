/* SPDX-License-Identifier: GPL-2.0 */
/* Histograms counted by the kernel's triggers, by group. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bucket {
	int64_t low, high;	/* both inclusive */
	uint64_t count;
};

/* Values of one CPU, handler or CPU state */
struct group {
	char name[112];
	long order;		/* number of the CPU or state */
	struct bucket *bucket;	/* from the lowest */
	size_t buckets;
	uint64_t count, sum;	/* sum: of the values, if the kernel adds them */
};

struct histogram {
	struct group *group;
	size_t groups;
	uint64_t hits, dropped;
};

enum histogram_by { HISTOGRAM_BY_CPU, HISTOGRAM_BY_HANDLER, HISTOGRAM_BY_CPU_STATE };

/* For --by of a table of options */
#define HISTOGRAM_BY "cpu|handler|state"

/*
 * Parse a file "hist", with all its triggers that have @field as their last
 * key. Return: false, with *line, at an invalid line.
 */
bool histogram_parse(struct histogram *histogram, const char *text, const char *field,
		     const char **line);
void histogram_free(struct histogram *histogram);
void histogram_copy(struct histogram *to, const struct histogram *from);
/* Subtract earlier counts. */
void histogram_subtract(struct histogram *from, const struct histogram *before);
struct group *histogram_group(const struct histogram *histogram, const char *name);

/* Return: the quantile @part of the counted values: the upper end of its bucket. */
int64_t histogram_quantile(const struct group *group, double part);
/* Return: number of values below 0. */
uint64_t histogram_negative(const struct group *group);

/* Let the kernel count @field of @event; @linear: width of buckets, 0 for powers of 2. */
void histogram_start(const char *event, const char *field, enum histogram_by by, long linear,
		     bool is_signed);
/* Read it. */
void histogram_read(struct histogram *histogram, const char *event, const char *field);

#endif
