/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_ATTACH_H
#define _APIC_TIMER_ATTACH_H

struct apic_timer_info;

int apic_timer_attach_init(void);
void apic_timer_attach_exit(void);
void apic_timer_attach_refine(void);
const char *apic_timer_attach_hardware_name(const struct apic_timer_info *info);

#endif /* _APIC_TIMER_ATTACH_H */
