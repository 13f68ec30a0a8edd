/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_GUARD_H
#define _APIC_TIMER_GUARD_H

void apic_timer_guard_init(void (*quiet_work)(void));
void apic_timer_guard_exit(void);
void apic_timer_guard_online(void);
void apic_timer_guard_offline(void);

#endif /* _APIC_TIMER_GUARD_H */
