/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SOURCE_H
#define _APIC_TIMER_SOURCE_H

#include <linux/apic_timer.h>

/**
 * struct apic_timer_source - who gives us a timer interrupt on each CPU
 * @name:	as in the module parameter
 * @drifts:	its hardware counts another clock than the TSC
 * @max_delta:	most TSC cycles that one expiry can do
 * @probe:	0 when this machine has it, otherwise -errno with the reason in
 *		the log. Task context. Takes what is had once for all CPUs.
 * @remove:	give that back, no CPU being attached, but for those that
 *		@detach could not give back: waits for them. May be NULL. Task
 *		context.
 * @attach:	take the timer of this CPU; -errno, with the reason in the log,
 *		leaves the CPU as it was. Task context, bound to the CPU.
 * @detach:	give it back. -errno, with the reason in the log, if the kernel
 *		doesn't take it within a second: then it goes on to serve. Task
 *		context, bound to the CPU.
 * @refine:	the kernel has found another rate of the TSC, less than 1% off the
 *		one before: convert by that on this CPU. NULL if it does so
 *		anyway. Interrupts off.
 * @program:	interrupt this CPU at the absolute TSC @fire, at once if that
 *		is past; @fire is within @max_delta. What it needs of the present
 *		TSC it reads last. Returns what the hardware was given.
 *		Interrupts off.
 * @alive:	is the hardware of this CPU, which was programmed and has not
 *		interrupted since, still set up so that it will? If @fired, it
 *		may have fired already. NULL if nobody but the kernel could
 *		stop it. Interrupts off.
 * @recover:	set the hardware of this CPU up anew. Interrupts off.
 * @describe:	fill in hardware and x2apic of the CPU's info
 *
 * In its interrupt a source calls apic_timer_mux_enter(), then
 * apic_timer_mux_leave(), or apic_timer_mux_end() if the kernel's events don't
 * come by it.
 */
struct apic_timer_source {
	const char *name;
	bool drifts;
	u64 max_delta;
	int (*probe)(void);
	void (*remove)(void);
	int (*attach)(void);
	int (*detach)(void);
	void (*refine)(void);
	u64 (*program)(u64 fire);
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
