/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SIM_H
#define _APIC_TIMER_SIM_H

#include <linux/types.h>

/*
 * The simulated TSC, for tests: functions of the simulated machine
 * (sources/sim.c) that tsc.h and spin.h need.
 */
u64 apic_timer_sim_now(void);
u64 apic_timer_sim_wait(u64 until);
u32 apic_timer_sim_tsc_khz(void);

#endif /* _APIC_TIMER_SIM_H */
