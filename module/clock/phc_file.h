/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_FILE_H
#define _APIC_CLOCK_PHC_FILE_H

#include <linux/types.h>

struct apic_clock_rate;
struct apic_clock_reading;
struct file;

/**
 * struct apic_clock_phc_known - what the reads of a clock have shown; all 0 at first
 * @step:	step in which the clock counts, as far as known, ns
 * @frequency:	its steering frequency, ppm times 2^16
 * @ask_at:	jiffies from which on the driver is asked for @frequency again
 */
struct apic_clock_phc_known {
	u64 step;
	s64 frequency;
	u64 ask_at;
};

struct file *apic_clock_phc_open(int index);
void apic_clock_phc_close(struct file *file);
int apic_clock_phc_read(struct file *file, const struct apic_clock_rate *runs,
			struct apic_clock_phc_known *known, struct apic_clock_reading *reading);

#endif /* _APIC_CLOCK_PHC_FILE_H */
