// SPDX-License-Identifier: GPL-2.0
/*
 * Learn from a sleeper's wake-ups how early to wake it.
 *
 * A late interrupt cannot be compensated for, and after an early one the thread has to wait
 * longer. The lead is therefore a high quantile of the wake-up's length, but exceeds the mean
 * by a limited amount: where a few wake-ups are far longer than the rest, as during a storm of
 * softirqs, it would cost too much to wait for the longest each time.
 *
 * An idle CPU that has slept through a tick first brings the kernel's clocks up to date,
 * which takes a third as long as the wake-up. It is known in advance whether it will, so
 * each kind of wake-up has its own estimate.
 */
#include <linux/minmax.h>

#include "learn.h"

/* In units of %APIC_TIMER_QUANTILE_ONE. */
#define BACK_QUANTILE	9900
/*
 * The lead adds the quantile's distance from the mean, shifted right by this, because rarer
 * wake-ups take even longer.
 */
#define MARGIN_SHIFT	2
/* Initial guess of the return to user space, in TSC cycles. */
#define BACK_GUESS	600

/**
 * device_learn_init() - initialise the estimates
 * @learn:	the estimates
 * @guess:	initial guess of how long a wake-up may take, in TSC cycles
 * @quantile:	quantile of wake-ups to cover, in units of %APIC_TIMER_QUANTILE_ONE
 */
void device_learn_init(struct device_learn *learn, u64 guess, unsigned int quantile)
{
	unsigned int kind;

	*learn = (struct device_learn) { };
	for (kind = 0; kind < DEVICE_WAKES; kind++)
		apic_timer_estimate_init(&learn->wake[kind], guess, quantile);
	apic_timer_estimate_init(&learn->back, BACK_GUESS, BACK_QUANTILE);
}

/**
 * device_learn_wake() - add the length of a wake-up
 * @learn:	the estimates
 * @kind:	kind of the wake-up
 * @cycles:	TSC cycles from the armed moment until the thread ran in the kernel
 */
void device_learn_wake(struct device_learn *learn, enum device_wake kind, u64 cycles)
{
	unsigned int other;

	for (other = 0; other < DEVICE_WAKES; other++)
		if (other != kind)
			apic_timer_estimate_pass(&learn->wake[other]);
	apic_timer_estimate_add(&learn->wake[kind], cycles);
}

/**
 * device_learn_back() - add the length of a return to user space
 * @learn:	the estimates
 * @cycles:	TSC cycles from the end of the wake-up to the thread's first instruction in
 *		user space
 */
void device_learn_back(struct device_learn *learn, u64 cycles)
{
	apic_timer_estimate_add(&learn->back, cycles);
}

/**
 * device_learn_least() - add the length of a kernel exit after a wait in the kernel
 * @learn:	the estimates
 * @kind:	kind of the exit
 * @cycles:	TSC cycles from the last TSC read in the kernel to the first in user space
 */
void device_learn_least(struct device_learn *learn, enum device_return kind,
			u64 cycles)
{
	if (cycles && (!learn->least[kind] || cycles < learn->least[kind]))
		learn->least[kind] = cycles;
}

/**
 * device_learn_lead() - return how long before a moment to arm
 * @learn:	the estimates
 * @kind:	kind of the wake-up
 * @cost:	maximum mean wait of a sleeper, in TSC cycles
 * @budget:	maximum wait of a sleeper, in TSC cycles
 *
 * Return: TSC cycles.
 */
u64 device_learn_lead(const struct device_learn *learn, enum device_wake kind,
		      u64 cost, u64 budget)
{
	u64 wake = apic_timer_estimate_high(&learn->wake[kind]);
	u64 mean = apic_timer_estimate_mean(&learn->wake[kind]);
	u64 back = apic_timer_estimate_high(&learn->back);

	if (mean && wake > mean) {
		wake += (wake - mean) >> MARGIN_SHIFT;
		wake = min(wake, mean + cost);
	}
	return min(wake + back, budget);
}

/**
 * device_learn_exit() - return how long before a moment to leave the kernel
 * @learn:	the estimates
 * @kind:	kind of the exit
 *
 * The thread should not be early: return the shortest exit seen, less a quarter in case one is
 * shorter still, or 0 if none was seen. Where the CPU's clock has risen, that may not be enough.
 *
 * Return: TSC cycles.
 */
u64 device_learn_exit(const struct device_learn *learn, enum device_return kind)
{
	return learn->least[kind] - learn->least[kind] / 4;
}
