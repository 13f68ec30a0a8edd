// SPDX-License-Identifier: GPL-2.0
/*
 * The lines of the attached PTP hardware clocks. Any context can use them, even an NMI: each
 * has two copies, one of which is consistent at any time.
 */
#include <linux/apic_clock.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/seqlock.h>

#include "phc_line.h"

/* A number consists of 0x50, a count of the numbers given, and the slot. */
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
 * @clock:	the number of any clock
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
 * @given:	count of the numbers made so far, so that no number repeats for a long time
 *
 * Context: Any.
 * Return: the number.
 */
clockid_t apic_clock_phc_number(unsigned int slot, unsigned int given)
{
	return APIC_CLOCK_PHC | (given & COUNT_MASK) << COUNT_SHIFT | slot;
}

/**
 * apic_clock_phc_publish() - publish a clock's state for timers
 * @slot:	the slot
 * @published:	the state to use from now on
 *
 * Context: Task. The caller prevents other writes to the slot.
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
 * apic_clock_phc_published() - get a clock's published state
 * @slot:	the slot
 *
 * Context: Any.
 * Return: the state published last.
 */
struct apic_clock_published apic_clock_phc_published(unsigned int slot)
{
	const struct slot *of = &slots[slot];
	struct apic_clock_published published;
	unsigned int seq;

	do {
		seq = raw_read_seqcount_latch(&of->latch);
		/* A copy that is written meanwhile is discarded. */
		published = data_race(of->copies[seq & 1]);
		/* Pairs with the barriers of raw_write_seqcount_latch(). */
		smp_rmb();
	} while (raw_read_seqcount_latch(&of->latch) != seq);
	return published;
}

/**
 * apic_clock_phc_line() - get the present line of a clock
 * @clock:	number of the attached clock
 * @line:	set
 *
 * Context: Any.
 * Return: 0; -ENODEV if the clock is gone; -EINVAL if no clock has that number.
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
 * apic_clock_phc_line_init() - initialise, before the first clock is attached
 */
void apic_clock_phc_line_init(void)
{
	unsigned int slot;

	for (slot = 0; slot < APIC_CLOCK_PHCS; slot++)
		seqcount_latch_init(&slots[slot].latch);
}
