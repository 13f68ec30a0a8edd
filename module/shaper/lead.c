// SPDX-License-Identifier: GPL-2.0
/*
 * How long it takes from the moment that the timer was armed for until a packet could
 * be given to the driver, learnt from one packet after the other: the latency of the
 * interrupt, and the preparation. The rest of the lead is spent waiting, so it is to be
 * short, and yet longer than all but the rarest.
 *
 * What takes long is that code of the kernel's has interrupts off, or that the CPU has to
 * wake up: once in ten packets here, once in thousands or never there. It depends
 * on what the CPU does, and what that was when the last packet left says most about the
 * next one. So there is a class for each, and a CPU that does nothing but to run a
 * program is not waited for as if it were idle.
 *
 * The lead is the longest preparation of the last two windows, an eighth, and some
 * cycles: what interrupts are off for has no long tail. Windows grow, since what
 * happens once in thousands of times is not seen by a short one; the first is short, as
 * the guess costs more than anything that is likely.
 *
 * Some of what takes long is so rare that no window may have seen it: a task goes to sleep just
 * before the moment, and the kernel has interrupts off while it switches. So there is a least
 * lead, but where a program runs: that pays for it with each packet.
 *
 * Where waiting takes most of the CPU's time, that is too much: a little more than the mean
 * will do for most packets, and the rest is late by less than all would be else.
 */
#include <linux/minmax.h>

#include "lead.h"

#define GROWTH	4

/**
 * shaper_lead_init() - begin to learn
 * @lead:	the lead
 * @guess:	what to begin with, TSC cycles
 * @least:	what it is at least, but where a program runs, TSC cycles
 * @max:	what it may come to, TSC cycles
 * @window:	what the windows grow to, preparations; %SHAPER_LEAD_WINDOW or more
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

/* The classes that are known stand in for one that is not. */
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

/* One that took much longer than the mean moves it by no more than what took twice as long. */
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
 * @found:	what the CPU was at
 *
 * One that took longer than a lead may be says nothing about the next: another
 * interrupt came first, say.
 *
 * Context: Any; the caller keeps others from @lead.
 */
void shaper_lead_learn(struct shaper_lead *lead, u64 took, enum shaper_lead_found found)
{
	struct shaper_lead_class *class = &lead->class[lead->now];
	bool same = found == lead->now;

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
