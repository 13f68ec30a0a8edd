/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_JUDGE_H
#define _APIC_CLOCK_JUDGE_H

void apic_clock_judge_soon(void);
int apic_clock_judge_init(void);
void apic_clock_judge_exit(void);

#endif /* _APIC_CLOCK_JUDGE_H */
