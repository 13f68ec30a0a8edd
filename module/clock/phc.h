/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_H
#define _APIC_CLOCK_PHC_H

struct seq_file;

void apic_clock_phc_show(struct seq_file *file);
int apic_clock_phc_init(void);
void apic_clock_phc_exit(void);

#endif /* _APIC_CLOCK_PHC_H */
