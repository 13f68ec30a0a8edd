// SPDX-License-Identifier: GPL-2.0
/*
 * How long does a CPU wait with interrupts off if the other CPU stalls while the skew is measured?
 * The other CPU is held up before the first message of a burst.
 */
#include <linux/apic_clock.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>

#include "clock_test.h"

static struct patience_result {
	u64 held;	/* TSC cycles for which the calling CPU was held up */
	u64 longest;	/* maximum TSC cycles that the answering CPU took for a burst */
	int ret;
} result;

static int answers(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	*(u64 *)instance->data = apic_timer_now();
	return 0;
}

/* One CPU at a time does. */
static int answered(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	result.longest = max(result.longest, apic_timer_now() - *(u64 *)instance->data);
	return 0;
}

/* Measure CPU 1, and hold up one of the two for @ms. */
int clock_test_patience(unsigned int ms)
{
	struct kretprobe answerer = {
		.kp.symbol_name = "apic_clock:answer",
		.entry_handler = answers,
		.handler = answered,
		.data_size = sizeof(u64),
	};
	struct apic_clock_skew skew;
	int ret;

	result = (struct patience_result) {};
	ret = register_kretprobe(&answerer);
	if (ret)
		return ret;
	ret = clock_test_hold(CLOCK_TEST_HOLD_CALL, ms);
	if (!ret) {
		result.ret = apic_clock_measure_skew(1, &skew);
		result.held = clock_test_hold_end();
	}
	unregister_kretprobe(&answerer);
	return ret;
}

void clock_test_patience_show(struct seq_file *file)
{
	seq_printf(file, "patience held %llu longest %llu ret %d\n",
		   apic_timer_tsc_to_ns(result.held), apic_timer_tsc_to_ns(result.longest),
		   result.ret);
}
