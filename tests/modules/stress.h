/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_STRESS_H
#define _APIC_TIMER_STRESS_H

#include <linux/percpu.h>
#include <linux/types.h>

enum stress_count {
	STRESS_OPERATIONS,
	STRESS_ARMED,
	STRESS_RAN,
	STRESS_DELETED,
	STRESS_SUPERSEDED,
	STRESS_WAITED,
	STRESS_BUSY,
	STRESS_FREED,
	STRESS_COUNT_COUNT
};

struct stress_counts {
	u64 count[STRESS_COUNT_COUNT];
};

DECLARE_PER_CPU(struct stress_counts, stress_counts);

#define stress_inc(id) this_cpu_inc(stress_counts.count[STRESS_##id])

/* Set when no operation is left: handlers arm nothing from then on. */
extern bool stress_over;

bool stress_operation(void);
__printf(1, 2)
void stress_fault(const char *format, ...);

u32 stress_random(u32 *state);
u64 stress_moment(u32 *state);
int stress_cpu(u32 *state);

/*
 * Three kinds of timers. Each has: set up for a seed; one random operation
 * from a thread; and, when threads and handlers are done, whether shots are
 * still to come, then the final account.
 */
int stress_account_setup(unsigned int timers, u32 seed);
void stress_account_step(u32 *state);
bool stress_account_busy(void);
void stress_account_finish(void);

int stress_loose_setup(unsigned int timers, u32 seed);
void stress_loose_step(u32 *state);
void stress_loose_finish(void);

void stress_free_setup(void);
void stress_free_step(u32 *state);
bool stress_free_busy(void);
void stress_free_finish(void);

#endif /* _APIC_TIMER_STRESS_H */
