/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_H
#define _APIC_TIMER_LAPIC_H

#include <linux/apic_timer.h>

#include "lapic_clock.h"

struct clock_event_device;

/**
 * struct apic_timer_lapic - the LAPIC timer of a CPU
 * @tsc_deadline: programmed by the TSC-deadline MSR, otherwise one-shot
 * @clock:	rate of the one-shot counter
 * @cost:	TSC cycles from reading the TSC to having programmed the counter
 * @divider:	log2 of the divider that the hardware has, or negative if that
 *		isn't known
 *
 * Touched by its own CPU, interrupts off.
 */
struct apic_timer_lapic {
	bool tsc_deadline;
	struct apic_timer_lapic_clock clock;
	u64 cost;
	int divider;
};

int apic_timer_lapic_init(struct apic_timer_lapic *lapic,
			  const struct clock_event_device *device);
void apic_timer_lapic_ready(struct apic_timer_lapic *lapic);
u64 apic_timer_lapic_program(struct apic_timer_lapic *lapic, u64 fire);
bool apic_timer_lapic_x2apic(void);

#endif /* _APIC_TIMER_LAPIC_H */
