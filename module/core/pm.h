/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SLEEP_H
#define _APIC_TIMER_SLEEP_H

void apic_timer_sleep_begin(void);
void apic_timer_sleep_end(void);
void apic_timer_sleep_init(void);
void apic_timer_sleep_exit(void);

#endif /* _APIC_TIMER_SLEEP_H */
