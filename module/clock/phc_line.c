// SPDX-License-Identifier: GPL-2.0
/*
 * The lines of the PTP hardware clocks that are attached, as any context can use them, an NMI
 * too: of each there are two copies, of which one is whole at any time.
 */
#include <linux/apic_clock.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/seqlock.h>

#include "phc_line.h"

/* A number: 0x50, how often one was given, and the slot. */
#define SLOT_MASK	(APIC_CLOCK_PHCS - 1)
#define COUNT_SHIFT	4
#define COUNT_MASK	0xfffff

static_assert(APIC_CLOCK_PHCS == 1 << COUNT_SHIFT);

static struct slot {
	seqcount_latch_t latch;
	struct apic_clock_published copies[2];
} slots[APIC_CLOCK_PHCS];

/**
 * apic_clock_phc_slot() - get the slot of a number
 * @clock:	the number, of whatever clock
 *
 * Context: Any.
 * Return: the slot, less than APIC_CLOCK_PHCS; it may have another number.
 */
unsigned int apic_clock_phc_slot(clockid_t clock)
{
	return clock & SLOT_MASK;
}

/**
 * apic_clock_phc_number() - make a number
 * @slot:	the slot
 * @given:	how many were made so far, so that no two are equal for a long time
 *
 * Context: Any.
 * Return: the number.
 */
clockid_t apic_clock_phc_number(unsigned int slot, unsigned int given)
{
	return APIC_CLOCK_PHC | (given & COUNT_MASK) << COUNT_SHIFT | slot;
}

/**
 * apic_clock_phc_publish() - have timers use this
 * @slot:	the slot
 * @published:	what is used from now on
 *
 * Context: Task. The caller keeps others from writing to the slot.
 */
void apic_clock_phc_publish(unsigned int slot, const struct apic_clock_published *published)
{
	struct slot *to = &slots[slot];

	raw_write_seqcount_latch(&to->latch);
	to->copies[0] = *published;
	raw_write_seqcount_latch(&to->latch);
	to->copies[1] = *published;
}

/**
 * apic_clock_phc_published() - get what timers use
 * @slot:	the slot
 *
 * Context: Any.
 * Return: what was published last.
 */
struct apic_clock_published apic_clock_phc_published(unsigned int slot)
{
	const struct slot *of = &slots[slot];
	struct apic_clock_published published;
	unsigned int seq;

	do {
		seq = raw_read_seqcount_latch(&of->latch);
		/* Of a copy that is written meanwhile nothing is used. */
		published = data_race(of->copies[seq & 1]);
		/* Pairs with the barriers of raw_write_seqcount_latch(). */
		smp_rmb();
	} while (raw_read_seqcount_latch(&of->latch) != seq);
	return published;
}

/**
 * apic_clock_phc_line() - get the present line of a clock
 * @clock:	the number that it was attached by
 * @line:	set
 *
 * Context: Any.
 * Return: 0; -ENODEV if the clock is gone; -EINVAL if there is none of that number.
 */
int apic_clock_phc_line(clockid_t clock, struct apic_clock_phc_line *line)
{
	struct apic_clock_published published;

	if (!apic_clock_is_phc(clock))
		return -EINVAL;
	published = apic_clock_phc_published(apic_clock_phc_slot(clock));
	if (published.clock != clock)
		return -EINVAL;
	*line = published.line;
	return published.ret;
}

/**
 * apic_clock_phc_line_init() - before the first clock is attached
 */
void apic_clock_phc_line_init(void)
{
	unsigned int slot;

	for (slot = 0; slot < APIC_CLOCK_PHCS; slot++)
		seqcount_latch_init(&slots[slot].latch);
}
