/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SOURCE_SIM_H
#define _APIC_TIMER_SOURCE_SIM_H

#include <linux/types.h>

#include "lib/counter.h"
#include "tsc/sim.h"

/**
 * struct apic_timer_sim_machine - a machine to simulate
 * @tsc_khz:	TSC frequency
 * @counter_hz:	true rate of the undivided one-shot counter, Hz; 0: the machine
 *		has the TSC-deadline mode
 * @believed_hz: the rate that calibration found, Hz; 0: the true one
 * @max_delta:	maximum that the timer can be programmed ahead, TSC cycles, if
 *		less than the mode allows; 0: the mode's maximum
 * @cost:	TSC cycles that each read of the TSC and each programming takes
 * @latency:	TSC cycles from the timer's firing to its interrupt
 * @tsc:	TSC at the beginning
 * @kernel_event: the kernel's clock event handler, or NULL; called from the
 *		interrupt when the deadline of %APIC_TIMER_MUX_KERNEL is due
 */
struct apic_timer_sim_machine {
	u32 tsc_khz;
	u64 counter_hz;
	u64 believed_hz;
	u64 max_delta;
	u64 cost;
	u64 latency;
	u64 tsc;
	void (*kernel_event)(u64 now);
};

/**
 * struct apic_timer_sim - the simulated machine
 * @machine:	its properties
 * @counter:	the counter's rate as the core sees it
 * @now:	TSC
 * @active:	the timer is running
 * @fires:	TSC at which it fires, if @active
 * @requested:	it has fired and was programmed again since: the interrupt is
 *		still pending
 * @delta:	TSC cycles that it was last programmed ahead
 * @count:	last value programmed into the counter
 * @programmed:	number of times that it was programmed
 * @interrupts:	number of its interrupts
 * @smi:	TSC cycles by which an SMI prolongs the next wait
 * @irqs_on:	TSC when it was last read with interrupts on
 * @irqs_off:	longest time from there to a read with interrupts off
 */
struct apic_timer_sim {
	struct apic_timer_sim_machine machine;
	struct apic_timer_counter counter;
	u64 now;
	bool active;
	u64 fires;
	bool requested;
	u64 delta;
	struct apic_timer_counter_value count;
	unsigned long programmed;
	unsigned long interrupts;
	u64 smi;
	u64 irqs_on;
	u64 irqs_off;
};

extern struct apic_timer_sim apic_timer_sim;

void apic_timer_sim_kernel(u64 tsc);
int apic_timer_sim_start(const struct apic_timer_sim_machine *machine);
unsigned long apic_timer_sim_run(u64 until, unsigned long limit);
u64 apic_timer_sim_ticks_to_cycles(u64 ticks, u64 tsc_hz, u64 counter_hz);

#endif /* _APIC_TIMER_SOURCE_SIM_H */
