// SPDX-License-Identifier: GPL-2.0
/*
 * Imitate a TSC that stops in idle, like that of machines without NONSTOP_TSC: when an idle state
 * ends, set the TSC back to its value at the beginning of the state. Compare apic_clock's result
 * with the truth. For Bochs, whose TSC can be written to.
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

/* Run before apic_clock's probe, which must find the TSC as such a machine would leave it. */
#define FIRST	(TRACEPOINT_DEFAULT_PRIO + 1)

/**
 * struct truth - changes made to the TSC
 * @since:	TSC when the idle state began; 0: not in an idle state
 * @stops:	number of times that the TSC was set back
 * @lost:	cycles that it was set back by in total, without the cost of setting it back
 */
static struct truth {
	u64 since;
	u64 stops;
	u64 lost;
} truth;

/**
 * struct stop_result - result of a run
 * @stops:	number of stops of the TSC
 * @found:	number of stops that apic_clock found
 * @lost:	cycles lost
 * @each:	additional cycles, times 1000, that were found for each stop: the cost of setting
 *		the TSC back
 * @off:	largest difference to that, at any time
 * @back:	number of times that common time went back
 * @ahead:	number of times that the TSC was found ahead
 */
static struct stop_result {
	u64 stops, found, lost;
	s64 each, off;
	u64 back, ahead;
} result;

static s64 more[NAPS];		/* cycles found so far, minus those lost */
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

/* Sleep @naps times on a machine with one CPU. */
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
