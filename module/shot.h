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
 * @user:	whom the hardware is armed for
 * @fires:	TSC by which the hardware will have fired, however its clock
 *		drifts; %APIC_TIMER_NEVER if it isn't armed
 * @held:	in the interrupt: nothing is armed until its end
 *
 * Touched by its own CPU only, interrupts off. Unless held, the hardware fires
 * in time for each deadline.
 */
struct apic_timer_shot {
	u64 deadline[APIC_TIMER_SHOT_USERS];
	enum apic_timer_shot_user user;
	u64 fires;
	bool held;
};

DECLARE_PER_CPU(struct apic_timer_shot, apic_timer_shot);

void apic_timer_shot_reset(void);
void apic_timer_shot_set(enum apic_timer_shot_user user, u64 tsc);
void apic_timer_shot_begin(void);
bool apic_timer_shot_kernel_due(void);
void apic_timer_shot_end(void);
void apic_timer_shot_rearm(void);
u64 apic_timer_shot_leg(u64 distance, u64 reach, bool aim);

#endif /* _APIC_TIMER_SHOT_H */
