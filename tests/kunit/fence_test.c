// SPDX-License-Identifier: GPL-2.0
/*
 * Fences: the kernel's events are kept away until a moment, once each.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/prandom.h>
#include <linux/tracepoint.h>

#include <trace/events/apic_timer.h>

#include "machine.h"
#include "mux/fence.h"
#include "mux/source.h"
#include "policy/target.h"

#define DEFER_MAX	20000ULL	/* defer_ns, on machine_plain */
#define UNTIL	15000ULL
#define AHEAD_MAX	200000ULL
/* Maximum delay of an event: the interrupt, and code. */
#define LATE	200ULL

static struct apic_timer_list timer;
static unsigned int runs, events;
static u64 ran_at, event_at, deferred;

static void ran(unsigned long long now, unsigned long data)
{
	runs++;
	ran_at = now;
}

static void kernel_event(u64 now)
{
	events++;
	event_at = now;
}

static void start(struct kunit *test, const struct apic_timer_sim_machine *plain)
{
	struct apic_timer_sim_machine machine = *plain;

	machine.kernel_event = kernel_event;
	machine_start(test, &machine);
	deferred = machine_stat(DEFERRED);
}

static int fence_test_init(struct kunit *test)
{
	runs = 0;
	events = 0;
	init_apic_timer(&timer);
	timer.function = ran;
	start(test, &machine_plain);
	return 0;
}

static void kernel_at(u64 tsc)
{
	unsigned long flags;

	local_irq_save(flags);
	apic_timer_sim_kernel(tsc);
	local_irq_restore(flags);
}

static void run_until(u64 tsc)
{
	apic_timer_sim_run(tsc, MACHINE_LIMIT);
}

/* Expect a single event, at @tsc, deferred or not. */
#define EXPECT_EVENT(test, tsc, was_deferred) do {				\
	u64 __tsc = (tsc);						\
									\
	KUNIT_EXPECT_EQ(test, events, 1U);				\
	KUNIT_EXPECT_GE(test, event_at, __tsc);				\
	KUNIT_EXPECT_LE(test, event_at, __tsc + LATE);			\
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED) - deferred,	\
			(u64)(was_deferred));				\
	deferred = machine_stat(DEFERRED);				\
	events = 0;							\
} while (0)

/* Events before the fence, in it and after it; set before it, and after. */
static void edges_test(struct kunit *test)
{
	static const struct {
		s64 due;	/* relative to the fence's moment */
		bool deferred;
	} edges[] = {
		{ -(s64)DEFER_MAX - 5000, false }, { -(s64)DEFER_MAX - 1, false },
		{ -(s64)DEFER_MAX, true }, { -(s64)DEFER_MAX + 1, true }, { -1000, true },
		{ -1, true }, { 0, false }, { 1, false }, { 5000, false },
	};
	/* A little less than twice defer_ns; the longest lead of a calendar's thread. */
	static const u64 ahead[] = { 2 * DEFER_MAX - 1000, 100500 };
	unsigned int i, first;
	u64 until, due;

	for (i = 0; i < 4 * ARRAY_SIZE(edges); i++) {
		first = i & 1;
		until = apic_timer_sim.now + ahead[i / 2 % 2];
		due = until + edges[i / 4].due;
		if (first)
			kernel_at(due);
		KUNIT_ASSERT_EQ(test, apic_timer_fence(until), 0);
		if (!first)
			kernel_at(due);
		run_until(until + 20000);
		EXPECT_EVENT(test, edges[i / 4].deferred ? until : due, edges[i / 4].deferred);
	}
}

/* With timers of ours before the event, between it and the moment, and after. */
static void beside_timers_test(struct kunit *test)
{
	static const s64 ours[] = { -12000, -7000, -1, 0, 1000, 100000 };
	unsigned int i, order;
	u64 until;

	for (i = 0; i < 3 * ARRAY_SIZE(ours); i++) {
		order = i / ARRAY_SIZE(ours);
		until = apic_timer_sim.now + UNTIL;
		timer.expires = until + ours[i % ARRAY_SIZE(ours)];
		if (order == 0)
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		kernel_at(until - 10000);
		if (order == 1)
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		KUNIT_ASSERT_EQ(test, apic_timer_fence(until), 0);
		if (order == 2)
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		run_until(until + 200000);
		EXPECT_EVENT(test, until, true);
		KUNIT_EXPECT_EQ(test, runs, i + 1);
		KUNIT_EXPECT_GE(test, ran_at, timer.expires);
		KUNIT_EXPECT_LE(test, ran_at, timer.expires + LATE);
	}
}

static u64 told;

static void tell(void *unused, const struct apic_timer_receipt *receipt)
{
	told = receipt->deferred;
}

