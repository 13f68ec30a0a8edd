/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DRAIN_H
#define _APIC_TIMER_DRAIN_H

#include "timers/base.h"

struct module;

bool apic_timer_drain_cancels(struct apic_timer_base *base,
			      struct apic_timer_list *timer)
	__must_hold(&base->lock);
void apic_timer_drain_all(void);
void apic_timer_drain_module(const struct module *module);
void apic_timer_drain_cpu(void);

#endif /* _APIC_TIMER_DRAIN_H */
