/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_ADJUST_H
#define _APIC_CLOCK_ADJUST_H

int apic_clock_adjust(void);

#endif /* _APIC_CLOCK_ADJUST_H */
