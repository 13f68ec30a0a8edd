/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_KUNIT_MACHINE_H
#define _APIC_TIMER_KUNIT_MACHINE_H

#include <kunit/test.h>
#include <linux/kernel.h>

#include "lib/stats.h"
#include "mux/mux.h"
#include "sources/sim.h"
#include "timers/base.h"

/* Machines with awkward combinations of clocks, each in its own way. */
struct machine_named {
	const char *name;
	struct apic_timer_sim_machine machine;
};

extern const struct machine_named machines[];
extern const unsigned int machines_count;

#define for_each_machine(m) \
	for ((m) = machines; (m) < machines + machines_count; (m)++)

/* A TSC of 1 GHz with TSC-deadline mode: one cycle is 1 ns. */
extern const struct apic_timer_sim_machine machine_plain;

void machine_start(struct kunit *test,
		   const struct apic_timer_sim_machine *machine);
int machine_init(struct kunit *test);
void machine_exit(struct kunit *test);
u64 machine_tick(const struct apic_timer_sim_machine *machine);

static inline struct apic_timer_base *machine_base(void)
{
	return apic_timer_base_of(0);
}

static inline struct apic_timer_mux *machine_mux(void)
{
	return per_cpu_ptr(&apic_timer_mux, 0);
}

#define machine_stat(id) apic_timer_stats_read(0, APIC_TIMER_STAT_##id)

/* Enough for any test that is not caught in a loop of interrupts. */
#define MACHINE_LIMIT	1000000UL

#endif /* _APIC_TIMER_KUNIT_MACHINE_H */
