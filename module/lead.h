/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LEAD_H
#define _APIC_TIMER_LEAD_H

#include <linux/apic_timer.h>

/*
 * The latency estimator: fed with the signed error of each shot, answers how
 * early to arm the next. The one mode on offer, raw, arms at the expiry itself.
 */

/* Modes on offer, for &apic_timer_info.modes. */
#define APIC_TIMER_LEAD_MODES	BIT(APIC_TIMER_RAW)

/**
 * apic_timer_lead_cycles() - how early to arm a timer
 * @timer:	the timer
 *
 * Return: TSC cycles.
 */
static inline u64 apic_timer_lead_cycles(const struct apic_timer_list *timer)
{
	return 0;
}

#endif /* _APIC_TIMER_LEAD_H */
