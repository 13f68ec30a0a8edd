// SPDX-License-Identifier: GPL-2.0
/*
 * Three TSCs whose distances do not fit together: one has moved after it was measured, and
 * before its neighbour was measured against it. Where the emulator's TSCs are one, it is
 * what was measured of the first that is moved.
 */
#include <linux/errno.h>
#include <linux/kprobes.h>
#include <linux/seq_file.h>
#include <linux/smp.h>

#include "bounds.h"
#include "clock_test.h"

/* Cycles, more than any round trip that counts takes. */
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

/* The next @count rings do not close. */
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

/* CPU N is the Nth that is measured. What moves it comes before the next measurement of it. */
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

/* By TSC_ADJUST, the next time that all are measured */
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
