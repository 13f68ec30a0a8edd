/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_LEARN_H
#define _APIC_TIMER_DEVICE_LEARN_H

#include <linux/apic_timer_estimate.h>
#include <linux/types.h>

/**
 * enum device_return - kinds of return to user space, which differ in length
 * @DEVICE_RETURN_STRAIGHT:	the thread never left the CPU
 * @DEVICE_RETURN_SWITCHED:	another thread ran in between: the return restores FPU
 *				state, rseq and the like
 * @DEVICE_RETURNS:		number of kinds
 */
enum device_return {
	DEVICE_RETURN_STRAIGHT,
	DEVICE_RETURN_SWITCHED,
	DEVICE_RETURNS,
};

/**
 * enum device_wake - kinds of wake-up, which differ in length
 * @DEVICE_WAKE_PLAIN:	no kernel tick is due before the moment
 * @DEVICE_WAKE_TICK:	a kernel tick is due: a CPU that has slept through it first brings
 *			the kernel's clocks up to date
 * @DEVICE_WAKES:	number of kinds
 */
enum device_wake {
	DEVICE_WAKE_PLAIN,
	DEVICE_WAKE_TICK,
	DEVICE_WAKES,
};

/**
 * struct device_learn - estimates of a sleeper's wake-up and return
 * @wake:	time from the armed moment until the thread runs in the kernel again, by
 *		kind
 * @back:	time from then to its first instruction in user space
 * @least:	shortest kernel exit after a wait in the kernel, by kind; 0: none seen
 */
struct device_learn {
	struct apic_timer_estimate wake[DEVICE_WAKES];
	struct apic_timer_estimate back;
	u64 least[DEVICE_RETURNS];
};

void device_learn_init(struct device_learn *learn, u64 guess, unsigned int quantile);
void device_learn_wake(struct device_learn *learn, enum device_wake kind, u64 cycles);
void device_learn_back(struct device_learn *learn, u64 cycles);
void device_learn_least(struct device_learn *learn, enum device_return kind,
			u64 cycles);
u64 device_learn_lead(const struct device_learn *learn, enum device_wake kind,
		      u64 cost, u64 budget);
u64 device_learn_exit(const struct device_learn *learn, enum device_return kind);

#endif /* _APIC_TIMER_DEVICE_LEARN_H */
