// SPDX-License-Identifier: GPL-2.0
/*
 * The source "proxy", its real code, between a fake LAPIC timer and a fake of
 * the kernel's clock events.
 */
#include <kunit/test.h>
#include <linux/apic_timer.h>
#include <linux/time64.h>
#include <asm/apicdef.h>

#include "fake_lapic.h"
#include "machine.h"
#include "mux/source.h"
#include "mux/watchdog.h"

#define TICK_NS	(4 * NSEC_PER_MSEC)

/* As in source.c. */
static int attach(void)
{
	apic_timer_mux_reset();
	apic_timer_source = &apic_timer_source_proxy;
	return apic_timer_source_proxy.attach();
}

static int detach(void)
{
	int ret = apic_timer_source_proxy.detach();

	if (!ret)
		apic_timer_mux_reset();
	return ret;
}

static void start(struct kunit *test, u32 tsc_khz, u64 lapic_hz)
{
	fake_start(test, tsc_khz, lapic_hz);
	KUNIT_ASSERT_EQ(test, attach(), 0);
	KUNIT_ASSERT_STREQ(test, fake.tick->name, "apic_timer");
}

static void end(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, detach(), 0);
	fake_stop(test);
}

/* The kernel gets its events in time, by one interrupt each. */
static void expect_events(struct kunit *test, u64 period_ns, unsigned int count,
			  u64 late_ns)
{
	const char *name = fake.hz ? "one-shot" : "TSC deadline";
	u32 khz = apic_timer_sim.machine.tsc_khz;

	fake_busy();
	fake.period_ns = period_ns;
	fake_run(TICK_NS + TICK_NS / 2);
	fake.events = 0;
	fake.early = 0;
	fake.late_ns = 0;
	fake_run(period_ns * count);

	KUNIT_EXPECT_EQ_MSG(test, fake.early, 0UL,
			    "%u kHz, %s of %llu Hz: of %lu interrupts", khz, name,
			    fake.hz, fake.events);
	KUNIT_EXPECT_EQ_MSG(test, fake.events - fake.early, (unsigned long)count,
			    "%u kHz, %s of %llu Hz", khz, name, fake.hz);
	KUNIT_EXPECT_LE_MSG(test, fake.late_ns, late_ns,
			    "%u kHz, %s of %llu Hz", khz, name, fake.hz);
}

/* Interrupt, rounding up to a tick of 24 MHz, reads of the TSC. */
#define LATE_NS	1500

static void every_rate_test(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(fake_tsc_rates); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_lapic_rates); j++) {
			start(test, fake_tsc_rates[i], fake_lapic_rates[j]);
			expect_events(test, TICK_NS, 100, LATE_NS);
			end(test);
		}
	}
}

/* Far events are not early either, and late by at most a millionth. */
static void far_events_test(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(fake_tsc_rates); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_lapic_rates); j++) {
			start(test, fake_tsc_rates[i], fake_lapic_rates[j]);
			expect_events(test, 20 * NSEC_PER_SEC, 10,
				      LATE_NS + 20 * NSEC_PER_USEC);
			end(test);
		}
	}
}

static struct counts {
	unsigned int ran, early;
	u64 late;
} ours;

static void again(unsigned long long now, unsigned long data)
{
	struct apic_timer_list *timer = (struct apic_timer_list *)data;

	ours.ran++;
	if (now < timer->expires)
		ours.early++;
	else
		ours.late = max_t(u64, ours.late, now - timer->expires);
	timer->expires += apic_timer_us_to_tsc(100);
	add_apic_timer(timer);
}

static DEFINE_APIC_TIMER(periodic, again, (unsigned long)&periodic);

static void both_are_served_test(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(fake_tsc_rates); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_lapic_rates); j++) {
			start(test, fake_tsc_rates[i], fake_lapic_rates[j]);
			periodic.flags = APIC_TIMER_EXACT;
			periodic.expires = apic_timer_sim.now + apic_timer_us_to_tsc(500);
			ours = (struct counts){};
			KUNIT_ASSERT_EQ(test, add_apic_timer(&periodic), 0);
			/* A kernel event may be deferred by 20 us. */
			expect_events(test, TICK_NS, 50, LATE_NS + 20000);
			KUNIT_EXPECT_GE(test, ours.ran, 2000U);
			KUNIT_EXPECT_EQ(test, ours.early, 0U);
			KUNIT_EXPECT_LE_MSG(test, ours.late, apic_timer_us_to_tsc(1),
					    "%u kHz and %llu Hz", fake_tsc_rates[i],
					    fake_lapic_rates[j]);
			KUNIT_EXPECT_EQ(test, del_apic_timer(&periodic), 1);
			end(test);
		}
	}
}

static unsigned int count;

static void ran(unsigned long long now, unsigned long data)
{
	count++;
}

