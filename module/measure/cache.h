/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_MEASURE_CACHE_H
#define _APIC_MEASURE_CACHE_H

#include <linux/types.h>

/* Otherwise unused memory to walk through. */
struct measure_walk {
	char *memory;
	size_t size;
};

int measure_walk_init(struct measure_walk *walk, u32 cache, u32 kib);
void measure_walk_exit(struct measure_walk *walk);
void measure_walk(const struct measure_walk *walk);
void measure_flush_code(const void *function);
void measure_flush_data(void *data, size_t size);

#endif /* _APIC_MEASURE_CACHE_H */
