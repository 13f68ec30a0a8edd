// SPDX-License-Identifier: GPL-2.0
/*
 * How long it takes from the expiry of the timer until a packet could be given to
 * the driver, learnt from one packet after the other. The rest of the lead is spent
 * waiting, so it is to be short, and yet longer than all but the rarest.
 */
#include <linux/minmax.h>

#include "lead.h"

#define WINDOW	64	/* preparations */

/**
 * shaper_lead_init() - begin to learn
 * @lead:	the lead
 * @cycles:	what to begin with, TSC cycles
 * @max:	what it may come to, TSC cycles
 *
 * Context: Any.
 */
void shaper_lead_init(struct shaper_lead *lead, u32 cycles, u32 max)
{
	*lead = (struct shaper_lead) { .cycles = cycles, .max = max };
}

/**
 * shaper_lead_learn() - take a preparation into account
 * @lead:	the lead
 * @took:	TSC cycles from the expiry until the packet was ready
 *
 * The lead grows at once. It shrinks to the longest preparation of the last two
 * windows, an eighth, and some cycles: to take a packet out of a tree is longer at
 * times. One that took longer than a lead may be says
 * nothing about the next: another interrupt came first, say.
 *
 * Context: Any; the caller keeps others from @lead.
 */
void shaper_lead_learn(struct shaper_lead *lead, u64 took)
{
	u32 longest;

	if (took > lead->max)
		return;
	lead->longest = max_t(u32, lead->longest, took);
	longest = max(lead->longest, lead->before);
	longest = min(longest + longest / 8 + 32, lead->max);
	if (++lead->count == WINDOW) {
		lead->before = lead->longest;
		lead->longest = 0;
		lead->count = 0;
		lead->cycles = longest;
	}
	lead->cycles = max(lead->cycles, longest);
}
