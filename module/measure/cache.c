// SPDX-License-Identifier: GPL-2.0
/*
 * Fill caches with other data, or flush lines from them. This costs other users of the
 * caches no more than a program that reads as much memory. Caches are neither disabled nor
 * flushed as a whole: that would slow all CPUs and guests of the machine.
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
#define CODE		512	/* size of a handler, and more */

/**
 * measure_walk_init() - allocate the memory to walk through
 * @walk:	the walk to initialise
 * @cache:	&enum apic_measure_cache; only %APIC_MEASURE_WALK needs memory
 * @kib:	size in KiB
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
	/* Zeroed, because the walk only reads it. */
	walk->memory = vzalloc(walk->size);
	return walk->memory ? 0 : -ENOMEM;
}

/**
 * measure_walk_exit() - free the memory of a walk
 * @walk:	the walk
 *
 * Context: Task.
 */
void measure_walk_exit(struct measure_walk *walk)
{
	vfree(walk->memory);
}

/**
 * measure_walk() - read one byte of each cache line
 * @walk:	the walk
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
 * Some lines after the function are flushed as well. Where the compiler has redirected the
 * function's address to a jump table, the table's lines are flushed instead.
 *
 * Context: Any.
 */
void measure_flush_code(const void *function)
{
	/* Only the function's own page is sure to be readable. */
	measure_flush_data((void *)function,
			   min_t(size_t, CODE, PAGE_SIZE - offset_in_page(function)));
}

/**
 * measure_flush_data() - flush the lines of data from all caches
 * @data:	the data
 * @size:	its size
 *
 * Context: Any.
 */
void measure_flush_data(void *data, size_t size)
{
	clflush_cache_range(data, size);
}
