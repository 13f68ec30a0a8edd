/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CLOCK_H
#define _SHAPER_CLOCK_H

#include <linux/ktime.h>
#include <linux/types.h>

u64 shaper_clock_to_tsc(clockid_t clock, ktime_t time);
u64 shaper_clock_look(u64 now, u64 at, u64 near);

#endif /* _SHAPER_CLOCK_H */
