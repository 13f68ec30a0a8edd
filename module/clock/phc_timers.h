/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_TIMERS_H
#define _APIC_CLOCK_PHC_TIMERS_H

#include <linux/types.h>

unsigned int apic_clock_timers_lose(clockid_t clock);
void apic_clock_timers_renew(clockid_t clock);

#endif /* _APIC_CLOCK_PHC_TIMERS_H */
