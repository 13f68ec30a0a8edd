/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_PERIOD_H
#define _APIC_TIMER_PERIOD_H

#include <linux/apic_timer.h>

u64 apic_timer_period_moment(const struct apic_timer_period *period, u64 n,
			     u32 khz);

#endif /* _APIC_TIMER_PERIOD_H */