static DEFINE_APIC_TIMER(timer, ran, 0);

/* The kernel stops its events: our timers continue, and the LAPIC isn't set up anew. */
static void stopped_test(struct kunit *test)
{
	unsigned long events;

	start(test, 3000000, 0);
	fake_run(TICK_NS);
	fake_idle();
	KUNIT_EXPECT_TRUE(test, clockevent_state_oneshot_stopped(fake.tick));
	/* Without a timer the LAPIC is disarmed, so that the CPU can power down. */
	KUNIT_EXPECT_FALSE(test, fake.active);
	events = fake.events;
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(100000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	fake_run(99 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 0U);
	KUNIT_EXPECT_FALSE(test, fake.lvtt & APIC_LVT_MASKED);

	/* The kernel restarts its events before our next expiry. */
	fake_busy();
	KUNIT_EXPECT_TRUE(test, clockevent_state_oneshot(fake.tick));
	fake_run(2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 1U);
	KUNIT_EXPECT_EQ(test, fake.events, events);
	fake_run(3 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, fake.events, events + 1);
	end(test);
}

/* The LAPIC has lost its state: it is set up again, and our timer expires. */
static void resume_test(struct kunit *test)
{
	unsigned long flags;

	start(test, 3000000, 24000000);
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(10000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	fake_idle();
	fake.lvtt = APIC_LVT_MASKED;
	fake.active = false;
	local_irq_save(flags);
	fake.tick->resume(fake.tick);
	local_irq_restore(flags);
	fake_busy();
	KUNIT_EXPECT_FALSE(test, fake.lvtt & APIC_LVT_MASKED);
	fake_run(11 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 1U);
	expect_events(test, TICK_NS, 100, LATE_NS);
	end(test);
}

static DEFINE_APIC_TIMER(meanwhile, ran, 0);

/*
 * An administrator unbinds our device by sysfs while timers are pending. Until it is registered
 * again, the kernel owns the LAPIC: a timer added then must not replace the tick.
 */
static void unbind_test(struct kunit *test)
{
	struct clock_event_device *device;
	unsigned long flags, events;
	u64 tick;

	start(test, 3000000, 0);
	device = fake.tick;
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(10000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);

	KUNIT_EXPECT_EQ(test, fake_unbind(device), 0);
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &fake.lapic);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, fake.queued);
	tick = fake.fires;
	KUNIT_ASSERT_LE(test, tick - apic_timer_sim.now, apic_timer_us_to_tsc(4000));
	meanwhile.expires = apic_timer_sim.now + apic_timer_us_to_tsc(8000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&meanwhile), 0);
	KUNIT_EXPECT_EQ(test, fake.fires, tick);
	/* The watchdog must not take it for a stopped timer either. */
	local_irq_save(flags);
	KUNIT_EXPECT_TRUE(test, apic_timer_source->alive(false));
	apic_timer_source->recover();
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, fake.fires, tick);
	events = fake.events;
	fake_run(5 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, fake.events, events + 1);
	KUNIT_EXPECT_EQ(test, count, 0U);

	fake_irq_work_run();
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, device);
	KUNIT_EXPECT_TRUE(test, fake.lapic.features & CLOCK_EVT_FEAT_C3STOP);
	fake_run(6 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 2U);
	expect_events(test, TICK_NS, 100, LATE_NS);
	end(test);
}

/* The kernel ticks at once as well as before, whichever timers are pending. */
static void detach_test(struct kunit *test)
{
	start(test, 4500000, 0);
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(1000000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	fake_idle();
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	end(test);
	KUNIT_EXPECT_EQ(test, count, 0U);
}

/*
 * The kernel refines the rate of the TSC once after boot. If we were attached
 * before, the events would stay early or late: a tick by 400 ns at 100 ppm.
 */
static void refine_test(struct kunit *test)
{
	static const int ppm[] = { -9000, -100, 100, 9000 };
	unsigned int i, j, k;
	unsigned long flags;
	u32 khz;

	for (i = 0; i < ARRAY_SIZE(ppm); i++) {
		for (j = 0; j < ARRAY_SIZE(fake_tsc_rates); j++) {
			for (k = 0; k < ARRAY_SIZE(fake_lapic_rates); k++) {
				khz = fake_tsc_rates[j] + (s64)fake_tsc_rates[j] * ppm[i] / 1000000;
				start(test, khz, fake_lapic_rates[k]);
				fake.tsc_hz = fake_tsc_rates[j] * 1000ULL;
				apic_timer_sim.machine.tsc_khz = fake_tsc_rates[j];
				local_irq_save(flags);
				apic_timer_source_proxy.refine();
				local_irq_restore(flags);
				expect_events(test, TICK_NS, 100, LATE_NS);
				/* The kernel converts for its own device. */
				fake_refined();
				end(test);
			}
		}
	}
}

/* Without the LAPIC's device on its list, the kernel would have none to return to. */
static void lapic_device_gone_test(struct kunit *test)
{
	start(test, 3000000, 0);
	KUNIT_EXPECT_EQ(test, fake_unbind(&fake.lapic), 0);
	KUNIT_EXPECT_EQ(test, detach(), 0);
	KUNIT_EXPECT_EQ(test, fake.sleeps, 0U);
	fake_stop(test);
}

/* The kernel uses the LAPIC's device for something else, and has no other. */
static void not_given_back_test(struct kunit *test)
{
	struct clock_event_device *device;

	start(test, 3000000, 0);
	device = fake.tick;
	fake.lapic.state_use_accessors = CLOCK_EVT_STATE_ONESHOT;
	KUNIT_EXPECT_EQ(test, detach(), -EBUSY);
	/* The wait takes about a second. */
	KUNIT_EXPECT_LE(test, fake.sleeps, 60U);
	/* Everything continues meanwhile. */
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, device);
	expect_events(test, TICK_NS, 100, LATE_NS);

	/* The module waits as long as necessary. */
	fake.free = &fake.lapic;
	apic_timer_source_proxy.remove();
	KUNIT_EXPECT_GT(test, fake.sleeps, 60U);
	apic_timer_mux_reset();
	fake_stop(test);
}

