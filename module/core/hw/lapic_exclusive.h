/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_FREE_H
#define _APIC_TIMER_LAPIC_FREE_H

struct apic_timer_lapic;

int apic_timer_lapic_free_take(struct apic_timer_lapic *lapic);
void apic_timer_lapic_free_set_up(struct apic_timer_lapic *lapic);
void apic_timer_lapic_free_release(void);

#endif /* _APIC_TIMER_LAPIC_FREE_H */
