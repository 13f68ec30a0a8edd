// SPDX-License-Identifier: GPL-2.0
/*
 * Source "hrtimer": a pinned hrtimer in hard interrupt context on each CPU.
 * Works on every machine, with the accuracy of the kernel's timers.
 */
#include <linux/percpu.h>

#include "compat/hrtimer.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "timers/interrupt.h"

/* Maximum delta, about 36 years: sums of times do not overflow */
#define MAX_DELTA_NS	(1ULL << 60)

static DEFINE_PER_CPU(struct hrtimer, hrtimers);

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);

	apic_timer_mux_enter(mux, apic_timer_tsc_now());
	/* Starts @timer again if there is a deadline. */
	apic_timer_mux_end(mux);
	return HRTIMER_NORESTART;
}

static int hrtimer_probe(void)
{
	apic_timer_source_hrtimer.max_delta = apic_timer_ns_to_tsc(MAX_DELTA_NS);
	return 0;
}

static int hrtimer_attach(void)
{
	apic_timer_hrtimer_setup(this_cpu_ptr(&hrtimers), interrupt,
				 CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static int hrtimer_detach(void)
{
	hrtimer_cancel(this_cpu_ptr(&hrtimers));
	return 0;
}

static u64 hrtimer_program(u64 fire)
{
	/* Read the clocks in this order and round up, so that the timer is not early. */
	u64 now = apic_timer_now();
	ktime_t time = ktime_get();

	if (fire > now)
		time = ktime_add_ns(time, apic_timer_tsc_to_ns(fire - now) + 1);

	hrtimer_start(this_cpu_ptr(&hrtimers), time,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	return ktime_to_ns(time);
}

static void hrtimer_describe(unsigned int cpu, struct apic_timer_info *info)
{
	info->hardware = APIC_TIMER_HW_HRTIMER;
}

struct apic_timer_source apic_timer_source_hrtimer = {
	.name = "hrtimer",
	.drifts = true,
	.probe = hrtimer_probe,
	.attach = hrtimer_attach,
	.detach = hrtimer_detach,
	.program = hrtimer_program,
	.describe = hrtimer_describe,
};
