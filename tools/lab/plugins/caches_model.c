// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Caches that replace the least recently used line, and memory with open rows and refresh. Sizes
 * are usual ones; times are in cycles of a CPU of 1 GHz.
 */
#include <inttypes.h>
#include <string.h>

#include "caches_model.h"

#define SETS_MAX	4096
#define WAYS_MAX	16

static const struct geometry {
	const char *name;
	unsigned int kib, ways;
	unsigned int cycles;	/* in addition to a hit in the first cache, or in the TLB */
} geometry[MODEL_CACHES] = {
	[MODEL_L1I] = { "L1I", 32, 8, 0 },
	[MODEL_L1D] = { "L1D", 32, 8, 0 },
	[MODEL_L2] = { "L2", 256, 8, 10 },
	[MODEL_L3] = { "L3", 4096, 16, 30 },
	[MODEL_TLB] = { "TLB", 256, 4, 20 },	/* 64 pages; the cycles of a walk */
};

/* Lines of an open row arrive sooner. */
#define BANKS		8
#define ROW_LINES	128
#define OPEN		60
#define CLOSED		100
/* Period of the refresh, and time for which memory does not answer then, cycles. */
#define REFRESH_EACH	7800
#define REFRESH		350

static struct cache {
	uint64_t line[SETS_MAX][WAYS_MAX];	/* 0: none; otherwise its number plus 1 */
	uint64_t used[SETS_MAX][WAYS_MAX];
	struct model_counts counts;
} caches[MODEL_CACHES];

static uint64_t rows[BANKS];	/* 0: none is open; otherwise its number plus 1 */
static uint64_t uses;
static bool enabled = true;

static unsigned int unit(unsigned int cache)
{
	return cache == MODEL_TLB ? MODEL_PAGE : MODEL_LINE;
}

static unsigned int sets(unsigned int cache)
{
	return geometry[cache].kib * 1024 / unit(cache) / geometry[cache].ways;
}

void model_write_geometry(FILE *file)
{
	const struct geometry *one;

	for (one = geometry; one < geometry + MODEL_CACHES; one++)
		fprintf(file, "cache %s kib %u ways %u line %u cycles %u\n", one->name, one->kib,
			one->ways, unit(one - geometry), one->cycles);
	fprintf(file, "memory banks %u row_kib %u open %u closed %u refresh_each %u refresh %u\n",
		BANKS, ROW_LINES * MODEL_LINE / 1024, OPEN, CLOSED, REFRESH_EACH, REFRESH);
}

static void empty(unsigned int cache)
{
	memset(caches[cache].line, 0, sizeof(caches[cache].line));
	memset(caches[cache].used, 0, sizeof(caches[cache].used));
}

void model_flush_all(void)
{
	unsigned int i;

	for (i = 0; i < MODEL_TLB; i++)
		empty(i);
}

void model_clear(void)
{
	unsigned int i;

	model_flush_all();
	empty(MODEL_TLB);
	for (i = 0; i < MODEL_CACHES; i++)
		memset(&caches[i].counts, 0, sizeof(caches[i].counts));
	memset(rows, 0, sizeof(rows));
	uses = 0;
}

void model_enable(bool there)
{
	enabled = there;
}

/* Load a line if it is absent. Return: whether it was present. */
static bool hit(unsigned int number, uint64_t line)
{
	struct cache *cache = &caches[number];
	unsigned int set = line % sets(number), way, oldest = 0;

	uses++;
	for (way = 0; way < geometry[number].ways; way++) {
		if (cache->line[set][way] == line + 1) {
			cache->used[set][way] = uses;
			cache->counts.hits++;
			return true;
		}
		if (cache->used[set][way] < cache->used[set][oldest])
			oldest = way;
	}
	cache->line[set][oldest] = line + 1;
	cache->used[set][oldest] = uses;
	cache->counts.misses++;
	return false;
}

static unsigned int memory(uint64_t line, uint64_t now)
{
	uint64_t row = line / ROW_LINES;
	unsigned int bank = row % BANKS, cycles = rows[bank] == row + 1 ? OPEN : CLOSED;

	rows[bank] = row + 1;
	if (now % REFRESH_EACH < REFRESH)
		cycles += REFRESH - now % REFRESH_EACH;
	return cycles;
}

unsigned int model_access(unsigned int first, uint64_t line, uint64_t now)
{
	if (!enabled) {
		caches[first].counts.misses++;
		return memory(line, now);
	}
	if (hit(first, line))
		return 0;
	if (hit(MODEL_L2, line))
		return geometry[MODEL_L2].cycles;
	if (hit(MODEL_L3, line))
		return geometry[MODEL_L3].cycles;
	return memory(line, now);
}

/* Lines of the page table, with numbers that no address has */
#define ENTRY_BYTES	8
#define TABLE_LINE	(1ULL << 60)

unsigned int model_translate(uint64_t page, uint64_t now)
{
	if (hit(MODEL_TLB, page))
		return 0;
	return geometry[MODEL_TLB].cycles +
	       model_access(MODEL_L1D, TABLE_LINE + page / (MODEL_LINE / ENTRY_BYTES), now);
}

bool model_has(unsigned int first, uint64_t line)
{
	struct cache *cache = &caches[first];
	unsigned int set = line % sets(first), way;

	for (way = 0; enabled && way < geometry[first].ways; way++)
		if (cache->line[set][way] == line + 1)
			return true;
	return false;
}

void model_flush(uint64_t line)
{
	unsigned int i, set, way;

	for (i = 0; i < MODEL_TLB; i++) {
		set = line % sets(i);
		for (way = 0; way < geometry[i].ways; way++) {
			if (caches[i].line[set][way] == line + 1) {
				caches[i].line[set][way] = 0;
				caches[i].used[set][way] = 0;
			}
		}
	}
}

const struct model_counts *model_counts(unsigned int cache)
{
	return &caches[cache].counts;
}
