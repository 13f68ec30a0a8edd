/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_CALIBRATE_H
#define _APIC_TIMER_CALIBRATE_H

#include <linux/types.h>

/* Two successive reads of the TSC differ by less, unless it is emulated. */
#define APIC_TIMER_CALIBRATE_DELTAS	128
/* Larger than any plausible call, so that nothing is subtracted. */
#define APIC_TIMER_CALIBRATE_NO_STEPS	127

void apic_timer_calibrate(void);
void apic_timer_calibrate_watch(void);
u64 apic_timer_calibrate_steps(const u16 *seen, unsigned int reads);
void apic_timer_calibrate_exit(void);

/* In probe.S: a handler that reads the TSC with its first instruction. */
void apic_timer_probe(unsigned long long now, unsigned long data);

#endif /* _APIC_TIMER_CALIBRATE_H */