/* The receipt of an expiry shows for how long a fence has deferred the event. */
static void receipt_test(struct kunit *test)
{
	u64 due = apic_timer_sim.now + UNTIL - 10000;

	kernel_at(due);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(due + 10000), 0);
	timer.expires = due + 8000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_ASSERT_EQ(test, register_trace_apic_timer_receipt(tell, NULL), 0);
	run_until(due + 20000);
	unregister_trace_apic_timer_receipt(tell, NULL);
	tracepoint_synchronize_unregister();
	EXPECT_EVENT(test, due + 10000, true);
	KUNIT_EXPECT_LE(test, told, 8000 + LATE);
	/* It is counted until the handler could start, which is earlier by the lead. */
	KUNIT_EXPECT_GE(test, told, 8000 - apic_timer_target_spin_max);
}

static u64 handlers_until;
static int handlers_ret;

static void fences(unsigned long long now, unsigned long data)
{
	unsigned long before = apic_timer_sim.programmed;

	ran(now, data);
	handlers_until = now + UNTIL;
	handlers_ret = apic_timer_fence(handlers_until);
	/* The hardware is programmed at the end of the interrupt, not here. */
	if (apic_timer_sim.programmed != before)
		handlers_ret = -EIO;
}

/* Set by the handler that wakes a thread, which is the usual way. */
static void in_handler_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now;

	timer.function = fences;
	timer.expires = now + 50000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	kernel_at(now + 50000 + 3000);
	run_until(now + 200000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	KUNIT_EXPECT_EQ(test, handlers_ret, 0);
	EXPECT_EVENT(test, handlers_until, true);

	/* Also an event that is due when the handler runs. */
	now = apic_timer_sim.now;
	timer.expires = now + 50000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	kernel_at(now + 50000 + 10);
	run_until(now + 200000);
	EXPECT_EVENT(test, handlers_until, true);
}

/* The next timer never expires: the fence holds for the kernel's events as without the timer. */
static void never_test(struct kunit *test)
{
	struct apic_timer_list never;
	u64 now = apic_timer_sim.now;
	unsigned int way;

	init_apic_timer(&never);
	never.function = ran;
	never.expires = APIC_TIMER_NEVER;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&never), 0);

	/* Set by a handler, and by a task. */
	timer.function = fences;
	for (way = 0; way < 2; way++) {
		now = apic_timer_sim.now;
		if (way) {
			handlers_until = now + UNTIL;
			KUNIT_ASSERT_EQ(test, apic_timer_fence(handlers_until), 0);
		} else {
			timer.expires = now + 50000;
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
			run_until(now + 51000);
			KUNIT_ASSERT_EQ(test, handlers_ret, 0);
		}
		kernel_at(apic_timer_sim.now + 3000);
		run_until(now + 200000);
		EXPECT_EVENT(test, handlers_until, true);
	}
	KUNIT_EXPECT_EQ(test, del_apic_timer(&never), 1);
}

/* With one fence after another, each event is deferred once, by no more than allowed. */
static void once_test(struct kunit *test)
{
	unsigned int n;
	u64 due, until;

	for (n = 0; n < 200; n++) {
		due = apic_timer_sim.now + 5000 + n * 13;
		kernel_at(due);
		until = 0;
		while (!events && apic_timer_sim.now < due + 5 * DEFER_MAX) {
			KUNIT_ASSERT_EQ(test, apic_timer_fence(apic_timer_sim.now + UNTIL), 0);
			if (!until && apic_timer_sim.now + UNTIL > due)
				until = machine_mux()->deadline[APIC_TIMER_MUX_KERNEL];
			run_until(apic_timer_sim.now + 700);
		}
		EXPECT_EVENT(test, until, true);
		KUNIT_EXPECT_LE(test, event_at, due + DEFER_MAX + LATE);
		run_until(apic_timer_sim.now + 2 * DEFER_MAX);
	}
}

/* Overlapping fences both hold; a shorter one does not shorten the other. */
static void two_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now;

	/* Due within both: served at the end of the later one. */
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 10000), 0);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 16000), 0);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 12000), 0);
	kernel_at(now + 5000);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + 16000, true);

	/* Due within the first only: not deferred for longer than allowed. */
	now = apic_timer_sim.now;
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 10000), 0);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 35000), 0);
	kernel_at(now + 5000);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + 5000 + DEFER_MAX, true);

	/* The same if an event that is due within the second only was deferred before it. */
	now = apic_timer_sim.now;
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 10000), 0);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 35000), 0);
	kernel_at(now + 20000);
	kernel_at(now + 5000);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + 5000 + DEFER_MAX, true);

	/* Deferred by the first: the second leaves it where it is. */
	now = apic_timer_sim.now;
	kernel_at(now + 5000);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 10000), 0);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + 20000), 0);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + 10000, true);
}

