/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_VERDICT_H
#define _APIC_CLOCK_VERDICT_H

#include <linux/time64.h>
#include <linux/types.h>

bool apic_clock_tsc_adjust(int cpu, s64 *cycles);
s64 apic_clock_rate_ppb(clockid_t clock);

#endif /* _APIC_CLOCK_VERDICT_H */
