/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_MOMENT_H
#define _APIC_TIMER_DEVICE_MOMENT_H

#include <linux/types.h>

struct apic_timer_list;

bool device_moment_clock(u32 clock);
u64 device_moment_of_caller(u32 clock, u64 expires);
u64 device_moment_tsc(u32 clock, u64 expires);
u64 device_moment_now(u32 clock, u64 tsc);
bool device_moment_tick_between(u64 from, u64 to);
u64 device_moment_leg(u32 clock, u64 tsc, u64 now);
int device_moment_arm(struct apic_timer_list *timer);

#endif /* _APIC_TIMER_DEVICE_MOMENT_H */
