// SPDX-License-Identifier: GPL-2.0
/*
 * How early to wake a sleeper, learnt from its own wake-ups.
 *
 * Too late an interrupt cannot be compensated for, and too early a one costs what
 * the thread then waits for. So the lead is a high quantile of the wake-up's length,
 * but exceeds the mean by no more than a limit: where wake-ups are longer once in a
 * while by far, as under a storm of softirqs, waiting for the longest with each one
 * would cost more than it brings.
 *
 * An idle CPU that has slept through a tick brings the kernel's clocks up to date
 * before it does anything else, which takes as long as a third of the wake-up.
 * Whether it will is known before, so each kind of wake-up has its own estimate.
 */
#include <linux/minmax.h>

#include "learn.h"

/* In units of %APIC_TIMER_QUANTILE_ONE. */
#define BACK_QUANTILE	9900
/*
 * log2 of the part of the quantile's distance from the mean that is added: a rarer
 * wake-up is longer.
 */
#define MARGIN_SHIFT	2
/* First guess of the way back to user space, TSC cycles. */
#define BACK_GUESS	600

/**
 * device_learn_init() - forget everything
 * @learn:	the estimates
 * @guess:	how long a wake-up may take, TSC cycles
 * @quantile:	of wake-ups, in units of %APIC_TIMER_QUANTILE_ONE
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
 * @kind:	of the wake-up
 * @cycles:	from the armed moment until the thread ran in the kernel
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
 * device_learn_back() - add the length of a way back to user space
 * @learn:	the estimates
 * @cycles:	from there to the thread's first instruction in user space
 */
void device_learn_back(struct device_learn *learn, u64 cycles)
{
	apic_timer_estimate_add(&learn->back, cycles);
}

/**
 * device_learn_least() - add the length of a way out of the kernel's last stretch
 * @learn:	the estimates
 * @kind:	of the way
 * @cycles:	from the last TSC read there to the first in user space
 */
void device_learn_least(struct device_learn *learn, enum device_return kind,
			u64 cycles)
{
	if (cycles && (!learn->least[kind] || cycles < learn->least[kind]))
		learn->least[kind] = cycles;
}

/**
 * device_learn_lead() - how long before a moment to arm
 * @learn:	the estimates
 * @kind:	of the wake-up
 * @cost:	TSC cycles that a sleeper may wait for in the mean
 * @budget:	TSC cycles that it may wait for at most
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
 * device_learn_exit() - how long before a moment to leave the kernel
 * @learn:	the estimates
 * @kind:	of the way out
 *
 * Never too long before: the shortest way seen, less a quarter for one that is
 * shorter still; nothing before one was seen.
 *
 * Return: TSC cycles.
 */
u64 device_learn_exit(const struct device_learn *learn, enum device_return kind)
{
	return learn->least[kind] - learn->least[kind] / 4;
}
