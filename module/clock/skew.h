/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_SKEW_H
#define _APIC_CLOCK_SKEW_H

#include <linux/types.h>

u64 apic_clock_tsc_step(void);
int apic_clock_skew_measure_all(void);
int apic_clock_skew_init(void (*news)(void));
void apic_clock_skew_exit(void);

#endif /* _APIC_CLOCK_SKEW_H */
