// SPDX-License-Identifier: GPL-2.0
/*
 * Learn the lead from the preparation of each packet. A preparation lasts from the moment that
 * the timer was armed for until the packet can be given to the driver. It includes the latency of
 * the interrupt. The handler spends the rest of the lead waiting, so the lead should be short, and
 * yet longer than all but the rarest preparations.
 *
 * Preparations take long because kernel code has interrupts off, or because the CPU has to wake
 * up. On one system this happens once in ten packets, on another once in thousands or never. It
 * depends on what the CPU is doing, and the best prediction for the next packet is the state of
 * the CPU at the previous departure. There is therefore a class for each state, and a CPU that
 * only runs a program does not get the lead of an idle CPU. Several departures in a row must have
 * found a program for that: where only some do, kernel code will probably delay the next packet,
 * and the program's class has too few packets to learn for how long.
 *
 * The lead is the longest preparation of the last two windows, plus an eighth, plus some cycles:
 * the durations for which interrupts are off have no long tail. Windows grow, because a short
 * window misses events that happen once in thousands of packets. The first window is short,
 * because the initial guess costs more than any likely lead.
 *
 * Some delays are so rare that perhaps no window has seen them. For example, a task goes to sleep
 * just before the moment, and the kernel has interrupts off while it switches. There is therefore
 * a minimum lead, except where a program runs, which would pay for it with each packet.
 *
 * Where waiting takes most of the CPU's time, this lead is too long. A little more than the mean
 * is enough for most packets, and the others are then late by less than all packets would be
 * otherwise.
 */
#include <linux/minmax.h>

#include "lead.h"

#define GROWTH	4

/**
 * shaper_lead_init() - initialise a lead
 * @lead:	the lead
 * @guess:	initial lead, TSC cycles
 * @least:	minimum lead, except where a program runs, TSC cycles
 * @max:	maximum lead, TSC cycles
 * @window:	maximum length of a window, preparations; %SHAPER_LEAD_WINDOW or more
 *
 * Context: Any.
 */
void shaper_lead_init(struct shaper_lead *lead, u32 guess, u32 least, u32 max, u32 window)
{
	unsigned int i;

	*lead = (struct shaper_lead) {
		.cycles = guess, .usual = guess, .guess = guess, .least = least, .max = max,
		.window = window, .mean = guess << SHAPER_LEAD_SHIFT,
	};
	for (i = 0; i < SHAPER_LEAD_CLASSES; i++)
		lead->class[i].window = SHAPER_LEAD_WINDOW;
}

static u32 longest(const struct shaper_lead_class *class)
{
	return max(class->longest, class->before);
}

/* Known classes stand in for a class that is not known yet. */
static u32 longest_of_any(const struct shaper_lead *lead)
{
	u32 found = 0;
	unsigned int i;

	for (i = 0; i < SHAPER_LEAD_CLASSES; i++)
		if (lead->class[i].before)
			found = max(found, longest(&lead->class[i]));
	return found;
}

static u32 cycles(const struct shaper_lead *lead, enum shaper_lead_found found)
{
	const struct shaper_lead_class *class = &lead->class[found];
	u32 took = longest(class);

	if (unlikely(!class->before)) {
		took = longest_of_any(lead);
		if (!took)
			took = lead->guess;
		took = max(took, class->longest);
	}
	took += took / 8 + 32;
	if (found != SHAPER_LEAD_USER)
		took = max(took, lead->least);
	return min(took, lead->max);
}

/* A much longer preparation moves the mean no more than one that is twice the mean. */
static void average(struct shaper_lead *lead, u32 took)
{
	u32 mean = lead->mean >> SHAPER_LEAD_SHIFT;

	lead->mean += min(took, 2 * mean + 64) - mean;
	lead->usual = min(mean + mean / 4 + 32, lead->cycles);
}

/**
 * shaper_lead_learn() - take a preparation into account
 * @lead:	the lead
 * @took:	TSC cycles from the moment that the timer was armed for until the packet was
 *		ready
 * @found:	state of the CPU that the interrupt found
 *
 * A preparation longer than the maximum lead says nothing about the next one, and is ignored:
 * for example, another interrupt was served first.
 *
 * Context: Any; the caller serialises access to @lead.
 */
void shaper_lead_learn(struct shaper_lead *lead, u64 took, enum shaper_lead_found found)
{
	struct shaper_lead_class *class = &lead->class[lead->now];
	bool same;

	if (found != SHAPER_LEAD_USER) {
		lead->programs = 0;
	} else if (unlikely(lead->programs < SHAPER_LEAD_PROGRAMS)) {
		lead->programs++;
		found = SHAPER_LEAD_KERNEL;
	}
	same = found == lead->now;
	if (likely(took <= lead->max)) {
		average(lead, took);
		if (unlikely(took > class->longest)) {
			class->longest = took;
			same = false;
		}
		if (unlikely(++class->count == class->window)) {
			same = false;
			class->before = class->longest;
			class->longest = 0;
			class->count = 0;
			class->window = min(class->window * GROWTH, lead->window);
		}
	}
	if (likely(same))
		return;
	lead->now = found;
	lead->cycles = cycles(lead, found);
}
