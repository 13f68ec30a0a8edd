// SPDX-License-Identifier: GPL-2.0
/*
 * A suspend during which the TSC counts, or does not, in simulated time.
 */
#include <kunit/test.h>
#include <linux/notifier.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "epoch.h"
#include "machine.h"
#include "mux/watchdog.h"
#include "pm.h"

#define COUNT	500
/* machine_plain: cycles are ns */
#define SECOND	NSEC_PER_SEC

static struct apic_timer_list timers[COUNT];
static struct apic_timer_notice notice;
static unsigned int told, order, wrong;
static u64 start;

static void handler(unsigned long long now, unsigned long data)
{
	/* Added in any order, they run in the order of their distances. */
	if (order && timers[data].expires < start)
		wrong++;
	start = timers[data].expires;
	order++;
}

static int notified(struct notifier_block *block, unsigned long event,
		    void *data)
{
	told += event == APIC_TIMER_TSC_EPOCH;
	notice = *(const struct apic_timer_notice *)data;
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = notified };

static int sleep_test_init(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int i;
	int ret;

	ret = machine_init(test);
	if (ret)
		return ret;
	told = 0;
	order = 0;
	wrong = 0;
	prandom_seed_state(&rnd, 5);
	for (i = 0; i < COUNT; i++) {
		init_apic_timer(&timers[i]);
		timers[i].data = i;
		timers[i].function = handler;
		timers[i].expires = apic_timer_sim.now + SECOND +
				    prandom_u32_state(&rnd) % (SECOND / 10);
		KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
	}
	return apic_timer_register_notifier(&block);
}

static void delete_all(void)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		del_apic_timer(&timers[i]);
}

static void sleep_test_exit(struct kunit *test)
{
	apic_timer_unregister_notifier(&block);
	delete_all();
	machine_exit(test);
}

/* Suspend the machine for @ns by the kernel's clock; the TSC is @tsc when it resumes. */
static void sleep_until(u64 tsc, u64 ns)
{
	unsigned long flags;

	local_irq_save(flags);
	apic_timer_pm_suspend(SECOND);
	apic_timer_sim.active = false;
	apic_timer_sim.now = tsc;
	apic_timer_pm_resume(SECOND + ns);
	local_irq_restore(flags);
}

static void run_all(struct kunit *test, u64 cycles)
{
	apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
	KUNIT_EXPECT_EQ(test, order, COUNT);
	KUNIT_EXPECT_EQ(test, wrong, 0U);
}

/* The TSC has counted: timers that are past run at once, the others at their moments. */
static void counted_test(struct kunit *test)
{
	unsigned int epoch = apic_timer_epoch();
	u64 expires = timers[0].expires;

	sleep_until(apic_timer_sim.now + SECOND + SECOND / 20, SECOND + SECOND / 20);
	KUNIT_EXPECT_EQ(test, apic_timer_epoch(), epoch);
	KUNIT_EXPECT_EQ(test, told, 0U);
	KUNIT_EXPECT_EQ(test, timers[0].expires, expires);
	apic_timer_sim_run(apic_timer_sim.now + SECOND / 1000, MACHINE_LIMIT);
	KUNIT_EXPECT_GT(test, order, COUNT / 3U);
	KUNIT_EXPECT_LT(test, order, COUNT * 2U / 3);
	run_all(test, SECOND);
}

/* The TSC counts @cycles in @ns of the kernel's clock, and that is no new epoch. */
static void counts(struct kunit *test, u64 cycles, u64 ns)
{
	unsigned int epoch = apic_timer_epoch();
	u64 expires = timers[0].expires;

	sleep_until(apic_timer_sim.now + cycles, ns);
	KUNIT_EXPECT_EQ(test, apic_timer_epoch(), epoch);
	KUNIT_EXPECT_EQ(test, told, 0U);
	KUNIT_EXPECT_EQ(test, timers[0].expires, expires);
}

