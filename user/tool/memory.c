// SPDX-License-Identifier: GPL-2.0
/* apic-timer memory: the latency of loads, measured with a ring of pointers. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "commands.h"
#include "core.h"
#include "files.h"
#include "json.h"
#include "runs.h"
#include "say.h"
#include "tsc.h"

#define HUGE		(UINT64_C(2) << 20)
#define LINE		64
/*
 * With more repetitions, some are likelier to be undisturbed. But at most LOADS loads are made of
 * a ring, and a ring that does not fit the core's own caches is walked only a few times; others
 * share the cache or memory that it is in, whatever this core does.
 */
#define REPEATS		2000
#define REPEATS_BIG	20
#define LOADS		25000000
#define QUANTILE	5
#define BIG		20000	/* nodes: the ring may not fit the core's own caches */
#define FIGURES		64	/* of all tables, and more */

enum { BY_SIZE, BY_SET, BY_ALIGNMENT, BY_ALL };

static int by = BY_ALL;
static long run_count = 10, most = 65536, wait_s = -1;

static const struct opt options[] = {
	OPT_CHOICE('b', "by", "size|set|alignment|all", "table to print (all)", &by),
	OPT_NUMBER('n', "runs", "N", 1, RUNS_MAX, "runs; their spread is printed (10)", &run_count),
	OPT_NUMBER('m', "max", "KIB", 16, 4194304, "size of the largest ring (65536)", &most),
	OPT_NUMBER('w', "wait", "S", 0, 3600,
		   "seconds to wait for a core that is not shared (2 per run)", &wait_s),
	{}
};

static char *memory;
static void *volatile kept;	/* end of the last walk, so that the walk has a use */

