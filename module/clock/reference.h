/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_REFERENCE_H
#define _APIC_CLOCK_REFERENCE_H

#include <linux/types.h>

/**
 * struct apic_clock_reference - a counter that continues when TSCs stop
 * @name:	its name
 * @period_fs:	length of a tick, 10^-15 s
 * @bits:	width in bits, at most 32
 */
struct apic_clock_reference {
	const char *name;
	u64 period_fs;
	unsigned int bits;
};

const struct apic_clock_reference *apic_clock_reference_find(const char *wanted);
u32 apic_clock_reference_read(void);
void apic_clock_reference_put(void);

#endif /* _APIC_CLOCK_REFERENCE_H */
