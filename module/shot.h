/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SHOT_H
#define _APIC_TIMER_SHOT_H

#include <linux/percpu.h>
#include <linux/types.h>

#define APIC_TIMER_NEVER	U64_MAX

/**
 * enum apic_timer_shot_user - who shares a CPU's one hardware timer
 * @APIC_TIMER_SHOT_OWN:	the head of our queue
 * @APIC_TIMER_SHOT_KERNEL:	the kernel's next clock event
 * @APIC_TIMER_SHOT_USERS:	how many there are
 */
enum apic_timer_shot_user {
	APIC_TIMER_SHOT_OWN,
	APIC_TIMER_SHOT_KERNEL,
	APIC_TIMER_SHOT_USERS
};

/**
 * struct apic_timer_shot - the hardware timer of a CPU
 * @deadline:	absolute TSC wanted by each user, %APIC_TIMER_NEVER for none
 * @target:	the earliest of them, if the hardware is armed for it (or for
 *		a hop towards it), otherwise %APIC_TIMER_NEVER
 * @sure:	when the hardware has fired for @target, however its clock drifts;
 *		0 if @target is aimed at
 * @held:	in the interrupt: nothing is armed until its end
 *
 * Touched by its own CPU only, interrupts off.
 */
struct apic_timer_shot {
	u64 deadline[APIC_TIMER_SHOT_USERS];
	u64 target;
	u64 sure;
	bool held;
};

DECLARE_PER_CPU(struct apic_timer_shot, apic_timer_shot);

void apic_timer_shot_reset(void);
void apic_timer_shot_set(enum apic_timer_shot_user user, u64 tsc);
void apic_timer_shot_begin(void);
void apic_timer_shot_end(void);
void apic_timer_shot_rearm(void);
u64 apic_timer_shot_leg(u64 distance, u64 reach, bool aim);

#endif /* _APIC_TIMER_SHOT_H */
