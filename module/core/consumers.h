/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_CONSUMERS_H
#define _APIC_TIMER_CONSUMERS_H

#include <linux/types.h>

struct module;

void apic_timer_consumers_live(const struct module *module);
bool apic_timer_consumers_going(const struct module *module);

#endif /* _APIC_TIMER_CONSUMERS_H */
