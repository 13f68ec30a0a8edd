/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_PM_H
#define _APIC_TIMER_PM_H

void apic_timer_pm_suspend(u64 clock);
void apic_timer_pm_resume(u64 clock);
void apic_timer_pm_restart(void);
void apic_timer_pm_init(void);
void apic_timer_pm_exit(void);

#endif /* _APIC_TIMER_PM_H */
