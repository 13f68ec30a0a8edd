/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_TRUST_H
#define _APIC_CLOCK_TRUST_H

struct apic_clock_verdict;
struct module;

void apic_clock_trust_update(const struct apic_clock_verdict *verdict);
void apic_clock_trust_drain_module(const struct module *module);

#endif /* _APIC_CLOCK_TRUST_H */