/* The kernel knows another rate of the TSC than that of the clock by which it measures a sleep. */
static void drifts_test(struct kunit *test)
{
	u64 slept = 4 * 3600ULL * SECOND, drift = slept / 10000 * 13;

	counts(test, slept + drift, slept);
	counts(test, slept - drift, slept);
	run_all(test, SECOND);
}

/*
 * The kernel has no clock to measure the sleep by: for its own clock, there was none. A TSC that
 * has stopped or restarted would not be ahead.
 */
static void no_clock_test(struct kunit *test)
{
	counts(test, 10 * (u64)SECOND, 0);
	run_all(test, SECOND);
}

/* In a new epoch each timer keeps its distance, except for the time that resuming takes. */
static void keeps_distance(struct kunit *test, u64 tsc, u64 ns)
{
	unsigned int i, epoch = apic_timer_epoch();
	u64 slept = apic_timer_sim.now;
	struct apic_timer_info info;
	static u64 was[COUNT];

	for (i = 0; i < COUNT; i++)
		was[i] = timers[i].expires;
	sleep_until(tsc, ns);
	KUNIT_EXPECT_EQ(test, apic_timer_epoch(), epoch + 1);
	KUNIT_EXPECT_EQ(test, apic_timer_query(0, &info), 0);
	KUNIT_EXPECT_EQ(test, info.tsc_epoch, epoch + 1);
	KUNIT_EXPECT_EQ(test, told, 1U);
	KUNIT_EXPECT_EQ(test, notice.epoch, epoch + 1);
	KUNIT_EXPECT_LE(test, notice.shift - (s64)(tsc - slept), 10);
	KUNIT_EXPECT_GE(test, notice.shift - (s64)(tsc - slept), -10);
	for (i = 0; i < COUNT; i++)
		KUNIT_EXPECT_EQ(test, timers[i].expires,
				was[i] + notice.shift);

	apic_timer_sim_run(apic_timer_sim.now + SECOND - SECOND / 1000,
			   MACHINE_LIMIT);
	KUNIT_EXPECT_EQ(test, order, 0U);
	run_all(test, SECOND);
}

static void restarted_test(struct kunit *test)
{
	keeps_distance(test, 12345, 10 * (u64)SECOND);
}

static void stopped_test(struct kunit *test)
{
	keeps_distance(test, apic_timer_sim.now + 1000, 10 * (u64)SECOND);
}

static void set_back_test(struct kunit *test)
{
	keeps_distance(test, apic_timer_sim.now - 1000, 0);
}

/* The TSC seems to be another machine's: far too much time has passed. */
static void jumped_ahead_test(struct kunit *test)
{
	keeps_distance(test, apic_timer_sim.now + 3600ULL * SECOND, 10 * (u64)SECOND);
}

/* An expiry that doesn't fit becomes at once or never, and never stays never. */
static void saturates_test(struct kunit *test)
{
	struct apic_timer_list past = {}, far = {}, never = {};

	init_apic_timer(&past);
	init_apic_timer(&far);
	init_apic_timer(&never);
	past.function = handler;
	far.function = handler;
	never.function = handler;
	far.expires = U64_MAX - 1000;
	never.expires = U64_MAX;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&far), 0);
	KUNIT_EXPECT_EQ(test, add_apic_timer(&never), 0);

	sleep_until(12345, 10 * (u64)SECOND);
	KUNIT_EXPECT_EQ(test, never.expires, U64_MAX);
	KUNIT_EXPECT_LT(test, far.expires, U64_MAX - 1000);
	past.expires = 10;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&past), 0);
	sleep_until(apic_timer_sim.now + 3600ULL * SECOND, 10 * (u64)SECOND);
	KUNIT_EXPECT_EQ(test, far.expires, U64_MAX);
	KUNIT_EXPECT_EQ(test, never.expires, U64_MAX);
	KUNIT_EXPECT_TRUE(test, apic_timer_pending(&past));

	KUNIT_EXPECT_EQ(test, del_apic_timer(&past), 1);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&far), 1);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&never), 1);
}