/* The kernel changes its mind about an event that is deferred. */
static void reprogrammed_test(struct kunit *test)
{
	static const struct {
		u64 first, then, comes;
		bool deferred;
	} cases[] = {
		{ 5000, 5000, UNTIL, true },		/* the same again */
		{ 5000, 8000, UNTIL, true },
		{ 5000, 2000, UNTIL, true },
		{ 5000, 0, UNTIL, true },		/* at once */
		{ 5000, UNTIL, UNTIL, false },
		{ 5000, 50000, 50000, false },
		{ 50000, 5000, UNTIL, true },
		{ UNTIL, 5000, UNTIL, true },
	};
	unsigned int i;
	u64 now;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		now = apic_timer_sim.now;
		KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
		kernel_at(now + cases[i].first);
		kernel_at(now + cases[i].then);
		run_until(now + 100000);
		EXPECT_EVENT(test, now + cases[i].comes, cases[i].deferred);
	}

	/* The kernel stops its event. */
	now = apic_timer_sim.now;
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
	kernel_at(now + 5000);
	kernel_at(APIC_TIMER_NEVER);
	run_until(now + 100000);
	KUNIT_EXPECT_EQ(test, events, 0U);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);
	/* The next event is treated as if nothing had happened. */
	now = apic_timer_sim.now;
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
	kernel_at(now + 5000);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + UNTIL, true);
}

/*
 * A task that sleeps again and again makes the kernel program an overdue
 * event, as a timer in the past does: it still is the deferred event.
 */
static void overdue_test(struct kunit *test)
{
	u64 due = apic_timer_sim.now + 1000, until = due + UNTIL;

	kernel_at(due);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(until), 0);
	while (!events && apic_timer_sim.now < due + 5 * DEFER_MAX) {
		run_until(apic_timer_sim.now + 900);
		if (events)
			break;
		KUNIT_ASSERT_EQ(test, apic_timer_fence(apic_timer_sim.now + UNTIL), 0);
		kernel_at(apic_timer_sim.now + 30);
	}
	EXPECT_EVENT(test, until, true);
}

/*
 * The same if the deferred event becomes due while interrupts are off: the
 * kernel then programs a moment ahead. By that time another fence is set, or a
 * handler sets one before the kernel is served.
 */
static void overdue_again_test(struct kunit *test)
{
	unsigned long flags;
	unsigned int way;
	u64 due, until;

	for (way = 0; way < 2; way++) {
		due = apic_timer_sim.now + 3000;
		until = due + 5000;
		kernel_at(due);
		KUNIT_ASSERT_EQ(test, apic_timer_fence(until), 0);
		if (way) {
			timer.function = fences;
			timer.expires = until + 120;
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		} else {
			KUNIT_ASSERT_EQ(test, apic_timer_fence(until + 14000), 0);
		}
		run_until(until - 100);
		KUNIT_EXPECT_EQ(test, events, 0U);
		local_irq_save(flags);
		apic_timer_sim.now += 200;
		apic_timer_sim_kernel(apic_timer_sim.now + 30);
		local_irq_restore(flags);
		run_until(until + 1000);
		KUNIT_EXPECT_EQ_MSG(test, events, 1U, "way %u", way);
		run_until(apic_timer_sim.now + 100000);
		events = 0;
	}
}

/* An expiry of mode exact after the fence does not defer the event again. */
static void exact_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now;

	timer.flags = APIC_TIMER_EXACT;
	timer.expires = now + UNTIL + 6000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	kernel_at(now + 500);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
	run_until(now + 200000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	EXPECT_EVENT(test, now + UNTIL, true);
}

/* When a fence is over, the kernel's events take the short path again. */
static void short_way_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now, alone;
	unsigned int deferring;

	for (deferring = 0; deferring < 2; deferring++) {
		now = apic_timer_sim.now;
		KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
		kernel_at(now + (deferring ? 5000 : 50000));
		run_until(now + 100000);
		KUNIT_EXPECT_EQ(test, events, 1U);
		/* The first event after the fence may have to end it. */
		kernel_at(apic_timer_sim.now + 5000);
		run_until(apic_timer_sim.now + 10000);
		alone = machine_stat(KERNEL_ONLY);
		kernel_at(apic_timer_sim.now + 5000);
		run_until(apic_timer_sim.now + 10000);
		KUNIT_EXPECT_EQ(test, events, 3U);
		KUNIT_EXPECT_EQ(test, machine_stat(KERNEL_ONLY), alone + 1);
		KUNIT_EXPECT_EQ(test, machine_mux()->target.expires, APIC_TIMER_NEVER);
		events = 0;
	}
	deferred = machine_stat(DEFERRED);

	/* Also if a timer was the last to be pending. */
	now = apic_timer_sim.now;
	timer.expires = now + 3000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
	run_until(now + 5000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	kernel_at(now + 6000);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + UNTIL, true);
	alone = machine_stat(KERNEL_ONLY);
	kernel_at(apic_timer_sim.now + 5000);
	run_until(apic_timer_sim.now + 10000);
	KUNIT_EXPECT_EQ(test, machine_stat(KERNEL_ONLY), alone + 1);
}

