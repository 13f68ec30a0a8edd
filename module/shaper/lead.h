/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_LEAD_H
#define _SHAPER_LEAD_H

#include <linux/types.h>

/**
 * enum shaper_lead_found - state of the CPU when the timer expired
 * @SHAPER_LEAD_KERNEL:	running kernel code
 * @SHAPER_LEAD_USER:	running a program; as a class, only after several such packets in a row
 * @SHAPER_LEAD_IDLE:	idle
 * @SHAPER_LEAD_CLASSES: number of states
 */
enum shaper_lead_found {
	SHAPER_LEAD_KERNEL,
	SHAPER_LEAD_USER,
	SHAPER_LEAD_IDLE,
	SHAPER_LEAD_CLASSES
};

/**
 * struct shaper_lead_class - packets whose predecessor found the CPU in the same state
 * @before:	longest preparation in the previous window, TSC cycles
 * @longest:	longest preparation in this window, TSC cycles
 * @count:	preparations in this window so far
 * @window:	length of this window, preparations
 */
struct shaper_lead_class {
	u32 before;
	u32 longest;
	u32 count;
	u32 window;
};

/**
 * struct shaper_lead - time before a packet's moment at which its timer must expire
 * @cycles:	the lead, TSC cycles
 * @usual:	lead that is enough for most packets, TSC cycles
 * @guess:	lead while nothing is known, TSC cycles
 * @least:	minimum lead, except where a program runs, TSC cycles
 * @max:	maximum lead, TSC cycles
 * @window:	maximum length of a window, preparations
 * @mean:	mean of the recent preparations, TSC cycles << %SHAPER_LEAD_SHIFT
 * @now:	class of the next packet
 * @programs:	latest packets in a row that found a program; at most %SHAPER_LEAD_PROGRAMS
 * @class:	the classes, by &enum shaper_lead_found
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
	u32 programs;
	struct shaper_lead_class class[SHAPER_LEAD_CLASSES];
};

/* log2 of the approximate number of preparations that enter the mean. */
#define SHAPER_LEAD_SHIFT	4
/* Packets in a row that must find a program before the next one gets the program's class. */
#define SHAPER_LEAD_PROGRAMS	8
/* Minimum length of a window, preparations. */
#define SHAPER_LEAD_WINDOW	64

void shaper_lead_init(struct shaper_lead *lead, u32 guess, u32 least, u32 max, u32 window);
void shaper_lead_learn(struct shaper_lead *lead, u64 took, enum shaper_lead_found found);

#endif /* _SHAPER_LEAD_H */
