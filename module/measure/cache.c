// SPDX-License-Identifier: GPL-2.0
/*
 * Caches that have something else, or nothing. What is done costs other users of
 * the caches no more than a program that reads as much memory: caches are neither
 * disabled nor flushed as a whole, which all CPUs and guests of the machine would
 * pay for.
 */
#include <linux/apic_timer.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <asm/cacheflush.h>

#include "cache.h"
#include "measure.h"

#define LINE		64
#define WALK_KIB_MAX	65536
#define CODE		512	/* of a handler, and more */

/**
 * measure_walk_init() - allocate what is walked through
 * @walk:	where to put it
 * @cache:	&enum apic_measure_cache; only %APIC_MEASURE_WALK needs any
 * @kib:	KiB
 *
 * Context: Task. Sleeps.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int measure_walk_init(struct measure_walk *walk, u32 cache, u32 kib)
{
	walk->memory = NULL;
	walk->size = 0;
	if (cache >= APIC_MEASURE_CACHES)
		return -EINVAL;
	if (cache != APIC_MEASURE_WALK)
		return kib ? -EINVAL : 0;
	if (!kib || kib > WALK_KIB_MAX)
		return -EINVAL;
	walk->size = (size_t)kib << 10;
	/* Zeroed, and so not all of it the same page. */
	walk->memory = vzalloc(walk->size);
	return walk->memory ? 0 : -ENOMEM;
}

/**
 * measure_walk_exit() - free it
 * @walk:	it
 *
 * Context: Task.
 */
void measure_walk_exit(struct measure_walk *walk)
{
	vfree(walk->memory);
}

/**
 * measure_walk() - read a byte of each of its lines
 * @walk:	it
 *
 * Context: Any.
 */
void measure_walk(const struct measure_walk *walk)
{
	size_t at;

	for (at = 0; at < walk->size; at += LINE)
		READ_ONCE(walk->memory[at]);
}

/**
 * measure_flush_code() - flush the lines of a function from all caches
 * @function:	the function
 *
 * And some after it. Where the compiler has made it a call through a table, the
 * table's.
 *
 * Context: Any.
 */
void measure_flush_code(const void *function)
{
	/* What is on the function's page can be read. */
	measure_flush_data((void *)function,
			   min_t(size_t, CODE, PAGE_SIZE - offset_in_page(function)));
}

/**
 * measure_flush_data() - flush the lines of data from all caches
 * @data:	the data
 * @size:	of it
 *
 * Context: Any.
 */
void measure_flush_data(void *data, size_t size)
{
	clflush_cache_range(data, size);
}
