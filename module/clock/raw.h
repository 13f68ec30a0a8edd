/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_RAW_H
#define _APIC_CLOCK_RAW_H

struct apic_clock_verdict;

void apic_clock_raw_judge(struct apic_clock_verdict *verdict);

#endif /* _APIC_CLOCK_RAW_H */
