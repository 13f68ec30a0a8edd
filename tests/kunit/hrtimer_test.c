// SPDX-License-Identifier: GPL-2.0
/*
 * The source "hrtimer", its real code, on a fake of the kernel's hrtimers, whose clock may be
 * faster or slower than the TSC.
 */
#include <kunit/test.h>
#include <linux/hardirq.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "machine.h"
#include "mux/mux.h"
#include "mux/source.h"

#define INTERRUPTS_MAX	20000

/**
 * struct fake_hrtimer - the one hrtimer of the one CPU
 * @function:	its callback, once it was set up
 * @mode:	mode with which it was set up
 * @ppb:	how much faster the kernel's clock is than the TSC
 * @latency:	TSC cycles from its expiry to the callback
 * @active:	it is started
 * @at:		its expiry, by the kernel's clock
 * @starts:	number of starts
 * @other:	number of starts that were not pinned, absolute, and for hard interrupt
 * @interrupts:	number of calls of its callback
 * @restarts:	number of calls that asked the kernel for a restart
 */
static struct fake_hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *timer);
	enum hrtimer_mode mode;
	s64 ppb;
	u64 latency;
	bool active;
	ktime_t at;
	unsigned int starts, other, interrupts, restarts;
} fake;

static u64 tsc_hz(void)
{
	return apic_timer_sim.machine.tsc_khz * 1000ULL;
}

static ktime_t fake_now(void)
{
	return mul_u64_u64_div_u64(apic_timer_sim.now, NSEC_PER_SEC + fake.ppb, tsc_hz());
}

/* Read the kernel's clock: it reads the TSC, which takes a while. */
static ktime_t fake_get(void)
{
	apic_timer_sim.now += apic_timer_sim.machine.cost;
	return fake_now();
}

static void fake_setup(struct hrtimer *timer,
		       enum hrtimer_restart (*function)(struct hrtimer *),
		       clockid_t clock, enum hrtimer_mode mode)
{
	fake.function = function;
	fake.other += clock != CLOCK_MONOTONIC || mode != HRTIMER_MODE_ABS_PINNED_HARD;
}

static void fake_start(struct hrtimer *timer, ktime_t at, enum hrtimer_mode mode)
{
	fake.active = true;
	fake.at = at;
	fake.starts++;
	fake.other += mode != HRTIMER_MODE_ABS_PINNED_HARD;
}

static int fake_cancel(struct hrtimer *timer)
{
	int was = fake.active;

	fake.active = false;
	return was;
}

#define _APIC_TIMER_COMPAT_HRTIMER_H
#define apic_timer_hrtimer_setup	fake_setup
#define hrtimer_start			fake_start
#define hrtimer_cancel			fake_cancel
#define ktime_get			fake_get
#include "../../module/core/sources/hrtimer.c"

/* Let time pass. */
static void run(u64 cycles)
{
	u64 until = apic_timer_sim.now + cycles, at;
	unsigned int n = 0;
	unsigned long flags;

	local_irq_save(flags);
	while (fake.active && n++ < INTERRUPTS_MAX) {
		at = mul_u64_u64_div_u64(fake.at, tsc_hz(), NSEC_PER_SEC + fake.ppb) + 1;
		at = max(at, apic_timer_sim.now) + fake.latency;
		if (at > until)
			break;
		apic_timer_sim.now = at;
		fake.active = false;
		fake.interrupts++;
		__irq_enter();
		fake.restarts += fake.function(NULL) != HRTIMER_NORESTART;
		__irq_exit();
	}
	apic_timer_sim.now = max(apic_timer_sim.now, until);
	local_irq_restore(flags);
}

static void start(struct kunit *test, u32 tsc_khz, s64 ppb)
{
	struct apic_timer_sim_machine machine = {
		.tsc_khz = tsc_khz, .cost = 10, .tsc = 1ULL << 40,
	};

	machine_start(test, &machine);
	fake = (struct fake_hrtimer) { .ppb = ppb, .latency = 300 };
	KUNIT_ASSERT_EQ(test, apic_timer_source_hrtimer.probe(), 0);
	apic_timer_source = &apic_timer_source_hrtimer;
	apic_timer_mux_reset();
	KUNIT_ASSERT_EQ(test, apic_timer_source_hrtimer.attach(), 0);
}

