// SPDX-License-Identifier: GPL-2.0
/*
 * How long does a CPU wait with interrupts off if the other CPU stalls while the skew is measured?
 * The CPU that begins is held up: before the first message of a burst, while the other one waits
 * for that; before it meets the other one, which has given up when it arrives; or after that, and
 * so that the other one has given up while its own time has hardly begun.
 */
#include <linux/apic_clock.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>

#include "clock_test.h"

static const struct {
	const char *name;
	const char *symbol;	/* of the part that is measured */
	enum clock_test_hold hold;
} cases[] = {
	[CLOCK_TEST_PATIENCE_CALLED] = {
		"patience", "apic_clock:answer", CLOCK_TEST_HOLD_CALL,
	},
	[CLOCK_TEST_PATIENCE_LATE] = { "late", "apic_clock:call", CLOCK_TEST_HOLD_MEET },
	[CLOCK_TEST_PATIENCE_ANSWERED] = {
		"answered", "apic_clock:call", CLOCK_TEST_HOLD_ARRIVED,
	},
};

/**
 * struct patience_result - result of a case
 * @held:	TSC cycles for which a CPU was held up
 * @took:	TSC cycles that the other CPU took for its part of the burst, or the CPU itself
 *		once it was released
 * @ret:	what the measurement returned
 */
static struct patience_result {
	u64 held;
	u64 took;
	int ret;
} results[CLOCK_TEST_PATIENCES];

static struct patience_result *result;

static int begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	*(u64 *)instance->data = apic_timer_now();
	return 0;
}

/* Only the first burst is disturbed; one CPU at a time does its part. */
static int ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	u64 begun = *(u64 *)instance->data;

	if (result == &results[CLOCK_TEST_PATIENCE_ANSWERED])
		begun = max(begun, clock_test_held_until());
	if (!result->took)
		result->took = apic_timer_now() - begun;
	return 0;
}

/* Measure CPU 1, and hold up the CPU that begins for @ms. */
int clock_test_patience(unsigned int ms, enum clock_test_patience which)
{
	struct kretprobe part = {
		.kp.symbol_name = cases[which].symbol,
		.entry_handler = begins,
		.handler = ends,
		.data_size = sizeof(u64),
	};
	struct apic_clock_skew skew;
	int ret;

	result = &results[which];
	*result = (struct patience_result) {};
	ret = register_kretprobe(&part);
	if (ret)
		return ret;
	ret = clock_test_hold(cases[which].hold, ms);
	if (!ret) {
		result->ret = apic_clock_measure_skew(1, &skew);
		result->held = clock_test_hold_end();
	}
	unregister_kretprobe(&part);
	return ret;
}

void clock_test_patience_show(struct seq_file *file)
{
	unsigned int which;

	for (which = 0; which < CLOCK_TEST_PATIENCES; which++)
		seq_printf(file, "%s held %llu took %llu ret %d\n", cases[which].name,
			   apic_timer_tsc_to_ns(results[which].held),
			   apic_timer_tsc_to_ns(results[which].took), results[which].ret);
}
