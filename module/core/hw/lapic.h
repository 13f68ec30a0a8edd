/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_LAPIC_H
#define _APIC_TIMER_LAPIC_H

#include <linux/apic_timer.h>

#include <asm/apic.h>

#include "compat/msr.h"
#include "lib/counter.h"

/* SDM vol. 3, 11.5.1: timer mode of LVTT, bits 17 and 18 */
#define APIC_TIMER_LVTT_MODE		(3 << 17)
#define APIC_TIMER_LVTT_TSC_DEADLINE	(2 << 17)

struct clock_event_device;

/**
 * struct apic_timer_lapic - the LAPIC timer of a CPU
 * @tsc_deadline: programmed through the TSC-deadline MSR, otherwise one-shot
 * @counter:	rate of the one-shot counter
 * @cost:	TSC cycles from reading the TSC to having programmed the counter
 * @near:	limit for apic_timer_lapic_is_near(); 0 unless @divider is
 * @divider:	log2 of the divider in the hardware, negative if not known
 * @ticks_per_sec: rate of the undivided one-shot counter, Hz
 *
 * Accessed by its own CPU only, interrupts off.
 */
struct apic_timer_lapic {
	bool tsc_deadline;
	struct apic_timer_counter counter;
	u64 cost;
	u64 near;
	int divider;
	u64 ticks_per_sec;
};

int apic_timer_lapic_probe(const char *source);
int apic_timer_lapic_init(struct apic_timer_lapic *lapic, bool tsc_deadline,
			  u64 ticks_per_sec);
int apic_timer_lapic_init_device(struct apic_timer_lapic *lapic,
				 const struct clock_event_device *device);
bool apic_timer_lapic_alive(const struct apic_timer_lapic *lapic, bool fired);
u64 apic_timer_lapic_max_delta(const struct apic_timer_lapic *lapic);
void apic_timer_lapic_describe(struct apic_timer_info *info,
			       const struct apic_timer_lapic *lapic);
void apic_timer_lapic_refine(struct apic_timer_lapic *lapic);
void apic_timer_lapic_ready(struct apic_timer_lapic *lapic);
u64 apic_timer_lapic_program(struct apic_timer_lapic *lapic, u64 fire);
void apic_timer_lapic_stop(const struct apic_timer_lapic *lapic);

/**
 * apic_timer_lapic_is_near() - check whether the fast path of programming suffices
 * @lapic:	of this CPU
 * @cycles:	distance in TSC cycles
 *
 * Return: true if the divider in the hardware need not change.
 */
static __always_inline bool
apic_timer_lapic_is_near(const struct apic_timer_lapic *lapic, u64 cycles)
{
	return cycles < lapic->near;
}

/**
 * apic_timer_lapic_program_near() - program the LAPIC timer by the fast path
 * @lapic:	of this CPU
 * @cycles:	distance from @now in TSC cycles; apic_timer_lapic_is_near()
 * @now:	the TSC, just read
 *
 * Context: As apic_timer_lapic_program().
 */
static __always_inline void
apic_timer_lapic_program_near(const struct apic_timer_lapic *lapic, u64 cycles,
			      u64 now)
{
	if (lapic->tsc_deadline) {
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE,
					 now + cycles + 1);
		return;
	}
	cycles -= min(cycles, lapic->cost);
	apic->write(APIC_TMICT,
		    apic_timer_counter_convert_near(&lapic->counter, cycles));
}

#endif /* _APIC_TIMER_LAPIC_H */