/* Without an event to defer, and without a timer, nothing happens. */
static void alone_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now;

	KUNIT_EXPECT_EQ(test, apic_timer_fence(now + UNTIL), 0);
	run_until(now + 100000);
	KUNIT_EXPECT_EQ(test, events, 0U);
	KUNIT_EXPECT_EQ(test, runs, 0U);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);
}

/* A rejected call changes nothing. */
static void refused_test(struct kunit *test)
{
	struct apic_timer_base *base = machine_base();
	u64 now = apic_timer_sim.now;

	KUNIT_EXPECT_EQ(test, apic_timer_fence(now + AHEAD_MAX + 100), -ERANGE);
	KUNIT_EXPECT_EQ(test, apic_timer_fence(APIC_TIMER_NEVER), -ERANGE);
	KUNIT_EXPECT_EQ(test, apic_timer_fence(now), 0);
	KUNIT_EXPECT_EQ(test, apic_timer_fence(0), 0);
	apic_timer_source_sim.shared = false;
	KUNIT_EXPECT_EQ(test, apic_timer_fence(now + UNTIL), -EOPNOTSUPP);
	apic_timer_source_sim.shared = true;
	base->online = false;
	KUNIT_EXPECT_EQ(test, apic_timer_fence(now + UNTIL), -ENODEV);
	base->online = true;
	kernel_at(now + 5000);
	run_until(now + 100000);
	EXPECT_EVENT(test, now + 5000, false);
}

/* The CPU goes offline and comes back, or wakes with another TSC: no fence is left. */
static void gone_test(struct kunit *test)
{
	unsigned long flags;
	unsigned int way;
	u64 now;

	for (way = 0; way < 2; way++) {
		now = apic_timer_sim.now;
		KUNIT_ASSERT_EQ(test, apic_timer_fence(now + UNTIL), 0);
		kernel_at(now + 5000);
		local_irq_save(flags);
		if (way)
			apic_timer_mux_reprogram();
		else
			apic_timer_mux_reset();
		local_irq_restore(flags);
		kernel_at(now + 6000);
		run_until(now + 100000);
		EXPECT_EVENT(test, now + 6000, false);
	}
}

/* With any clock, in any order, an event is never before the moment, never later than allowed. */
static void any_test(struct kunit *test)
{
	const struct machine_named *m;
	struct rnd_state rnd;
	u64 now, due, until, max, slack, comes;
	unsigned int n;

	prandom_seed_state(&rnd, 17);
	for_each_machine(m) {
		start(test, &m->machine);
		max = apic_timer_target_defer_max;
		slack = 2 * machine_tick(&m->machine) + m->machine.latency +
			100 * m->machine.cost + 50;
		for (n = 0; n < 2000; n++) {
			events = 0;
			now = apic_timer_sim.now;
			until = now + 1000 + prandom_u32_state(&rnd) % (u32)(2 * max - 1000);
			due = now + prandom_u32_state(&rnd) % (u32)(3 * max);
			timer.expires = now + prandom_u32_state(&rnd) % (u32)(3 * max);
			if (n & 1)
				KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
			if (n & 2)
				kernel_at(due);
			KUNIT_ASSERT_EQ(test, apic_timer_fence(until), 0);
			if (!(n & 2))
				kernel_at(due);
			run_until(now + 10 * max + 10 * slack);
			comes = due < until && due + max >= until ? until : due;
			KUNIT_ASSERT_EQ_MSG(test, events, 1U, "%s", m->name);
			KUNIT_ASSERT_GE_MSG(test, event_at, comes, "%s", m->name);
			KUNIT_ASSERT_LE_MSG(test, event_at, comes + slack, "%s", m->name);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(edges_test),
	KUNIT_CASE(beside_timers_test),
	KUNIT_CASE(receipt_test),
	KUNIT_CASE(in_handler_test),
	KUNIT_CASE(never_test),
	KUNIT_CASE(once_test),
	KUNIT_CASE(two_test),
	KUNIT_CASE(reprogrammed_test),
	KUNIT_CASE(overdue_test),
	KUNIT_CASE(overdue_again_test),
	KUNIT_CASE(exact_test),
	KUNIT_CASE(short_way_test),
	KUNIT_CASE(alone_test),
	KUNIT_CASE(refused_test),
	KUNIT_CASE(gone_test),
	KUNIT_CASE(any_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_fence",
	.init = fence_test_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
