/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SELFTEST_2001_H
#define _APIC_TIMER_SELFTEST_2001_H

void consumer_2001_start(void);
int consumer_2001_fired(void);
void consumer_2001_stop(void);

#endif /* _APIC_TIMER_SELFTEST_2001_H */
