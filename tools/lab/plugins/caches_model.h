/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of caches and memory: where each access finds its line, and how long that takes. The
 * same accesses always take the same time, regardless of the code around them.
 *
 * Nothing overlaps: the CPU waits for each load or store to complete. There is no prefetching, no
 * store buffer, no write-back traffic, and lines are distinguished by virtual address. Accesses to
 * data use a TLB, as if all pages had 4 KiB; fetches of code use none. The model shows mechanisms;
 * it does not imitate a real CPU.
 */
#ifndef LAB_CACHES_MODEL_H
#define LAB_CACHES_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MODEL_LINE	64	/* bytes */
#define MODEL_PAGE	4096	/* bytes */

enum { MODEL_L1I, MODEL_L1D, MODEL_L2, MODEL_L3, MODEL_TLB, MODEL_CACHES };

/* Counts of accesses since model_clear() */
struct model_counts {
	uint64_t hits, misses;
};

void model_write_geometry(FILE *file);
/* Empty all caches and the TLB, and set all counts to 0. */
void model_clear(void);
/* Choose whether there are caches at all. The TLB stays. */
void model_enable(bool caches);

/*
 * Access a line, by its number. @now: present time in cycles, for the state of memory.
 * Return: cycles that this takes in addition to those of a hit in the first cache.
 */
unsigned int model_access(unsigned int first, uint64_t line, uint64_t now);
/*
 * Find a page, by its number, for an access to data. Return: cycles that this takes in addition to
 * those of a hit in the TLB: a walk, and its access to the page's entry.
 */
unsigned int model_translate(uint64_t page, uint64_t now);
/* Return: whether the line is in a first cache. This does not count as an access. */
bool model_has(unsigned int first, uint64_t line);
void model_flush(uint64_t line);
void model_flush_all(void);
const struct model_counts *model_counts(unsigned int cache);

#endif
