// SPDX-License-Identifier: GPL-2.0
/*
 * Fences: a kernel hrtimer on the same hardware is deferred until a moment, and only once.
 */
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>

#include "compat/hrtimer.h"
#include "selftest.h"

#define ROUNDS		100
/* From the start of a round, us. */
#define DUE_US		5
#define UNTIL_US	15
#define SECOND_US	25

static struct hrtimer event;
static u64 event_ran;

static enum hrtimer_restart ran(struct hrtimer *timer)
{
	WRITE_ONCE(event_ran, apic_timer_now());
	return HRTIMER_NORESTART;
}

/* Run one event, due within one or two fences. Return: TSC when it ran, 0 if it did not. */
static u64 one_event(u64 *until, unsigned int fences, int *ret)
{
	u64 second, start;
	unsigned long flags;

	WRITE_ONCE(event_ran, 0);
	local_irq_save(flags);
	start = apic_timer_now();
	*until = start + apic_timer_us_to_tsc(UNTIL_US);
	second = start + apic_timer_us_to_tsc(SECOND_US);
	hrtimer_start(&event, ns_to_ktime(DUE_US * 1000), HRTIMER_MODE_REL_PINNED_HARD);
	*ret = fences ? apic_timer_fence(*until) : 0;
	if (fences > 1)
		*ret = *ret ?: apic_timer_fence(second);
	local_irq_restore(flags);
	/* Do not sleep: an idle CPU's work on its tick takes as long. */
	selftest_spin_until(READ_ONCE(event_ran));
	hrtimer_cancel(&event);
	return READ_ONCE(event_ran);
}

/* Never before the moment; the delay after it depends on the machine: the best counts. */
static void fence(struct selftest *test)
{
	u64 until, at, best[3] = { U64_MAX, U64_MAX, U64_MAX };
	unsigned int fences, i, early = 0;
	struct apic_timer_info info;
	bool shared;
	int ret;

	EXPECT_EQ(test, apic_timer_query(0, &info), 0);
	shared = info.hardware != APIC_TIMER_HW_HRTIMER && !info.exclusive;
	EXPECT_EQ(test, apic_timer_fence(apic_timer_now() + apic_timer_us_to_tsc(1000)),
		  shared ? -ERANGE : -EOPNOTSUPP);
	if (!shared)
		return;

	apic_timer_hrtimer_setup(&event, ran, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	for (i = 0; i < ROUNDS; i++) {
		for (fences = 0; fences < ARRAY_SIZE(best); fences++) {
			at = one_event(&until, fences, &ret);
			EXPECT_EQ(test, ret, 0);
			if (!EXPECT(test, at))
				return;
			if (fences)
				early += at < until;
			else
				until -= apic_timer_us_to_tsc(UNTIL_US - DUE_US);
			best[fences] = min(best[fences], at - min(at, until));
			selftest_spin_us(SECOND_US);
		}
	}
	EXPECT_EQ(test, early, 0);
	/* A second fence does not move it further. */
	EXPECT_GE(test, apic_timer_us_to_tsc(SECOND_US - UNTIL_US), best[2]);
	selftest_note(test, "at best late by %llu cycles; kept away once %llu, twice %llu\n",
		      best[0], best[1], best[2]);
}

const struct selftest_case selftest_fence_cases[] = {
	CASE(fence),
	{}
};
