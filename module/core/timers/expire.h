/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_EXPIRE_H
#define _APIC_TIMER_EXPIRE_H

struct apic_timer_mux;

void apic_timer_expire_due(struct apic_timer_mux *mux);

#endif /* _APIC_TIMER_EXPIRE_H */
