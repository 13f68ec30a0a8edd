/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_LEAD_H
#define _SHAPER_LEAD_H

#include <linux/types.h>

/**
 * enum shaper_lead_found - what the CPU was at when the timer expired
 * @SHAPER_LEAD_KERNEL:	the kernel's code
 * @SHAPER_LEAD_USER:	a program's
 * @SHAPER_LEAD_IDLE:	nothing
 * @SHAPER_LEAD_CLASSES: number of these
 */
enum shaper_lead_found {
	SHAPER_LEAD_KERNEL,
	SHAPER_LEAD_USER,
	SHAPER_LEAD_IDLE,
	SHAPER_LEAD_CLASSES
};

/**
 * struct shaper_lead_class - the packets whose predecessor found the CPU at the same
 * @before:	longest preparation in the window before this one, TSC cycles
 * @longest:	longest preparation in this window, TSC cycles
 * @count:	preparations in this window
 * @window:	preparations that this window has
 */
struct shaper_lead_class {
	u32 before;
	u32 longest;
	u32 count;
	u32 window;
};

/**
 * struct shaper_lead - how much before its moment a packet's timer has to expire
 * @cycles:	that, TSC cycles
 * @usual:	what would do for most packets, TSC cycles
 * @guess:	what it is while nothing is known, TSC cycles
 * @least:	it is never less but where a program runs, TSC cycles
 * @max:	it is never more, TSC cycles
 * @window:	longest window, preparations
 * @mean:	mean of the recent preparations, TSC cycles << %SHAPER_LEAD_SHIFT
 * @now:	the class of the next packet
 * @class:	what was learnt, by &enum shaper_lead_found
 */
struct shaper_lead {
	u32 cycles;
	u32 usual;
	u32 guess;
	u32 least;
	u32 max;
	u32 window;
	u32 mean;
	enum shaper_lead_found now;
	struct shaper_lead_class class[SHAPER_LEAD_CLASSES];
};

/* log2 of the number of preparations that the mean is of, about. */
#define SHAPER_LEAD_SHIFT	4
/* The shortest window, preparations. */
#define SHAPER_LEAD_WINDOW	64

void shaper_lead_init(struct shaper_lead *lead, u32 guess, u32 least, u32 max, u32 window);
void shaper_lead_learn(struct shaper_lead *lead, u64 took, enum shaper_lead_found found);

#endif /* _SHAPER_LEAD_H */
