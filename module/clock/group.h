/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_GROUP_H
#define _APIC_CLOCK_GROUP_H

struct module;

void apic_clock_groups_stop(const struct module *module);
void apic_clock_groups_free(const struct module *module);

#endif /* _APIC_CLOCK_GROUP_H */