static void end(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, apic_timer_source_hrtimer.detach(), 0);
	KUNIT_EXPECT_FALSE(test, fake.active);
	KUNIT_EXPECT_EQ(test, fake.other, 0U);
	KUNIT_EXPECT_EQ(test, fake.restarts, 0U);
	apic_timer_source = &apic_timer_source_sim;
	apic_timer_mux_reset();
	machine_exit(test);
}

static const u32 rates[] = { 500000, 1000000, 2899999, 4294968, 8000000 };

static unsigned int count;
static s64 late;	/* cycles */

static void ran(unsigned long long now, unsigned long data)
{
	count++;
	late = now - ((struct apic_timer_list *)data)->expires;
}

static DEFINE_APIC_TIMER(timer, ran, (unsigned long)&timer);

/* At any rate of the clock against the TSC, no expiry is early, and none is very late. */
static void in_time_test(struct kunit *test)
{
	static const s64 ppb[] = { 0, 1, -1, 200000, -200000 };
	static const u64 ns[] = { 1000, 100000, 10000000, 1000000000, 100000000000 };
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (j = 0; j < ARRAY_SIZE(ppb); j++) {
			start(test, rates[i], ppb[j]);
			for (k = 0; k < ARRAY_SIZE(ns); k++) {
				count = 0;
				fake.interrupts = 0;
				timer.expires = apic_timer_sim.now + apic_timer_ns_to_tsc(ns[k]);
				KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
				run(apic_timer_ns_to_tsc(ns[k]) + tsc_hz() / 1000);
				KUNIT_EXPECT_EQ(test, count, 1U);
				KUNIT_EXPECT_GE_MSG(test, late, 0LL, "%u kHz, %lld ppb, %llu ns",
						    rates[i], ppb[j], ns[k]);
				/* Latency, 200 ppm of the last hop, and two ns. */
				KUNIT_EXPECT_LE_MSG(test, late, 500LL, "%u kHz, %lld ppb, %llu ns",
						    rates[i], ppb[j], ns[k]);
				/* Each hop but the last leaves a 64th. */
				KUNIT_EXPECT_LE(test, fake.interrupts, 8U);
			}
			end(test);
		}
	}
}

/* The kernel's clock counts ns: no moment before the expiry is programmed. */
static void rounded_up_test(struct kunit *test)
{
	unsigned long flags;
	unsigned int i, n;
	u64 fire;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		start(test, rates[i], 0);
		local_irq_save(flags);
		for (n = 0; n < 100; n++) {
			fire = apic_timer_sim.now + 1000 + n;
			apic_timer_source_hrtimer.program(fire);
			apic_timer_sim.now = fire - 1;
			KUNIT_EXPECT_LT_MSG(test, fake_now(), fake.at, "%u kHz", rates[i]);
		}
		local_irq_restore(flags);
		end(test);
	}
}

/* A past expiry is programmed for now, by the clock's present time. */
static void past_test(struct kunit *test)
{
	unsigned long flags;
	u64 now;

	start(test, 2899999, 0);
	local_irq_save(flags);
	apic_timer_source_hrtimer.program(apic_timer_sim.now - 1000);
	now = fake_now();
	KUNIT_EXPECT_TRUE(test, fake.active);
	KUNIT_EXPECT_EQ(test, (u64)fake.at, now);
	apic_timer_source_hrtimer.program(0);
	KUNIT_EXPECT_EQ(test, (u64)fake.at, (u64)fake_now());
	/* The returned moment is the one that the kernel was given. */
	now = apic_timer_source_hrtimer.program(apic_timer_sim.now + 1000);
	KUNIT_EXPECT_EQ(test, (u64)fake.at, now);
	KUNIT_EXPECT_GT(test, now, (u64)fake_now());
	local_irq_restore(flags);
	end(test);
}

/* An expiry farther away than a ktime_t can hold takes hops, each of years. */
static void far_test(struct kunit *test)
{
	u64 distance;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		start(test, rates[i], 0);
		count = 0;
		timer.expires = U64_MAX - 2;
		KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		KUNIT_ASSERT_TRUE(test, fake.active);
		KUNIT_EXPECT_GT(test, fake.at, fake_now());
		distance = fake.at - fake_now();
		KUNIT_EXPECT_LE_MSG(test, distance, (1ULL << 60) + 1000, "%u kHz", rates[i]);
		KUNIT_EXPECT_GE_MSG(test, distance, (1ULL << 60) - 1000, "%u kHz", rates[i]);
		run(tsc_hz() * 1000);
		KUNIT_EXPECT_EQ(test, fake.interrupts, 0U);
		KUNIT_EXPECT_EQ(test, count, 0U);
		KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
		end(test);
	}
}

