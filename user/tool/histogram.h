/* SPDX-License-Identifier: GPL-2.0 */
/* Histograms that the kernel's triggers have counted, by group. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bucket {
	int64_t low, high;	/* both are in it */
	uint64_t count;
};

/* What is asked for by CPU, handler or state of the CPU */
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
 * Read what a file "hist" says, of all triggers in it, that have @field as
 * their last key. Return: false, with *line, at a line that is none.
 */
bool histogram_parse(struct histogram *histogram, const char *text, const char *field,
		     const char **line);
void histogram_free(struct histogram *histogram);
void histogram_copy(struct histogram *to, const struct histogram *from);
/* Take off what was there before. */
void histogram_subtract(struct histogram *from, const struct histogram *before);
struct group *histogram_group(const struct histogram *histogram, const char *name);

/* Return: a value that @part of the counted are not above, the upper end of its bucket. */
int64_t histogram_quantile(const struct group *group, double part);
/* Return: how many are below 0. */
uint64_t histogram_negative(const struct group *group);

/* Have the kernel count @field of @event; @linear: width of buckets, 0 for powers of 2. */
void histogram_start(const char *event, const char *field, enum histogram_by by, long linear,
		     bool is_signed);
/* Read it. */
void histogram_read(struct histogram *histogram, const char *event, const char *field);

#endif
