/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SOURCE_H
#define _APIC_TIMER_SOURCE_H

#include <linux/apic_timer.h>

/**
 * struct apic_timer_source - what gives each CPU its timer interrupt
 * @name:	as in the module parameter
 * @drifts:	its hardware counts another clock than the TSC
 * @max_delta:	maximum TSC cycles that it can be programmed for
 * @shared:	the kernel's own events are programmed through it
 * @probe:	0 if it works on this machine, otherwise -errno with the reason in
 *		the log. Acquires what is shared by all CPUs. Task context.
 * @remove:	release that. No CPU is attached, except those that @detach failed
 *		for: waits for them. May be NULL. Task context.
 * @attach:	take over the timer of this CPU; -errno, with the reason in the log,
 *		leaves the CPU as it was. Task context, bound to the CPU.
 * @detach:	return it to the kernel. -errno, with the reason in the log, if the
 *		kernel does not accept it within a second: then it goes on to
 *		serve. Task context, bound to the CPU.
 * @refine:	convert by the rate of the TSC that the kernel has refined, by less
 *		than 1%, on this CPU. NULL if that is not needed. Interrupts off.
 * @program:	interrupt this CPU at the absolute TSC @fire, at once if that is
 *		past; @fire is within @max_delta. It reads the TSC last, if at all.
 *		Return: what the hardware was given. Interrupts off.
 * @alive:	whether the hardware of this CPU, which was programmed and has not
 *		interrupted since, is still set up to do so. If @fired, it may have
 *		fired already. NULL if only the kernel can stop it. Interrupts off.
 * @recover:	set the hardware of this CPU up again. Interrupts off.
 * @describe:	fill in hardware and x2apic of the CPU's info
 *
 * In its interrupt a source calls apic_timer_mux_enter(), and then
 * apic_timer_mux_leave(), or apic_timer_mux_end() if it does not carry the kernel's
 * events.
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
