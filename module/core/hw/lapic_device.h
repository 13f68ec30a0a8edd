/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_DEVICE_H
#define _APIC_TIMER_LAPIC_DEVICE_H

struct clock_event_device;

struct clock_event_device *apic_timer_lapic_device(const char *source,
						   unsigned int cpu);
void apic_timer_lapic_device_register(struct clock_event_device *device,
				      unsigned long min_delta, unsigned long max_delta);

#endif /* _APIC_TIMER_LAPIC_DEVICE_H */
