// SPDX-License-Identifier: GPL-2.0
/*
 * Periodic timers: on time, after an overrun, and without drift.
 */
#include <linux/limits.h>

#include "selftest.h"

static void forward_arithmetic(struct selftest *test)
{
	struct apic_timer_list timer = { .expires = 1000 };

	/* Still ahead: nothing to do. */
	EXPECT_EQ(test, apic_timer_forward(&timer, 999, 100), 0);
	EXPECT_EQ(test, timer.expires, 1000);
	/* The new moment exceeds now. */
	EXPECT_EQ(test, apic_timer_forward(&timer, 1000, 100), 1);
	EXPECT_EQ(test, timer.expires, 1100);
	EXPECT_EQ(test, apic_timer_forward(&timer, 1199, 100), 1);
	EXPECT_EQ(test, timer.expires, 1200);
	EXPECT_EQ(test, apic_timer_forward(&timer, 1550, 100), 4);
	EXPECT_EQ(test, timer.expires, 1600);
	/* No period; at the end of time. */
	EXPECT_EQ(test, apic_timer_forward(&timer, 2000, 0), 0);
	EXPECT_EQ(test, timer.expires, 1600);
	EXPECT_EQ(test, apic_timer_forward(&timer, 2000, U64_MAX), 1);
	EXPECT_EQ(test, timer.expires, U64_MAX);
}

static void forward_period_arithmetic(struct selftest *test)
{
	struct apic_timer_period period = { .start = 5000, .period_ns = 333 };
	struct apic_timer_list timer = { .expires = 5000 };
	u64 n, now, total = 0;

	EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, 4999), 0);
	EXPECT_EQ(test, timer.expires, 5000);
	for (n = 1; n < 1000 && !test->failed; n++) {
		total += apic_timer_forward_period(&timer, &period,
						   timer.expires);
		EXPECT_EQ(test, period.n, n);
		EXPECT_EQ(test, total, n);
		EXPECT_EQ(test, timer.expires,
			  5000 + apic_timer_ns_to_tsc(n * 333));
	}
	/* 100 missed at once. */
	n = period.n;
	now = 5000 + apic_timer_ns_to_tsc((n + 99) * 333);
	EXPECT_EQ(test, apic_timer_forward_period(&timer, &period, now), 100);
	EXPECT_EQ(test, period.n, n + 100);
	EXPECT_EQ(test, timer.expires,
		  5000 + apic_timer_ns_to_tsc((n + 100) * 333));
}

/* A timer that forwards itself; each moment is one of the period's. */
struct periodic {
	struct selftest_shot shot;
	struct apic_timer_period period;
	u64 cycles;
	u64 overruns;
	unsigned int slow_us;
	int off_beat;
};

static void beat(struct selftest_shot *shot)
{
	struct periodic *p = container_of(shot, struct periodic, shot);
	u64 forward;

	if ((shot->timer.expires - p->period.start) % p->cycles)
		p->off_beat++;
	if (p->slow_us && atomic_read(&shot->runs) % 10 == 5)
		selftest_spin_us(p->slow_us);
	forward = apic_timer_forward(&shot->timer, apic_timer_now(), p->cycles);
	if (!forward || shot->timer.expires <= shot->now)
		p->off_beat++;
	p->overruns += forward - 1;
	WRITE_ONCE(shot->due, shot->timer.expires);
	if (atomic_read(&shot->runs) + 1 < shot->limit)
		shot->ret |= add_apic_timer(&shot->timer);
}

static void run_periodic(struct selftest *test, struct periodic *p,
			 unsigned int us)
{
	selftest_shot_init(&p->shot, beat);
	p->cycles = apic_timer_us_to_tsc(us);
	p->shot.limit = 100;
	selftest_shot_due_us(&p->shot, 1000);
	p->period.start = p->shot.due;
	EXPECT_EQ(test, add_apic_timer(&p->shot.timer), 0);
	EXPECT_RUNS(test, &p->shot, 100);
	EXPECT_EQ(test, p->shot.ret, 0);
	EXPECT_EQ(test, p->off_beat, 0);
	/* start + n * period, where n also counts missed moments. */
	EXPECT_EQ(test, p->shot.timer.expires,
		  p->period.start + (100 + p->overruns) * p->cycles);
	del_apic_timer_sync(&p->shot.timer);
}

static void periodic(struct selftest *test)
{
	struct periodic p = {};

	run_periodic(test, &p, 1000);
	selftest_note(test, "%llu overruns\n", p.overruns);
}

/* One delivery for all missed moments, then back on the beat. */
static void overrun(struct selftest *test)
{
	struct periodic p = { .slow_us = 1050 };

	run_periodic(test, &p, 200);
	EXPECT_GE(test, p.overruns, 10 * 5);
	selftest_note(test, "%llu overruns\n", p.overruns);
}

/* 300 Hz: neither a whole number of ns nor of cycles. */
static void beat_ns(struct selftest_shot *shot)
{
	struct periodic *p = container_of(shot, struct periodic, shot);

	if (shot->timer.expires != p->period.start +
	    apic_timer_ns_to_tsc(p->period.n * p->period.period_ns))
		p->off_beat++;
	p->overruns += apic_timer_forward_period(&shot->timer, &p->period,
						 shot->now) - 1;
	WRITE_ONCE(shot->due, shot->timer.expires);
	if (atomic_read(&shot->runs) + 1 < shot->limit)
		shot->ret |= add_apic_timer(&shot->timer);
}

static void no_drift(struct selftest *test)
{
	struct periodic p = { .period.period_ns = 333333 };

	selftest_shot_init(&p.shot, beat_ns);
	p.shot.limit = 300;
	selftest_shot_due_us(&p.shot, 1000);
	p.period.start = p.shot.due;
	EXPECT_EQ(test, add_apic_timer(&p.shot.timer), 0);
	EXPECT_RUNS(test, &p.shot, 300);
	EXPECT_EQ(test, p.shot.ret, 0);
	EXPECT_EQ(test, p.off_beat, 0);
	EXPECT_EQ(test, p.period.n, 300 + p.overruns);
	del_apic_timer_sync(&p.shot.timer);
}

const struct selftest_case selftest_period_cases[] = {
	CASE(forward_arithmetic),
	CASE(forward_period_arithmetic),
	CASE(periodic),
	CASE(overrun),
	CASE(no_drift),
	{}
};
