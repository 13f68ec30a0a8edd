// SPDX-License-Identifier: GPL-2.0
/*
 * How long does a CPU wait with interrupts off if the other CPU stalls while the skew is measured?
 * The other CPU is held up before the first message of a burst; or the CPU that begins is held up,
 * and the other one has given up when it arrives.
 */
#include <linux/apic_clock.h>
#include <linux/kprobes.h>
#include <linux/seq_file.h>

#include "clock_test.h"

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
} results[2];

static struct patience_result *result;

static int begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	*(u64 *)instance->data = apic_timer_now();
	return 0;
}

/* Only the first burst is disturbed; one CPU at a time does its part. */
static int ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (!result->took)
		result->took = apic_timer_now() - *(u64 *)instance->data;
	return 0;
}

/* Measure CPU 1, and hold up one of the two for @ms; @late: the one that begins. */
int clock_test_patience(unsigned int ms, bool late)
{
	struct kretprobe part = {
		.kp.symbol_name = late ? "apic_clock:call" : "apic_clock:answer",
		.entry_handler = begins,
		.handler = ends,
		.data_size = sizeof(u64),
	};
	struct apic_clock_skew skew;
	int ret;

	result = &results[late];
	*result = (struct patience_result) {};
	ret = register_kretprobe(&part);
	if (ret)
		return ret;
	ret = clock_test_hold(late ? CLOCK_TEST_HOLD_MEET : CLOCK_TEST_HOLD_CALL, ms);
	if (!ret) {
		result->ret = apic_clock_measure_skew(1, &skew);
		result->held = clock_test_hold_end();
	}
	unregister_kretprobe(&part);
	return ret;
}

void clock_test_patience_show(struct seq_file *file)
{
	unsigned int late;

	for (late = 0; late < 2; late++)
		seq_printf(file, "%s held %llu took %llu ret %d\n", late ? "late" : "patience",
			   apic_timer_tsc_to_ns(results[late].held),
			   apic_timer_tsc_to_ns(results[late].took), results[late].ret);
}
