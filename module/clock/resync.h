/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_RESYNC_H
#define _APIC_CLOCK_RESYNC_H

#include <linux/types.h>

struct apic_clock_verdict;
struct seq_file;

void apic_clock_resync_judge(struct apic_clock_verdict *verdict);
void apic_clock_resync_show(struct seq_file *file);
int apic_clock_resync_now(void);
void apic_clock_resync_moved(s64 by);
int apic_clock_resync_init(void (*news)(void));
void apic_clock_resync_exit(void);

#endif /* _APIC_CLOCK_RESYNC_H */
