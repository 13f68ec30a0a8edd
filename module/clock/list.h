/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_LIST_H
#define _APIC_CLOCK_LIST_H

#include <linux/types.h>

struct apic_clock_timer;

/**
 * struct apic_clock_wanted - the timers to find in the list, and their use
 * @is:		whether a timer is wanted; it is in the list, and may be changing
 * @of:		passed to @is
 * @locked:	@use is called under the timer's lock, with interrupts off, and unlocks it.
 *		Otherwise no other code uses the timer, and @use deletes it.
 * @use:	called for each timer; its results are added up
 */
struct apic_clock_wanted {
	bool (*is)(const struct apic_clock_timer *timer, const void *of);
	const void *of;
	bool locked;
	unsigned int (*use)(struct apic_clock_timer *timer);
};

void apic_clock_timer_enlist(struct apic_clock_timer *timer);
void apic_clock_timer_delist(struct apic_clock_timer *timer);
unsigned int apic_clock_list_each(const struct apic_clock_wanted *wanted);
void apic_clock_list_init(void);

#endif /* _APIC_CLOCK_LIST_H */
