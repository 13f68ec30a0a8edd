/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_TORTURE_H
#define _APIC_TIMER_TORTURE_H

#include <linux/percpu.h>
#include <linux/types.h>

enum torture_count {
	TORTURE_OPERATIONS,
	TORTURE_ARMED,
	TORTURE_RAN,
	TORTURE_DELETED,
	TORTURE_SUPERSEDED,
	TORTURE_WAITED,
	TORTURE_BUSY,
	TORTURE_FREED,
	TORTURE_REFUSED,
	TORTURE_MOVED,
	TORTURE_ANYWHERE,
	TORTURE_STEADY,
	TORTURE_OFFS,
	TORTURE_STAYED,
	TORTURE_SHUT,
	TORTURE_FATES,
	TORTURE_COUNT_COUNT
};

struct torture_counts {
	u64 count[TORTURE_COUNT_COUNT];
};

DECLARE_PER_CPU(struct torture_counts, torture_counts);

#define torture_add(id, n) \
	this_cpu_add(torture_counts.count[TORTURE_##id], n)
#define torture_inc(id) torture_add(id, 1)

u64 torture_count(enum torture_count id);
__printf(1, 2)
void torture_fault(const char *format, ...);
void torture_line(char *line, size_t size, bool over);
bool torture_failed(void);

/* Set when no operation is left: handlers then arm nothing. */
extern bool torture_over;

/* The participating CPUs, all online at the beginning. */
extern int *torture_cpus;
extern unsigned int torture_cpu_count;
/* us: few timers are armed farther ahead */
extern unsigned int torture_reach;

bool torture_operation(void);
u32 torture_random(u32 *state);
u64 torture_moment(u32 *state);
int torture_cpu(u32 *state);

int torture_writers_start(unsigned int per_cpu, unsigned int rate, u32 seed);
void torture_writers_stop(void);

/*
 * Four kinds of timers. Each has functions to set up with a seed; to do one random operation from
 * a thread; and, when threads and handlers are finished, to check whether shots are still due, and
 * to close the account.
 */
int torture_account_setup(unsigned int timers, u32 seed);
void torture_account_step(u32 *state);
bool torture_account_busy(void);
void torture_account_finish(void);

int torture_loose_setup(unsigned int timers, u32 seed);
void torture_loose_step(u32 *state);
void torture_loose_finish(void);

void torture_free_step(u32 *state);
bool torture_free_busy(void);
void torture_free_finish(void);

int torture_pair_setup(unsigned int timers, u32 seed);
void torture_pair_step(u32 *state);
void torture_pair_finish(void);

/* Timers of every CPU that arm themselves, including the kernel's. */
void torture_steady_start(u32 seed);
void torture_steady_restart(int cpu);
void torture_steady_check(void);
void torture_steady_stop(void);

/* CPUs that go offline and come back. */
bool torture_onoff_possible(void);
int torture_onoff_start(unsigned int interval_ms, unsigned long most, u32 seed);
void torture_onoff_stop(void);
bool torture_onoff_done(void);
u32 torture_onoff_now(void);
bool torture_onoff_since(u32 since);
bool torture_onoff_away(int cpu);
bool torture_onoff_may_be_on(int cpu, u32 since, int here);

#endif /* _APIC_TIMER_TORTURE_H */
