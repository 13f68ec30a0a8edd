// SPDX-License-Identifier: GPL-2.0
/*
 * Three TSCs whose differences do not fit together: one TSC has moved after it was measured, and
 * before its neighbour was measured against it. Where the emulator has a single TSC for all CPUs,
 * the measured value of the first CPU is changed instead.
 */
#include <linux/errno.h>
#include <linux/kprobes.h>
#include <linux/seq_file.h>
#include <linux/smp.h>

#include "bounds.h"
#include "clock_test.h"

/* Cycles, more than the longest round trip that counts. */
#define MOVED	1000000000

static unsigned int left, rings;

static int entered(struct kprobe *unused, struct pt_regs *regs)
{
	struct apic_clock_bounds *first = (struct apic_clock_bounds *)regs->di;

	rings++;
	if (left) {
		left--;
		first->low += MOVED;
		first->high += MOVED;
	}
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "apic_clock:apic_clock_bounds_ring",
	.pre_handler = entered,
};

static bool probing;

/* Prevent the next @count rings from closing. */
int clock_test_ring(unsigned int count)
{
	int ret = 0;

	left = count;
	if (!probing)
		ret = register_kprobe(&probe);
	probing |= !ret;
	return ret;
}

static s64 by;
static unsigned int moved;	/* the CPU */
static unsigned int measured;
static call_single_data_t move = CSD_INIT(clock_test_adjust_by, &by);

/* CPU N is measured as the Nth. It moves before its next measurement. */
static int snapped(struct kprobe *unused, struct pt_regs *regs)
{
	if (++measured == moved)
		smp_call_function_single_async(moved, &move);
	return 0;
}

static struct kprobe snap_probe = {
	.symbol_name = "apic_clock:apic_clock_bounds_snap",
	.pre_handler = snapped,
};

static bool snapping;

/* Move it by TSC_ADJUST, the next time that all CPUs are measured. */
int clock_test_ring_move(unsigned int cpu, int cycles)
{
	int ret = 0;

	if (!cpu)
		return -EINVAL;
	by = cycles;
	moved = cpu;
	measured = 0;
	if (!snapping)
		ret = register_kprobe(&snap_probe);
	snapping |= !ret;
	return ret;
}

void clock_test_ring_exit(void)
{
	if (probing)
		unregister_kprobe(&probe);
	if (snapping)
		unregister_kprobe(&snap_probe);
}

void clock_test_ring_show(struct seq_file *file)
{
	seq_printf(file, "rings %u left %u\n", rings, left);
}
