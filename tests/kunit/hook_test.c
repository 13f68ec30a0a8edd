// SPDX-License-Identifier: GPL-2.0
/*
 * The source "hook", its real code, between a fake LAPIC timer and a fake of a
 * patched kernel.
 */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/jiffies.h>
#include <linux/time64.h>
#include <asm/apicdef.h>

#include "fake_lapic.h"
#include "machine.h"
#include "mux/source.h"

#define TICK_NS	(4 * NSEC_PER_MSEC)
/*
 * The kernel rounds its events down to ticks of the divided counter, 0.7 us at
 * 24 MHz: an interrupt that takes less would be early, hook or not.
 */
#define LATENCY_NS	1000
#define LATE_NS	2500

static void start(struct kunit *test, u32 tsc_khz, u64 lapic_hz)
{
	fake_start(test, tsc_khz, lapic_hz);
	fake.latency = apic_timer_ns_to_tsc(LATENCY_NS);
	/* As in a module that was just loaded, and in the order of attach.c. */
	apic_timer_source_hook.shared = false;
	KUNIT_ASSERT_EQ(test, apic_timer_source_hook.probe(), 0);
	apic_timer_source = &apic_timer_source_hook;
	apic_timer_mux_reset();
	KUNIT_ASSERT_EQ(test, apic_timer_source_hook.attach(), 0);
}

static void end(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, apic_timer_source_hook.detach(), 0);
	apic_timer_source_hook.remove();
	apic_timer_mux_reset();
	fake_stop(test);
}

static void expect_events(struct kunit *test, unsigned int count, u64 late_ns,
			  bool may_be_early)
{
	u32 khz = apic_timer_sim.machine.tsc_khz;

	fake_busy();
	fake_run(TICK_NS + TICK_NS / 2);
	fake.events = 0;
	fake.early = 0;
	fake.late_ns = 0;
	fake_run(TICK_NS * (u64)count);
	if (!may_be_early)
		KUNIT_EXPECT_EQ_MSG(test, fake.early, 0UL,
				    "%u kHz and %llu Hz", khz, fake.hz);
	KUNIT_EXPECT_EQ_MSG(test, fake.events - fake.early, (unsigned long)count,
			    "%u kHz and %llu Hz", khz, fake.hz);
	KUNIT_EXPECT_LE_MSG(test, fake.late_ns, late_ns, "%u kHz and %llu Hz",
			    khz, fake.hz);
}

static void every_rate_test(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(fake_tsc_rates); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_lapic_rates); j++) {
			start(test, fake_tsc_rates[i], fake_lapic_rates[j]);
			expect_events(test, 100, LATE_NS, false);
			end(test);
		}
	}
}

static unsigned int count, early;

static void again(unsigned long long now, unsigned long data)
{
	struct apic_timer_list *timer = (struct apic_timer_list *)data;

	count++;
	early += now < timer->expires;
	timer->expires += apic_timer_us_to_tsc(100);
	add_apic_timer(timer);
}

static DEFINE_APIC_TIMER(timer, again, (unsigned long)&timer);

static void both_are_served_test(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(fake_tsc_rates); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_lapic_rates); j++) {
			start(test, fake_tsc_rates[i], fake_lapic_rates[j]);
			count = 0;
			early = 0;
			timer.flags = APIC_TIMER_EXACT;
			timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(500);
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
			/*
			 * A kernel event may be deferred by 20 us; or one of our
			 * interrupts may serve it before it has expired, but
			 * after the moment that the kernel has rounded it down
			 * to.
			 */
			expect_events(test, 50, LATE_NS + 20000, fake_lapic_rates[j]);
			KUNIT_EXPECT_GE(test, count, 2000U);
			KUNIT_EXPECT_EQ(test, early, 0U);
			KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
			end(test);
		}
	}
}

/* The kernel stops its events: our timers continue, and the LAPIC isn't stopped. */
static void stopped_test(struct kunit *test)
{
	unsigned long events;

	start(test, 3000000, 0);
	fake_idle();
	KUNIT_EXPECT_FALSE(test, fake.active);
	events = fake.events;
	count = 0;
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(1000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	fake_run(20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, count, 190U);
	KUNIT_EXPECT_EQ(test, fake.events, events);
	KUNIT_EXPECT_FALSE(test, fake.lvtt & APIC_LVT_MASKED);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);

	/* For a timer that was deleted, the LAPIC does not stay armed. */
	KUNIT_EXPECT_TRUE(test, fake.active);
	fake_freeze();
	KUNIT_EXPECT_FALSE(test, fake.active);
	fake_thaw();
	end(test);
}

/* Already the first CPU that is attached, perhaps the only one, sees its tick stop. */
static void tick_stopped_test(struct kunit *test)
{
	start(test, 3000000, 0);
	fake_busy();
	fake.period_ns = TICK_NSEC / 2;
	fake_run(2 * TICK_NS);
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(100);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_FALSE(test, machine_mux()->tick_stopped);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);

	fake_idle();
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(50);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_TRUE(test, machine_mux()->tick_stopped);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	end(test);
}

/* The kernel takes the rate from its own device; the counter's rate is measured by the TSC. */
static void refine_test(struct kunit *test)
{
	unsigned int i, j;
	unsigned long flags;

	for (i = 0; i < ARRAY_SIZE(fake_tsc_rates); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_lapic_rates); j++) {
			start(test, fake_tsc_rates[i] + fake_tsc_rates[i] / 200,
			      fake_lapic_rates[j]);
			fake.tsc_hz = fake_tsc_rates[i] * 1000ULL;
			apic_timer_sim.machine.tsc_khz = fake_tsc_rates[i];
			fake_refined();
			local_irq_save(flags);
			apic_timer_source_hook.refine();
			local_irq_restore(flags);
			expect_events(test, 100, LATE_NS, false);
			end(test);
		}
	}
}

/* There is one hook at a time, and a failed attach leaves everything as it was. */
static void attach_fails_test(struct kunit *test)
{
	start(test, 3000000, 0);
	KUNIT_EXPECT_EQ(test, apic_timer_source_hook.probe(), -EBUSY);
	end(test);

	fake_start(test, 3000000, 0);
	KUNIT_ASSERT_EQ(test, apic_timer_source_hook.probe(), 0);
	fake.lapic.features |= CLOCK_EVT_FEAT_DUMMY;
	KUNIT_EXPECT_EQ(test, apic_timer_source_hook.attach(), -ENODEV);
	fake.lapic.features &= ~CLOCK_EVT_FEAT_DUMMY;
	apic_timer_source_hook.remove();
	fake_stop(test);
}

static void hook_exit(struct kunit *test)
{
	apic_timer_source = &apic_timer_source_sim;
	machine_exit(test);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(every_rate_test),
	KUNIT_CASE(both_are_served_test),
	KUNIT_CASE(stopped_test),
	KUNIT_CASE(tick_stopped_test),
	KUNIT_CASE(refine_test),
	KUNIT_CASE(attach_fails_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_hook",
	.exit = hook_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