/* The same, and the CPU goes offline meanwhile: then nothing waits for it. */
static void offline_not_given_back_test(struct kunit *test)
{
	start(test, 3000000, 0);
	fake.lapic.state_use_accessors = CLOCK_EVT_STATE_ONESHOT;
	KUNIT_EXPECT_EQ(test, detach(), -EBUSY);
	fake_offline();
	KUNIT_EXPECT_PTR_EQ(test, fake.queued, NULL);
	apic_timer_source_proxy.remove();
	KUNIT_EXPECT_FALSE(test, fake.stuck);
	apic_timer_mux_reset();
}

/* Unbound by sysfs, and not registered again yet: the LAPIC's device is unchanged. */
static void detach_unbound_test(struct kunit *test)
{
	start(test, 3000000, 0);
	KUNIT_EXPECT_EQ(test, fake_unbind(fake.tick), 0);
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &fake.lapic);
	end(test);
}

/* The LAPIC must not call us after we are gone, even if another device is in front of us. */
static void detach_behind_another_test(struct kunit *test)
{
	struct clock_event_device other;

	start(test, 3000000, 0);
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(10000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	other = fake.hpet;
	other.name = "other";
	other.rating = 1000;
	other.features |= CLOCK_EVT_FEAT_C3STOP;
	fake_register(&other);
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &other);
	/* Our device continues behind it. */
	fake_irq_work_run();
	fake_run(11 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 1U);

	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(10000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	KUNIT_EXPECT_TRUE(test, fake.active);
	KUNIT_EXPECT_EQ(test, detach(), 0);
	KUNIT_EXPECT_FALSE(test, fake.active);
	KUNIT_EXPECT_TRUE(test, fake_is_unused(&fake.lapic));
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &other);
	KUNIT_EXPECT_EQ(test, fake_unbind(&other), 0);
	fake_stop(test);
}

/*
 * Suspend to idle shuts the device down, as if it were unbound. The work that looks after that
 * must not interrupt the sleep, and without a timer the LAPIC is disarmed.
 */
static void freeze_test(struct kunit *test)
{
	unsigned long events;

	start(test, 3000000, 0);
	fake_run(3 * TICK_NS);
	fake_irq_work_run();
	fake_freeze();
	KUNIT_EXPECT_PTR_EQ(test, fake.queued, NULL);
	KUNIT_EXPECT_FALSE(test, fake.active);
	timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(10000);
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	events = fake.events;
	fake_run(11 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, count, 1U);
	KUNIT_EXPECT_EQ(test, fake.events, events);
	KUNIT_EXPECT_FALSE(test, fake.active);

	fake_thaw();
	fake_run(5 * TICK_NS);
	KUNIT_EXPECT_GE(test, fake.events, events + 4);
	KUNIT_EXPECT_FALSE(test, fake.lvtt & APIC_LVT_MASKED);
	end(test);
}

/*
 * For a timer that was deleted the LAPIC is armed no longer than until the kernel gives up its
 * event: also if the tick is stopped already and stays so, as on a CPU of nohz_full.
 */
static void deleted_test(struct kunit *test)
{
	unsigned int i;

	start(test, 3000000, 0);
	fake_run(3 * TICK_NS);
	for (i = 0; i < 2; i++) {
		timer.expires = apic_timer_sim.now + apic_timer_us_to_tsc(10000000);
		KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		KUNIT_ASSERT_EQ(test, del_apic_timer(&timer), 1);
		KUNIT_EXPECT_TRUE(test, fake.active);
		if (i)
			fake_freeze();
		else
			fake_idle();
		KUNIT_EXPECT_FALSE(test, fake.active);
	}
	fake_thaw();
	end(test);
}

