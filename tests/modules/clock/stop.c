// SPDX-License-Identifier: GPL-2.0
/*
 * A TSC that stops in idle, as that of machines without NONSTOP_TSC: it is set back
 * when an idle state ends to where it was when the state began. What apic_clock makes
 * of that is compared with the truth. For Bochs, whose TSC can be written to.
 */
#include <linux/apic_clock.h>
#include <linux/cpuidle.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/tracepoint.h>
#include <asm/msr.h>
#include <asm/msr-index.h>

#include <trace/events/power.h>

#include "compat/msr.h"
#include "clock_test.h"

#define NAPS	1200

/* Before apic_clock's probe, which is to find the TSC as the machine leaves it. */
#define FIRST	(TRACEPOINT_DEFAULT_PRIO + 1)

/**
 * struct truth - what was done to the TSC
 * @since:	TSC when the idle state began, 0 in none
 * @stops:	how often it was set back
 * @lost:	by how much in all, without what setting it back takes
 */
static struct truth {
	u64 since;
	u64 stops;
	u64 lost;
} truth;

/**
 * struct stop_result - what came of it
 * @stops:	how often the TSC stopped
 * @found:	how often apic_clock found it to have
 * @lost:	cycles
 * @each:	cycles, times 1000, by which more was found each time: what setting the
 *		TSC back takes
 * @off:	largest difference to that, at any time
 * @back:	how often common time went back
 * @ahead:	how often the TSC was found ahead
 */
static struct stop_result {
	u64 stops, found, lost;
	s64 each, off;
	u64 back, ahead;
} result;

static s64 more[NAPS];		/* found so far, less what was lost */
static u64 stops[NAPS];

static void idle(void *unused, unsigned int state, unsigned int cpu)
{
	u64 now;

	if (state != (unsigned int)PWR_EVENT_EXIT) {
		truth.since = rdtsc_ordered();
		return;
	}
	if (!truth.since)
		return;
	now = rdtsc_ordered();
	apic_timer_native_wrmsrq(MSR_IA32_TSC, truth.since);
	truth.lost += now - truth.since;
	truth.stops++;
	truth.since = 0;
}

/* Sleep that number of times on a machine with one CPU. */
int clock_test_stop(unsigned int naps)
{
	struct apic_clock_resync before, after;
	u64 last = 0, common;
	unsigned int i;
	int ret;

	if (!naps || naps > NAPS)
		return -EINVAL;
	ret = apic_clock_get_resync(0, &before);
	if (ret)
		return ret;
	truth = (struct truth) {};
	result = (struct stop_result) {};
	ret = register_trace_prio_cpu_idle(idle, NULL, FIRST);
	if (ret)
		return ret;
	for (i = 0; i < naps; i++) {
		usleep_range(800, 1200);
		apic_clock_get_resync(0, &after);
		more[i] = after.lost - before.lost - truth.lost;
		stops[i] = truth.stops;
		common = apic_clock_common_now();
		result.back += common < last;
		last = common;
	}
	unregister_trace_cpu_idle(idle, NULL);
	tracepoint_synchronize_unregister();

	result.stops = stops[naps - 1];
	result.found = after.stops - before.stops;
	result.ahead = after.ahead - before.ahead;
	result.lost = truth.lost;
	if (!result.stops)
		return 0;
	result.each = div64_s64(more[naps - 1] * 1000, result.stops);
	for (i = 0; i < naps; i++)
		result.off = max(result.off,
				 abs(more[i] - div_s64(result.each * (s64)stops[i], 1000)));
	return 0;
}

void clock_test_stop_show(struct seq_file *file)
{
	seq_printf(file, "stops %llu found %llu lost %llu each %lld off %lld back %llu ahead %llu\n",
		   result.stops, result.found, result.lost, result.each, result.off, result.back,
		   result.ahead);
}
