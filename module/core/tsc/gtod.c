// SPDX-License-Identifier: GPL-2.0
/*
 * The lines by which the kernel's timekeeper computes its clocks from the TSC,
 * copied whenever it changes them: at each of its ticks, and when the clock is
 * set or steered.
 *
 * The copy costs each tick some 50 instructions. It begins with the first
 * conversion, so that who converts nothing pays nothing.
 */
#include <linux/atomic.h>
#include <linux/clocksource.h>
#include <linux/hardirq.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/timekeeper_internal.h>

#include "tsc/gtod.h"

seqcount_latch_t apic_timer_gtod_latch = SEQCNT_LATCH_ZERO(apic_timer_gtod_latch);
struct apic_timer_gtod apic_timer_gtod[2];

static struct apic_timer_line line_of(const struct tk_read_base *tkr)
{
	return (struct apic_timer_line) {
		.last = tkr->cycle_last,
		.base = tkr->base,
		.frac = tkr->xtime_nsec,
		.mult = tkr->clock->vdso_clock_mode == VDSO_CLOCKMODE_TSC ? tkr->mult : 0,
		.shift = tkr->shift,
	};
}

static void copy(struct apic_timer_gtod *gtod, const struct timekeeper *tk)
{
	struct apic_timer_line line = line_of(&tk->tkr_mono);

	gtod->line[CLOCK_MONOTONIC] = line;
	gtod->line[CLOCK_BOOTTIME] = line;
	gtod->line[CLOCK_BOOTTIME].base += tk->offs_boot;
	gtod->line[CLOCK_REALTIME] = line;
	gtod->line[CLOCK_REALTIME].base += tk->offs_real;
	gtod->line[CLOCK_TAI] = line;
	gtod->line[CLOCK_TAI].base += tk->offs_tai;
	gtod->line[CLOCK_MONOTONIC_RAW] = line_of(&tk->tkr_raw);
	gtod->mult = tk->tkr_mono.mult;
	gtod->nominal = tk->tkr_mono.clock->mult;
	gtod->tick_ns = (gtod->nominal >> tk->tkr_mono.clock->shift) + 1;
}

/*
 * Called under the timekeeper's lock, inside its sequence counter: whoever reads
 * a clock of the kernel's here waits for ever.
 */
static int update(struct notifier_block *block, unsigned long was_set, void *timekeeper)
{
	raw_write_seqcount_latch(&apic_timer_gtod_latch);
	copy(&apic_timer_gtod[0], timekeeper);
	raw_write_seqcount_latch(&apic_timer_gtod_latch);
	copy(&apic_timer_gtod[1], timekeeper);
	return NOTIFY_OK;
}

static struct notifier_block block = {
	.notifier_call = update,
};

static atomic_t started;

/**
 * apic_timer_gtod_rate() - get how NTP steers the kernel's clock
 * @mult:	set: rate of CLOCK_MONOTONIC by the clocksource, whichever that is
 * @nominal:	set: the same without steering; 0 as long as that is not known
 * @tick_ns:	set: step in which the clocksource counts, ns; likewise
 *
 * Context: Any.
 */
void apic_timer_gtod_rate(u32 *mult, u32 *nominal, u32 *tick_ns)
{
	const struct apic_timer_gtod *gtod;
	unsigned int seq;

	do {
		seq = raw_read_seqcount_latch(&apic_timer_gtod_latch);
		gtod = &apic_timer_gtod[seq & 1];
		/* Of a copy that is written meanwhile nothing is used. */
		*mult = data_race(gtod->mult);
		*nominal = data_race(gtod->nominal);	/* likewise */
		*tick_ns = data_race(gtod->tick_ns);	/* likewise */
		/* Pairs with the barriers of raw_write_seqcount_latch(). */
		smp_rmb();
	} while (raw_read_seqcount_latch(&apic_timer_gtod_latch) != seq);
}

/**
 * apic_timer_gtod_start() - begin to copy, unless that was done
 *
 * Context: Any. In NMI, which may have interrupted the timekeeper, nothing is
 * begun.
 * Return: whether this call has begun it; the lines are known then.
 */
bool apic_timer_gtod_start(void)
{
	if (in_nmi() || atomic_read(&started) || atomic_cmpxchg(&started, 0, 1))
		return false;
	/* Calls update() at once. */
	pvclock_gtod_register_notifier(&block);
	return true;
}

/**
 * apic_timer_gtod_exit() - copy no more
 *
 * Context: Task. Nobody converts any more.
 */
void apic_timer_gtod_exit(void)
{
	if (atomic_read(&started))
		pvclock_gtod_unregister_notifier(&block);
}
