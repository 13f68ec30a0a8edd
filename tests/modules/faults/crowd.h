/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_CROWD_H
#define _APIC_TIMER_CROWD_H

struct apic_timer_list;

int apic_timer_crowd_add(struct apic_timer_list *timer);

#endif /* _APIC_TIMER_CROWD_H */
