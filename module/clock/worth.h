/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_WORTH_H
#define _APIC_CLOCK_WORTH_H

#include <linux/apic_clock.h>

void apic_clock_worth_add(struct apic_clock_verdict *verdict, const struct apic_clock_skew *skew,
			  int ret);
void apic_clock_worth_conclude(struct apic_clock_verdict *verdict);
const char *apic_clock_worth_reason(const struct apic_clock_verdict *verdict);
const char *apic_clock_worth_name(enum apic_clock_worth worth);

#endif /* _APIC_CLOCK_WORTH_H */
