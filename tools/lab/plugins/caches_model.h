/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of caches and memory: of which access finds its line where, and what that
 * takes. The same accesses take the same time, whatever is around them.
 *
 * Nothing overlaps: a load or store is waited for until it is done. There is no
 * prefetching, no store buffer, no write-back traffic, and lines are distinguished by
 * virtual address. Data is found by a TLB, as if all pages had 4 KiB; code by none. It
 * shows mechanisms, and is no CPU.
 */
#ifndef LAB_CACHES_MODEL_H
#define LAB_CACHES_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MODEL_LINE	64	/* bytes */
#define MODEL_PAGE	4096	/* bytes */

enum { MODEL_L1I, MODEL_L1D, MODEL_L2, MODEL_L3, MODEL_TLB, MODEL_CACHES };

/* Of accesses since model_clear() */
struct model_counts {
	uint64_t hits, misses;
};

void model_write_geometry(FILE *file);
/* All caches and the TLB are empty, all counts 0. */
void model_clear(void);
/* Whether there are caches at all. The TLB stays. */
void model_enable(bool caches);

/*
 * An access to a line, by its number. @now: cycles, for what memory is busy with.
 * Return: cycles that it takes longer than a hit in the first cache.
 */
unsigned int model_access(unsigned int first, uint64_t line, uint64_t now);
/*
 * Find a page, by its number, for an access to data. Return: cycles that it takes longer
 * than where the TLB has it: a walk, and its access to the page's entry.
 */
unsigned int model_translate(uint64_t page, uint64_t now);
/* Return: whether the line is in a first cache. It is not accessed by that. */
bool model_has(unsigned int first, uint64_t line);
void model_flush(uint64_t line);
void model_flush_all(void);
const struct model_counts *model_counts(unsigned int cache);

#endif
