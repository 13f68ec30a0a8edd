// SPDX-License-Identifier: GPL-2.0
/*
 * The lines by which the kernel's timekeeper computes its clocks from the TSC,
 * copied whenever it changes them: at each of its ticks, and when the clock is
 * set or steered.
 *
 * The copy costs each tick some 50 instructions. It begins with the first
 * conversion, so that a system without conversions pays nothing.
 */
#include <linux/atomic.h>
#include <linux/clocksource.h>
#include <linux/hardirq.h>
#include <linux/jiffies.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/string.h>
#include <linux/timekeeper_internal.h>

#include "tsc/gtod.h"

seqcount_latch_t apic_timer_gtod_latch = SEQCNT_LATCH_ZERO(apic_timer_gtod_latch);

/*
 * Properties that hold for any clocksource: a conversion has only these while another
 * CPU, or the code that an NMI has interrupted, makes the first copy.
 */
#define ANY	{ .tick_ns = TICK_NSEC, .shared = IS_ENABLED(CONFIG_SMP) }

struct apic_timer_gtod apic_timer_gtod[2] = { { .source = ANY }, { .source = ANY } };

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

static struct apic_timer_gtod_source source_of(const struct tk_read_base *tkr)
{
	const struct clocksource *clock = tkr->clock;

	return (struct apic_timer_gtod_source) {
		.mult = tkr->mult,
		.nominal = clock->mult,
		.tick_ns = (clock->mult >> clock->shift) + 1,
		.shared = IS_ENABLED(CONFIG_SMP) && !strcmp(clock->name, "hpet"),
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
	gtod->source = source_of(&tk->tkr_mono);
}

/*
 * Called under the timekeeper's lock, inside its sequence counter: code that
 * reads a kernel clock here waits forever.
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
 * apic_timer_gtod_source() - get the clocksource of the kernel's clocks
 *
 * Context: Any.
 * Return: the clocksource; before apic_timer_gtod_start(), with a @mult of 0 and a
 * step that no clocksource exceeds.
 */
struct apic_timer_gtod_source apic_timer_gtod_source(void)
{
	struct apic_timer_gtod_source source;
	unsigned int seq;

	do {
		seq = raw_read_seqcount_latch(&apic_timer_gtod_latch);
		/* A copy that is written meanwhile is not used. */
		source = data_race(apic_timer_gtod[seq & 1].source);
		/* Pairs with the barriers of raw_write_seqcount_latch(). */
		smp_rmb();
	} while (raw_read_seqcount_latch(&apic_timer_gtod_latch) != seq);
	return source;
}

/**
 * apic_timer_gtod_start() - begin to copy, unless already begun
 *
 * Context: Any. In NMI, which may have interrupted the timekeeper, copying is
 * not begun.
 * Return: true if this call has begun it; the lines are known then.
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
 * apic_timer_gtod_exit() - stop copying
 *
 * Context: Task. There are no more conversions.
 */
void apic_timer_gtod_exit(void)
{
	if (atomic_read(&started))
		pvclock_gtod_unregister_notifier(&block);
}
