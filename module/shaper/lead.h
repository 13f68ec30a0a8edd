/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_LEAD_H
#define _SHAPER_LEAD_H

#include <linux/types.h>

/**
 * struct shaper_lead - how much before its moment a packet's timer has to expire
 * @cycles:	that, TSC cycles
 * @max:	it is never more
 * @before:	longest preparation in the window before this one
 * @longest:	longest preparation in this window
 * @count:	preparations in this window
 */
struct shaper_lead {
	u32 cycles;
	u32 max;
	u32 before;
	u32 longest;
	u32 count;
};

void shaper_lead_init(struct shaper_lead *lead, u32 cycles, u32 max);
void shaper_lead_learn(struct shaper_lead *lead, u64 took);

#endif /* _SHAPER_LEAD_H */
