/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_WATCHDOG_H
#define _APIC_TIMER_WATCHDOG_H

void apic_timer_watchdog_init(void (*quiet_work)(void));
void apic_timer_watchdog_exit(void);
void apic_timer_watchdog_online(void);
void apic_timer_watchdog_offline(void);

#endif /* _APIC_TIMER_WATCHDOG_H */