static void earlier_test(struct kunit *test)
{
	struct apic_timer_list near = {};
	unsigned int starts;

	start(test, 1000000, 0);
	init_apic_timer(&near);
	near.function = ran;
	near.data = (unsigned long)&near;
	count = 0;
	timer.expires = apic_timer_sim.now + 10 * NSEC_PER_MSEC;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	starts = fake.starts;
	near.expires = apic_timer_sim.now + NSEC_PER_MSEC;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&near), 0);
	KUNIT_EXPECT_EQ(test, fake.starts, starts + 1);
	run(NSEC_PER_MSEC + 1000);
	KUNIT_EXPECT_EQ(test, count, 1U);
	/* The hardware is programmed for the first timer again. */
	KUNIT_EXPECT_TRUE(test, fake.active);

	/* A timer that is later, or deleted, does not change the hardware. */
	starts = fake.starts;
	near.expires = timer.expires + NSEC_PER_MSEC;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&near), 0);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	KUNIT_EXPECT_EQ(test, fake.starts, starts);
	run(20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 2U);
	/* No timer is pending: there is no interrupt. */
	KUNIT_EXPECT_FALSE(test, fake.active);
	end(test);
}

/* A handler arms its timer again, even for a moment that is past by then. */
static unsigned int again_left;

static void again(unsigned long long now, unsigned long data)
{
	struct apic_timer_list *its = (struct apic_timer_list *)data;

	ran(now, data);
	if (!again_left--)
		return;
	its->expires = now + (again_left % 2 ? 100 : NSEC_PER_MSEC);
	add_apic_timer(its);
}

static void again_test(struct kunit *test)
{
	struct apic_timer_list periodic = {};

	start(test, 1000000, 100000);
	init_apic_timer(&periodic);
	periodic.function = again;
	periodic.data = (unsigned long)&periodic;
	count = 0;
	again_left = 50;
	periodic.expires = apic_timer_sim.now + NSEC_PER_MSEC;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&periodic), 0);
	run(60 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 51U);
	KUNIT_EXPECT_GE(test, late, 0LL);
	KUNIT_EXPECT_FALSE(test, fake.active);
	end(test);
}

/* A CPU that goes offline is not interrupted any more; one that comes online is again. */
static void detached_test(struct kunit *test)
{
	unsigned long flags;

	start(test, 1000000, 0);
	count = 0;
	timer.expires = apic_timer_sim.now + NSEC_PER_MSEC;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_TRUE(test, fake.active);
	KUNIT_EXPECT_EQ(test, apic_timer_source_hrtimer.detach(), 0);
	apic_timer_mux_reset();
	run(2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 0U);

	KUNIT_EXPECT_EQ(test, apic_timer_source_hrtimer.attach(), 0);
	local_irq_save(flags);
	apic_timer_base_reprogram();
	local_irq_restore(flags);
	run(NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 1U);
	end(test);
}

static void described_test(struct kunit *test)
{
	struct apic_timer_info info = {};

	start(test, 1000000, 0);
	KUNIT_EXPECT_EQ(test, apic_timer_query(0, &info), 0);
	KUNIT_EXPECT_STREQ(test, info.source, "hrtimer");
	KUNIT_EXPECT_EQ(test, (int)info.hardware, (int)APIC_TIMER_HW_HRTIMER);
	/* The kernel's events do not use this source. */
	KUNIT_EXPECT_FALSE(test, apic_timer_source_hrtimer.shared);
	end(test);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(in_time_test),
	KUNIT_CASE(rounded_up_test),
	KUNIT_CASE(past_test),
	KUNIT_CASE(far_test),
	KUNIT_CASE(earlier_test),
	KUNIT_CASE(again_test),
	KUNIT_CASE(detached_test),
	KUNIT_CASE(described_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_source_hrtimer",
	.test_cases = cases,
};

kunit_test_suite(suite);
