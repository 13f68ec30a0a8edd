/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_FILE_H
#define _APIC_CLOCK_PHC_FILE_H

#include <linux/types.h>

struct apic_clock_rate;
struct apic_clock_reading;
struct file;

struct file *apic_clock_phc_open(int index);
void apic_clock_phc_close(struct file *file);
int apic_clock_phc_read(struct file *file, const struct apic_clock_rate *runs, u64 *step,
			struct apic_clock_reading *reading, s64 *frequency);

#endif /* _APIC_CLOCK_PHC_FILE_H */
