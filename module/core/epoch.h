/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_EPOCH_H
#define _APIC_TIMER_EPOCH_H

#include <linux/types.h>

struct module;

void apic_timer_epoch_begin(s64 shift);
void apic_timer_epoch_drain_module(const struct module *module);
void apic_timer_epoch_init(void);
void apic_timer_epoch_exit(void);

#endif /* _APIC_TIMER_EPOCH_H */