static unsigned int runs, kernel_events;

static void ran(unsigned long long now, unsigned long data)
{
	runs++;
}

static void kernel_event(u64 now)
{
	kernel_events++;
}

static DEFINE_APIC_TIMER(far_timer, ran, 0);
static DEFINE_APIC_TIMER(near_timer, ran, 0);

static void run_for(u64 cycles)
{
	apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

static void add_in(struct kunit *test, struct apic_timer_list *timer, u64 cycles)
{
	timer->expires = apic_timer_sim.now + cycles;
	KUNIT_ASSERT_EQ(test, add_apic_timer(timer), 0);
}

/*
 * The TSC jumps while this CPU waits in stop_machine(), and another CPU resumes. A hardware
 * counter goes on as before; a deadline stays the same value of the TSC.
 */
static void jump(s64 shift)
{
	unsigned long flags;

	local_irq_save(flags);
	apic_timer_sim.now += shift;
	if (apic_timer_sim.machine.counter_hz)
		apic_timer_sim.fires += shift;
	apic_timer_base_shift(shift);
	apic_timer_pm_restart();
	local_irq_restore(flags);
}

static void expect_begun_anew(struct kunit *test)
{
	u64 due = per_cpu(apic_timer_mux_watchdog_due, 0);

	/* The watchdog checks this CPU again, and there is no fence. */
	KUNIT_EXPECT_GT(test, due, apic_timer_sim.now);
	KUNIT_EXPECT_LE(test, due, apic_timer_sim.now + SECOND / 10);
	KUNIT_EXPECT_EQ(test, machine_mux()->no_timer, APIC_TIMER_NEVER);
	KUNIT_EXPECT_EQ(test, machine_mux()->fence.until, 0ULL);

	/* Served at once: its moment was one of the old TSC. */
	run_for(1000);
	KUNIT_EXPECT_EQ(test, kernel_events, 1U);

	/* Both a timer that was pending and a nearer one run at their moments. */
	add_in(test, &near_timer, SECOND / 100);
	run_for(SECOND / 100 - 1000);
	KUNIT_EXPECT_EQ(test, runs, 0U);
	run_for(2000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	run_for(9 * (u64)SECOND);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	run_for(SECOND);
	KUNIT_EXPECT_EQ(test, runs, 2U);
}

/* Xen has saved the guest with this CPU online. */
static void stayed_online_test(struct kunit *test)
{
	static const s64 shifts[] = { -500 * (s64)SECOND, 500 * (s64)SECOND };
	struct apic_timer_sim_machine machine = machine_plain;
	unsigned long flags;
	unsigned int i;

	delete_all();
	machine.kernel_event = kernel_event;
	for (i = 0; i < 2 * ARRAY_SIZE(shifts); i++) {
		machine.counter_hz = i & 1 ? 1000ULL * machine.tsc_khz : 0;
		machine_start(test, &machine);
		apic_timer_watchdog_online();
		runs = 0;
		kernel_events = 0;
		add_in(test, &far_timer, 10 * (u64)SECOND);
		local_irq_save(flags);
		apic_timer_sim_kernel(apic_timer_sim.now + SECOND);
		apic_timer_mux_fence(apic_timer_sim.now + 20000, 20000, apic_timer_sim.now);
		local_irq_restore(flags);

		jump(shifts[i / 2]);
		expect_begun_anew(test);
		apic_timer_watchdog_offline();
		del_apic_timer(&near_timer);
		del_apic_timer(&far_timer);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(counted_test),
	KUNIT_CASE(drifts_test),
	KUNIT_CASE(no_clock_test),
	KUNIT_CASE(restarted_test),
	KUNIT_CASE(stopped_test),
	KUNIT_CASE(set_back_test),
	KUNIT_CASE(jumped_ahead_test),
	KUNIT_CASE(saturates_test),
	KUNIT_CASE(stayed_online_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_sleep",
	.init = sleep_test_init,
	.exit = sleep_test_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
