// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the TSC and the kernel's clocks at one moment. A ktime_get() between two
 * looks at the TSC leaves open when between them it was; the kernel's snapshot has
 * the very TSC value that its clocks were computed from, as long as the TSC is the
 * clock source.
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "compat.h"
#include "snapshot.h"

/* Offsets from CLOCK_MONOTONIC. */
static s64 offset(enum tk_offsets which)
{
	return ktime_to_ns(ktime_mono_to_any(0, which));
}

/**
 * shaper_read_clocks() - read the TSC and the kernel's clocks
 * @pair:	where to
 *
 * Context: Any but NMI.
 */
void shaper_read_clocks(struct shaper_pair *pair)
{
	u64 before, cycles, after;
	unsigned long flags;
	s64 real, to_real;

	local_irq_save(flags);
	/* Once more if a clock was set in between. */
	do {
		to_real = offset(TK_OFFS_REAL);
		before = rdtsc_ordered();
		cycles = shaper_snapshot(&real);
		after = rdtsc_ordered();
		pair->ns[SHAPER_TAI] = offset(TK_OFFS_TAI);
	} while (unlikely(to_real != offset(TK_OFFS_REAL)));
	local_irq_restore(flags);

	/*
	 * With another clock source, its counter is somewhere else, and the clocks were read
	 * at some time between the two looks at the TSC. Take the latest: a packet may be late
	 * by what the clock source takes to read, but not early.
	 */
	pair->tsc = cycles >= before && cycles <= after ? cycles : after;
	pair->ns[SHAPER_REALTIME] = real;
	pair->ns[SHAPER_MONOTONIC] = real - to_real;
	pair->ns[SHAPER_TAI] += real - to_real;
}
