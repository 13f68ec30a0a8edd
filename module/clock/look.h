/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_LOOK_H
#define _APIC_CLOCK_LOOK_H

void apic_clock_look(void);
int apic_clock_look_init(void);
void apic_clock_look_exit(void);

#endif /* _APIC_CLOCK_LOOK_H */
