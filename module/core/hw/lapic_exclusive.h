/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_EXCLUSIVE_H
#define _APIC_TIMER_LAPIC_EXCLUSIVE_H

struct apic_timer_lapic;

int apic_timer_lapic_exclusive_take(struct apic_timer_lapic *lapic);
void apic_timer_lapic_exclusive_setup(struct apic_timer_lapic *lapic);
void apic_timer_lapic_exclusive_release(void);

#endif /* _APIC_TIMER_LAPIC_EXCLUSIVE_H */