static uint64_t random_number(void)
{
	static uint64_t state = UINT64_C(88172645463325252);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/*
 * Make a ring of nodes in random order, so that no prefetcher can predict the next.
 * Return: a node.
 */
static void *make_ring(uint64_t nodes, uint64_t stride, uint64_t offset)
{
	uint64_t *order = malloc(nodes * sizeof(*order)), i, j, other;
	void *next;

	if (!order)
		fail("out of memory");
	for (i = 0; i < nodes; i++)
		order[i] = i;
	for (i = nodes - 1; i > 0; i--) {
		j = random_number() % (i + 1);
		other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
	for (i = 0; i < nodes; i++) {
		next = memory + order[(i + 1) % nodes] * stride + offset;
		memcpy(memory + order[i] * stride + offset, &next, sizeof(next));
	}
	next = memory + order[0] * stride + offset;
	free(order);
	return next;
}

static uint64_t walk(void **at, uint64_t turns)
{
	void *node = *at;
	uint64_t start = tsc_read_fenced();

	asm volatile(".p2align 5\n1:\tmov (%0), %0\n\tdec %1\n\tjnz 1b"
		     : "+r" (node), "+r" (turns) :: "memory", "cc");
	*at = node;
	return tsc_read_fenced() - start;
}

/* Measure the core cycles of a load, from n and 2n loads */
static double measure(uint64_t nodes, uint64_t stride, uint64_t offset)
{
	uint64_t once[REPEATS], twice[REPEATS], chain[2][REPEATS];
	uint64_t turns = nodes < 1000 ? 1000 : nodes < BIG ? nodes : BIG;
	unsigned int i = 0, repeats = LOADS / (3 * turns);
	bool big = nodes > BIG;
	void *at = make_ring(nodes, stride, offset);
	double loads, core;

	if (repeats > REPEATS)
		repeats = REPEATS;
	if (big)
		repeats = REPEATS_BIG;
	walk(&at, nodes < 100000 ? 2 * nodes : nodes);
	core_begin();
	while (i < repeats) {
		chain[0][i] = tsc_chain(100);
		once[i] = walk(&at, turns);
		chain[1][i] = tsc_chain(200);
		twice[i] = walk(&at, 2 * turns);
		i += big || core_was_alone();
	}
	kept = at;
	loads = (double)tsc_quantile(twice, repeats, QUANTILE) -
		(double)tsc_quantile(once, repeats, QUANTILE);
	core = (double)tsc_quantile(chain[1], repeats, QUANTILE) -
	       (double)tsc_quantile(chain[0], repeats, QUANTILE);
	return loads / turns / (core / 1600);
}

static void print_figure(const char *key, uint64_t first, uint64_t second, struct runs *runs)
{
	double cycles = runs_median(runs), spread = runs_spread(runs);

	if (opt_json) {
		json_object(NULL);
		json_number(key, first);
		if (second)
			json_number("nodes", second);
		json_real("cycles", cycles, 2);
		json_real("lowest", runs->value[0], 2);
		json_real("highest", runs->value[runs->count - 1], 2);
		json_real("spread_percent", spread, 1);
		json_end();
		return;
	}
	printf("%10s", commas(first));
	if (second)
		printf(" %6s", commas(second));
	printf(" %9.2f %9.2f %9.2f %8.1f\n", cycles, runs->value[0],
	       runs->value[runs->count - 1], spread);
}

/* All figures are measured before any is printed: each may turn out to be misjudged. */
static struct runs found[FIGURES];
static unsigned int place;
static bool printing;

static void table(const char *name, const char *title, const char *key, const char *second)
{
	if (!printing)
		return;
	if (opt_json) {
		json_array(name);
		return;
	}
	printf("\n%s\n%10s", title, key);
	if (second)
		printf(" %6s", second);
	printf(" %9s %9s %9s %8s\n", "cycles", "lowest", "highest", "spread %");
}

static void table_end(void)
{
	if (printing && opt_json)
		json_end();
}

static void figure(const char *key, uint64_t first, uint64_t second, uint64_t nodes,
		   uint64_t stride, uint64_t offset)
{
	struct runs *runs;
	long i;

	if (place == FIGURES)
		fail("too many figures");
	runs = &found[place++];
	if (printing) {
		print_figure(key, first, second, runs);
		return;
	}
	/* A big ring is measured without regard to others on the core. */
	if (runs->count && nodes > BIG)
		return;
	memset(runs, 0, sizeof(*runs));
	for (i = 0; i < run_count; i++) {
		progress("%s %s: run %ld of %ld", key, commas(first), i + 1, run_count);
		runs_add(runs, measure(nodes, stride, offset));
	}
}

static void by_size(void)
{
	static const unsigned int sizes[] = {
		4, 16, 32, 40, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
		131072, 262144, 524288, 1048576,
	};
	unsigned int i;

	table("by_size", "by size: a node in each line, huge pages if the kernel has some", "KiB",
	      NULL);
	for (i = 0; i < COUNT(sizes) && sizes[i] <= most; i++)
		figure("kib", sizes[i], 0, sizes[i] * UINT64_C(1024) / LINE, LINE, 0);
	table_end();
}

/* L1 data cache: number of lines per set, and their distance in memory */
static uint64_t ways = 8, way_size = 4096;

/* Caches of different kinds of cores differ, and a CPU that is offline shows none. */
static void ask_cache(void)
{
	char *cache = format_text("/sys/devices/system/cpu/cpu%d/cache/index0", sched_getcpu());
	char *type = files_read("%s/type", cache);
	long number;

	if (type && !strcmp(type, "Data")) {
		number = files_number(0, "%s/ways_of_associativity", cache);
		if (number > 0 && number <= 64)
			ways = number;
		number = files_number(0, "%s/number_of_sets", cache);
		if (number > 0 && number <= 65536)
			way_size = number * LINE;
	}
	free(type);
	free(cache);
}

static void by_set(void)
{
	const uint64_t nodes[] = { ways / 2, ways, ways + 1, ways + ways / 2, 2 * ways, 4 * ways };
	unsigned int i;

	table("by_set", "by set: nodes that map to one set of the L1 cache", "stride", "nodes");
	for (i = 0; i < COUNT(nodes); i++)
		if (nodes[i] && nodes[i] * way_size <= most * UINT64_C(1024))
			figure("stride", way_size, nodes[i], nodes[i], way_size, 0);
	table_end();
}

static void by_alignment(void)
{
	static const unsigned int offsets[] = { 0, 4, 8, 25, 32, 56, 57, 60, 63 };
	unsigned int i;

	table("by_alignment_l1",
	      "by alignment: offset in the line, L1 hit\n(crossing a line in 1998: 9 cycles more on Pentium II)",
	      "offset", NULL);
	for (i = 0; i < COUNT(offsets); i++)
		figure("offset", offsets[i], 0, 4, 4 * LINE, offsets[i]);
	table_end();
	table("by_alignment_l2",
	      "by alignment: L1 miss, L2 hit\n(crossing a line in 1998: 38 cycles more on Pentium II)",
	      "offset", NULL);
	for (i = 0; i < COUNT(offsets); i++)
		figure("offset", offsets[i], 0, 2 * ways, way_size, offsets[i]);
	table_end();
}

static void tables(void)
{
	place = 0;
	if (by == BY_SIZE || by == BY_ALL)
		by_size();
	if (by == BY_SET || by == BY_ALL)
		by_set();
	if (by == BY_ALIGNMENT || by == BY_ALL)
		by_alignment();
}

static int run(int operands, char **operand)
{
	uint64_t size = most * UINT64_C(1024);
	double core;
	char *all;

	(void)operands;
	(void)operand;
	/* From here on the thread stays on a CPU, or on CPUs of one kind. */
	core_begin();
	ask_cache();
	if (size < (4 * ways + 1) * way_size)
		size = (4 * ways + 1) * way_size;
	all = mmap(NULL, size + 2 * HUGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		fail("not enough memory for a ring of %ld KiB; see --max", most);
	memory = (char *)(((uintptr_t)all + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	madvise(memory, size + HUGE, MADV_HUGEPAGE);
	core_patience(wait_s < 0 ? run_count * CORE_PATIENCE_S : wait_s);
	core = tsc_per_core_cycle();
	do {
		tables();
	} while (core_misjudged());
	progress_end();
	printing = true;
	if (opt_json) {
		json_object(NULL);
		json_real("tsc_per_core_cycle", core, 4);
		json_number("runs", run_count);
	} else {
		printf("core cycles of a load, from %ld runs; a core cycle is %.4f TSC cycles\n",
		       run_count, core);
	}
	tables();
	if (opt_json) {
		json_number("crowded", core_crowded());
		json_end();
	} else if (core_crowded()) {
		printf("\nthe core was shared with other work in %ld repetitions of small rings\n",
		       core_crowded());
	}
	munmap(all, size + 2 * HUGE);
	return 0;
}

const struct command memory_command = {
	.name = "memory",
	.summary = "Measure the latency of loads by size, cache set and alignment",
	.about = "Needs neither the module nor root. What is shared with others, such as a virtual\n"
		 "machine's last-level cache and memory, has a large spread: such figures do not\n"
		 "describe this machine.",
	.options = options,
	.run = run,
};
