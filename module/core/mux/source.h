/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SOURCE_H
#define _APIC_TIMER_SOURCE_H

#include <linux/apic_timer.h>

/**
 * struct apic_timer_source - what provides each CPU's timer interrupt
 * @name:	as in the module parameter
 * @drifts:	its hardware counts another clock than the TSC
 * @max_delta:	maximum number of TSC cycles that it can be programmed ahead
 * @shared:	the kernel's own events are programmed through it
 * @probe:	0 if it works on this machine, otherwise -errno with the reason in
 *		the log. Acquires the resources shared by all CPUs. Task context.
 * @remove:	release these resources. No CPU is attached, except those for
 *		which @detach failed: it waits for them. May be NULL. Task
 *		context.
 * @attach:	take over the timer of this CPU. On -errno, with the reason in the
 *		log, the CPU is left as it was. Task context, bound to the CPU.
 * @detach:	return the timer to the kernel. -errno, with the reason in the log,
 *		if the kernel does not accept it within a second: the source then
 *		continues to serve it. Task context, bound to the CPU.
 * @refine:	use the TSC rate on this CPU that the kernel has refined, by less
 *		than 1%. NULL if that is not needed. Interrupts off.
 * @program:	interrupt this CPU at the absolute TSC @fire, or at once if that
 *		has passed; @fire is within @max_delta. It reads the TSC last, if
 *		at all.
 *		Return: the value written to the hardware. Interrupts off.
 * @stop:	interrupt this CPU no more: disarm its hardware. An interrupt that is
 *		already requested may still come. NULL if only timers use the hardware.
 *		Interrupts off.
 * @alive:	check whether the hardware of this CPU, which was programmed and
 *		has not interrupted since, is still set up to do so. If @fired, it
 *		may have fired already. NULL if only the kernel can stop the
 *		hardware. Interrupts off.
 * @recover:	set the hardware of this CPU up again. Interrupts off.
 * @describe:	fill in hardware and x2apic of the CPU's info
 *
 * In its interrupt, a source calls apic_timer_mux_enter(), and then
 * apic_timer_mux_leave(), or apic_timer_mux_end() if it does not deliver the
 * kernel's events.
 */
struct apic_timer_source {
	const char *name;
	bool drifts;
	u64 max_delta;
	bool shared;
	int (*probe)(void);
	void (*remove)(void);
	int (*attach)(void);
	int (*detach)(void);
	void (*refine)(void);
	u64 (*program)(u64 fire);
	void (*stop)(void);
	bool (*alive)(bool fired);
	void (*recover)(void);
	void (*describe)(unsigned int cpu, struct apic_timer_info *info);
};

/* The source in use: set before the first CPU is attached. */
extern const struct apic_timer_source *apic_timer_source;

extern struct apic_timer_source apic_timer_source_hook;
extern struct apic_timer_source apic_timer_source_proxy;
extern struct apic_timer_source apic_timer_source_hrtimer;
extern struct apic_timer_source apic_timer_source_sim;

#endif /* _APIC_TIMER_SOURCE_H */
