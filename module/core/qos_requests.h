/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QOS_REQUESTS_H
#define _APIC_TIMER_QOS_REQUESTS_H

#ifdef CONFIG_APIC_TIMER_SIM

static inline void apic_timer_qos_restart(void) {}
static inline int apic_timer_qos_requested(unsigned int cpu) { return -1; }
static inline void apic_timer_qos_online(void) {}
static inline void apic_timer_qos_offline(void) {}
static inline int apic_timer_qos_init(void) { return 0; }
static inline void apic_timer_qos_exit(void) {}

#else

void apic_timer_qos_restart(void);
int apic_timer_qos_requested(unsigned int cpu);
void apic_timer_qos_online(void);
void apic_timer_qos_offline(void);
int apic_timer_qos_init(void);
void apic_timer_qos_exit(void);

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_QOS_REQUESTS_H */
