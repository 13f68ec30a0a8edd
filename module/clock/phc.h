/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_H
#define _APIC_CLOCK_PHC_H

#include <linux/apic_clock.h>
#include <linux/types.h>

struct apic_clock_phc_line;
struct module;
struct seq_file;

int apic_clock_phc_line(clockid_t clock, struct apic_clock_phc_line *line);
void apic_clock_phc_show(struct seq_file *file);
void apic_clock_phc_unload(const struct module *module);
void apic_clock_phc_init(void);
void apic_clock_phc_exit(void);

#endif /* _APIC_CLOCK_PHC_H */
