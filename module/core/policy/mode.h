/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_MODE_H
#define _APIC_TIMER_MODE_H

#include <linux/apic_timer.h>

/* The default mode: one of APIC_TIMER_RAW, _MEAN and _EXACT. */
extern unsigned int apic_timer_mode_default;

static inline unsigned int
apic_timer_mode_of(const struct apic_timer_list *timer)
{
	return timer->flags & APIC_TIMER_MODE_MASK ?: apic_timer_mode_default;
}

const char *apic_timer_mode_name(unsigned int mode);
int apic_timer_mode_init(void);

#endif /* _APIC_TIMER_MODE_H */
