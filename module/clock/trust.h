/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_TRUST_H
#define _APIC_CLOCK_TRUST_H

struct apic_clock_verdict;

void apic_clock_trust_update(const struct apic_clock_verdict *verdict);

#endif /* _APIC_CLOCK_TRUST_H */
