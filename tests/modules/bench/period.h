/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_BENCH_PERIOD_H
#define _APIC_TIMER_BENCH_PERIOD_H

int bench_period_init(void);
void bench_period_exit(void);

#endif /* _APIC_TIMER_BENCH_PERIOD_H */
