/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_LINE_H
#define _APIC_CLOCK_PHC_LINE_H

#include <linux/apic_clock.h>
#include <linux/types.h>

#include "phc_map.h"

/* Maximum number of attached clocks. */
#define APIC_CLOCK_PHCS	16

/**
 * struct apic_clock_published - a clock's state as timers use it
 * @clock:	its number; 0: the slot is free
 * @ret:	0, or -ENODEV: the clock is gone
 * @line:	its line
 */
struct apic_clock_published {
	clockid_t clock;
	int ret;
	struct apic_clock_phc_line line;
};

unsigned int apic_clock_phc_slot(clockid_t clock);
clockid_t apic_clock_phc_number(unsigned int slot, unsigned int given);
void apic_clock_phc_publish(unsigned int slot, const struct apic_clock_published *published);
struct apic_clock_published apic_clock_phc_published(unsigned int slot);
int apic_clock_phc_line(clockid_t clock, struct apic_clock_phc_line *line);
void apic_clock_phc_line_init(void);

#endif /* _APIC_CLOCK_PHC_LINE_H */
