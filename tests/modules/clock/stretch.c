// SPDX-License-Identifier: GPL-2.0
/*
 * Let time pass, as in an SMI, between two reads of the TSC that bracket the read of another
 * clock: before that read or after it.
 *
 * Compare the result of such a conversion with that of an undisturbed one.
 */
#include <linux/apic_timer.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/prandom.h>
#include <linux/processor.h>
#include <linux/seq_file.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "clock_test.h"

#define LONGEST_US	100
/* Distance of the moments that are converted, ns. */
#define AHEAD		NSEC_PER_MSEC
/* Number of undisturbed conversions; the one with the smallest error serves for comparison. */
#define UNDISTURBED	4

/* Functions that are called between two reads of the TSC. */
static const struct {
	const char *symbol;
	int clock;
} sites[] = {
	{ "apic_clock:apic_clock_reference_read", -1 },
	{ "ktime_get", CLOCK_MONOTONIC },
	{ "ktime_get_raw", CLOCK_MONOTONIC_RAW },
	{ "ktime_get_with_offset", CLOCK_REALTIME },
};

/**
 * struct stretch_result - result of a run
 * @stretched:	number of times that time has passed there
 * @converted:	number of moments converted
 * @wrong:	number of times that the two results differed by more than their errors allow
 * @off:	largest difference of the two, cycles
 * @error:	largest error that a conversion reported
 * @undisturbed:	largest error that an undisturbed conversion reported
 */
static struct stretch_result {
	u64 stretched, converted, wrong;
	u64 off, error, undisturbed;
} result;

static struct rnd_state rnd;
static unsigned int nth;	/* one side of a read in this number, 0 for none */

static void stretch(void)
{
	u64 begun = apic_timer_now(), cycles;
	unsigned int one_in = READ_ONCE(nth);

	if (!one_in || prandom_u32_state(&rnd) % one_in)
		return;
	result.stretched++;
	cycles = apic_timer_ns_to_tsc(prandom_u32_state(&rnd) % (LONGEST_US * NSEC_PER_USEC));
	while (apic_timer_now() - begun < cycles)
		cpu_relax();
}

static int before(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	stretch();
	return 0;
}

static int after(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	stretch();
	return 0;
}

static struct kretprobe probe;

void clock_test_stretch_end(void)
{
	if (probe.kp.symbol_name)
		unregister_kretprobe(&probe);
	probe.kp.symbol_name = NULL;
}

/* Let time pass at one side in @one_in of the reads at a site from now on; 0: no more. */
int clock_test_stretch(unsigned int site, int one_in)
{
	int ret;

	if (site >= ARRAY_SIZE(sites) || one_in < 0)
		return -EINVAL;
	clock_test_stretch_end();
	result = (struct stretch_result) {};
	nth = one_in;
	if (!one_in)
		return 0;
	prandom_seed_state(&rnd, 3);
	probe = (struct kretprobe) {
		.kp.symbol_name = sites[site].symbol,
		.entry_handler = before,
		.handler = after,
	};
	ret = register_kretprobe(&probe);
	if (ret)
		probe.kp.symbol_name = NULL;
	return ret;
}

static u64 undisturbed(int clock, ktime_t when, u64 *error)
{
	u64 best = 0, tsc, its;
	unsigned int i;

	for (i = 0; i < UNDISTURBED; i++) {
		tsc = apic_timer_clock_to_tsc(clock, when, &its);
		if (i && its >= *error)
			continue;
		best = tsc;
		*error = its;
	}
	return best;
}

/* Convert moments of a site's clock, disturbed and undisturbed. */
int clock_test_bracket(unsigned int site, int times)
{
	u64 truth, tsc, its, error, off;
	int clock, one_in, ret, i;
	ktime_t when;

	if (site >= ARRAY_SIZE(sites) || sites[site].clock < 0)
		return -EINVAL;
	clock = sites[site].clock;
	ret = clock_test_stretch(site, 2);
	if (ret)
		return ret;
	one_in = nth;
	for (i = 0; i < times; i++) {
		WRITE_ONCE(nth, 0);
		when = apic_timer_tsc_to_clock(clock, apic_timer_now()) + AHEAD;
		truth = undisturbed(clock, when, &its);
		WRITE_ONCE(nth, one_in);
		tsc = apic_timer_clock_to_tsc(clock, when, &error);
		WRITE_ONCE(nth, 0);
		off = abs((s64)(tsc - truth));
		result.converted++;
		result.wrong += off > error + its;
		result.off = max(result.off, off);
		result.error = max(result.error, error);
		result.undisturbed = max(result.undisturbed, its);
		cond_resched();
	}
	clock_test_stretch_end();
	return 0;
}

void clock_test_stretch_show(struct seq_file *file)
{
	seq_printf(file, "stretched %llu converted %llu wrong %llu off %llu error %llu undisturbed %llu\n",
		   result.stretched, result.converted, result.wrong, result.off, result.error,
		   result.undisturbed);
}