/* Everything is as before, and the kernel's list has no device of ours. */
static void attach_fails_test(struct kunit *test)
{
	fake_start(test, 3000000, 0);
	fake.keep = true;
	KUNIT_EXPECT_EQ(test, attach(), -EBUSY);
	fake.keep = false;
	KUNIT_EXPECT_EQ(test, fake_devices(), 2U);
	fake_stop(test);

	fake_start(test, 3000000, 0);
	fake.lapic.features |= CLOCK_EVT_FEAT_DUMMY;
	KUNIT_EXPECT_EQ(test, attach(), -ENODEV);
	fake.lapic.features &= ~CLOCK_EVT_FEAT_DUMMY;
	fake_stop(test);

	/* Its rate can't be right. */
	fake_start(test, 3000000, 24000000);
	fake.lapic.mult /= 4096;
	KUNIT_EXPECT_EQ(test, attach(), -ERANGE);
	fake.lapic.mult = div_sc(24000000 / 16, NSEC_PER_SEC, 32);
	fake_stop(test);
}

/* A device is unbound while the kernel's devices are searched: the search still ends. */
static void unbound_meanwhile_test(struct kunit *test)
{
	struct list_head *next;

	fake_start(test, 3000000, 0);
	next = fake.hpet.list.next;
	fake.hpet.list.next = &fake.hpet.list;
	KUNIT_EXPECT_EQ(test, attach(), -ENODEV);
	fake.hpet.list.next = next;
	KUNIT_EXPECT_EQ(test, fake_devices(), 2U);
	fake_stop(test);
}

static unsigned int probes;

/* The first time, the device in front is on another list for a moment. */
static void release_front(struct clock_event_device *device)
{
	static struct clock_event_device no_device;
	static struct list_head *next;

	if (!(device->features & CLOCK_EVT_FEAT_DUMMY))
		return;
	if (probes++) {
		fake.hpet.list.next = next;
		return;
	}
	/* The memory before that list's head may contain anything. */
	no_device.name = (const char *)8;
	no_device.cpumask = (const struct cpumask *)8;
	no_device.list.next = &fake.hpet.list;
	next = fake.hpet.list.next;
	fake.hpet.list.next = &no_device.list;
}

/* The kernel releases another CPU's device meanwhile, and uses it again: it is found. */
static void released_meanwhile_test(struct kunit *test)
{
	probes = 0;
	fake_start(test, 3000000, 0);
	fake.registered = release_front;
	KUNIT_EXPECT_EQ(test, attach(), 0);
	KUNIT_EXPECT_EQ(test, probes, 2U);
	KUNIT_EXPECT_EQ(test, fake_devices(), 3U);
	end(test);
}

/* The kernel ticks from something else, which was there first. */
static void another_device_test(struct kunit *test)
{
	struct clock_event_device other;

	fake_start(test, 3000000, 0);
	other = fake.hpet;
	other.name = "other";
	other.rating = 1000;
	other.features |= CLOCK_EVT_FEAT_C3STOP;
	/* Otherwise the kernel would broadcast by it. */
	fake.lapic.features |= CLOCK_EVT_FEAT_C3STOP;
	fake_register(&other);
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &other);
	KUNIT_EXPECT_EQ(test, attach(), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &other);
	fake.lapic.features &= ~CLOCK_EVT_FEAT_C3STOP;
	KUNIT_EXPECT_EQ(test, fake_unbind(&other), 0);
	fake_stop(test);
}

static int proxy_init(struct kunit *test)
{
	count = 0;
	return 0;
}

static void proxy_exit(struct kunit *test)
{
	apic_timer_source = &apic_timer_source_sim;
	machine_exit(test);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(every_rate_test),
	KUNIT_CASE(far_events_test),
	KUNIT_CASE(both_are_served_test),
	KUNIT_CASE(stopped_test),
	KUNIT_CASE(freeze_test),
	KUNIT_CASE(deleted_test),
	KUNIT_CASE(resume_test),
	KUNIT_CASE(unbind_test),
	KUNIT_CASE(detach_test),
	KUNIT_CASE(refine_test),
	KUNIT_CASE(lapic_device_gone_test),
	KUNIT_CASE(not_given_back_test),
	KUNIT_CASE(offline_not_given_back_test),
	KUNIT_CASE(detach_unbound_test),
	KUNIT_CASE(detach_behind_another_test),
	KUNIT_CASE(attach_fails_test),
	KUNIT_CASE(unbound_meanwhile_test),
	KUNIT_CASE(released_meanwhile_test),
	KUNIT_CASE(another_device_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_proxy",
	.init = proxy_init,
	.exit = proxy_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
