// SPDX-License-Identifier: GPL-2.0
/*
 * Three TSCs whose distances do not fit together: one has moved after it was measured, and
 * before its neighbour was measured against it. The emulator's TSCs are one, so it is
 * what was measured of the first that is moved.
 */
#include <linux/kprobes.h>
#include <linux/seq_file.h>

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

void clock_test_ring_exit(void)
{
	if (probing)
		unregister_kprobe(&probe);
}

void clock_test_ring_show(struct seq_file *file)
{
	seq_printf(file, "rings %u left %u\n", rings, left);
}
