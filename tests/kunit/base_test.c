// SPDX-License-Identifier: GPL-2.0
/*
 * Expiry in simulated time: once, in order, never early, and bounded.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/time64.h>
#include <linux/tracepoint.h>

#include <trace/events/apic_timer.h>

#include "machine.h"
#include "policy/lead.h"
#include "timers/dispatch.h"
#include "timers/drain.h"
#include "timers/interrupt.h"
#include "timers/state.h"

#define COUNT	2000

struct record {
	unsigned int runs;
	unsigned int order;
	u64 now;
};

static struct apic_timer_list timers[COUNT];
static struct record records[COUNT];
static unsigned int order;

static void record(unsigned long long now, unsigned long data)
{
	records[data].runs++;
	records[data].order = order++;
	records[data].now = now;
}

static int base_test_init(struct kunit *test)
{
	unsigned int i;

	memset(records, 0, sizeof(records));
	order = 0;
	for (i = 0; i < COUNT; i++) {
		init_apic_timer(&timers[i]);
		timers[i].data = i;
		timers[i].function = record;
	}
	apic_timer_stats_reset_errors();
	return machine_init(test);
}

static unsigned long run_for(u64 cycles)
{
	return apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

static void add(struct kunit *test, unsigned int i, u64 distance)
{
	timers[i].expires = apic_timer_sim.now + distance;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
}

/* On every machine each timer runs once, in the order of expiry, and none is early. */
static void once_in_order_test(struct kunit *test)
{
	const struct machine_named *m;
	struct apic_timer_list *timer;
	unsigned int i, j, before;
	struct rnd_state rnd;
	u64 expired;

	prandom_seed_state(&rnd, 9);
	for_each_machine(m) {
		machine_start(test, &m->machine);
		memset(records, 0, sizeof(records));
		order = 0;
		expired = machine_stat(EXPIRED);
		for (i = 0; i < COUNT; i++)
			add(test, i, 1000000 + (prandom_u32_state(&rnd) >>
						(i % 16)));
		run_for(1ULL << 33);

		KUNIT_ASSERT_EQ_MSG(test, machine_stat(EXPIRED) - expired,
				    (u64)COUNT, "%s", m->name);
		for (i = 0; i < COUNT; i++) {
			timer = &timers[i];
			KUNIT_ASSERT_EQ_MSG(test, records[i].runs, 1U, "%s",
					    m->name);
			KUNIT_ASSERT_GE_MSG(test, records[i].now,
					    timer->expires, "%s", m->name);
			KUNIT_ASSERT_FALSE(test, apic_timer_pending(timer));
		}
		for (i = 0; i < COUNT; i += 7) {
			before = 0;
			for (j = 0; j < COUNT; j++)
				if (timers[j].expires < timers[i].expires ||
				    (timers[j].expires == timers[i].expires &&
				     j < i))
					before++;
			KUNIT_ASSERT_EQ_MSG(test, records[i].order, before,
					    "%s", m->name);
		}
	}
}

static void equal_moments_test(struct kunit *test)
{
	unsigned long interrupts;
	u64 at = apic_timer_sim.now + 5000;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		timers[i].expires = at;
		KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
	}
	interrupts = run_for(50000);
	KUNIT_EXPECT_EQ(test, interrupts, 1UL);
	for (i = 0; i < 50; i++) {
		KUNIT_EXPECT_EQ(test, records[i].runs, 1U);
		KUNIT_EXPECT_EQ(test, records[i].order, i);
	}
}

/*
 * Random additions, changes and deletions as time passes: every armed timer
 * ends in exactly one run or one reported deletion.
 */
static void nothing_lost_test(struct kunit *test)
{
	unsigned long armed[64] = {}, deleted[64] = {};
	const struct machine_named *m;
	struct rnd_state rnd;
	unsigned int step, i;
	u64 distance;
	int ret;

	prandom_seed_state(&rnd, 10);
	for_each_machine(m) {
		machine_start(test, &m->machine);
		memset(records, 0, sizeof(records));
		memset(armed, 0, sizeof(armed));
		memset(deleted, 0, sizeof(deleted));
		for (step = 0; step < 20000; step++) {
			i = prandom_u32_state(&rnd) % 64;
			distance = prandom_u32_state(&rnd) >>
				   prandom_u32_state(&rnd) % 28;
			switch (prandom_u32_state(&rnd) % 4) {
			case 0:
				if (apic_timer_pending(&timers[i]))
					break;
				add(test, i, distance);
				armed[i]++;
				break;
			case 1:
				ret = mod_apic_timer(&timers[i],
						     apic_timer_sim.now +
						     distance - 1000);
				KUNIT_ASSERT_GE(test, ret, 0);
				armed[i] += !ret;
				break;
			case 2:
				ret = del_apic_timer(&timers[i]);
				KUNIT_ASSERT_TRUE(test, ret >= 0 ||
						  ret == -ENOENT);
				deleted[i] += ret == 1;
				break;
			default:
				run_for(distance / 8);
			}
		}
		run_for(1ULL << 34);
		for (i = 0; i < 64; i++)
			KUNIT_ASSERT_EQ_MSG(test, armed[i],
					    records[i].runs + deleted[i], "%s",
					    m->name);
		KUNIT_ASSERT_EQ(test, machine_base()->queue.count, 0UL);
	}
}

static u64 errors(unsigned int early)
{
	unsigned int bucket;
	u64 sum = 0;

	for (bucket = 0; bucket < APIC_TIMER_STATS_BUCKETS; bucket++)
		sum += per_cpu(apic_timer_stats, 0).error[early][bucket];
	return sum;
}

/* The error is now - expires: it equals the latency, so the handler was not early. */
static void error_test(struct kunit *test)
{
	unsigned int i;

	apic_timer_sim.machine.latency = 3000;
	for (i = 0; i < 100; i++)
		add(test, i, 10000 * (i + 1));
	run_for(10000000);
	KUNIT_EXPECT_EQ(test, errors(1), 0ULL);
	KUNIT_EXPECT_EQ(test, errors(0), 100ULL);
	/* 2048 to 4095 */
	KUNIT_EXPECT_EQ(test, per_cpu(apic_timer_stats, 0).error[0][12], 100ULL);

	apic_timer_stats_error(-1);
	apic_timer_stats_error(0);
	apic_timer_stats_error(S64_MIN);
	apic_timer_stats_error(S64_MAX);
	KUNIT_EXPECT_EQ(test, per_cpu(apic_timer_stats, 0).error[1][1], 1ULL);
	KUNIT_EXPECT_EQ(test, per_cpu(apic_timer_stats, 0).error[0][0], 1ULL);
	KUNIT_EXPECT_EQ(test, per_cpu(apic_timer_stats, 0).error[1][64], 1ULL);
	KUNIT_EXPECT_EQ(test, per_cpu(apic_timer_stats, 0).error[0][63], 1ULL);
}

static void late_test(struct kunit *test)
{
	u64 late = machine_stat(ADDED_LATE), now;

	apic_timer_sim.machine.cost = 0;
	now = apic_timer_sim.now;
	add(test, 0, 0);		/* now is past */
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 1ULL);
	add(test, 1, 1);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 1ULL);
	add(test, 2, -5000);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 2ULL);
	timers[3].expires = 0;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[3]), 0);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 3ULL);

	run_for(machine_plain.latency + 1);
	KUNIT_EXPECT_EQ(test, order, 4U);
	/* At once: only the interrupt's latency, and the cost assumed for a call. */
	KUNIT_EXPECT_EQ(test, records[3].now, now + machine_plain.latency +
			per_cpu(apic_timer_dispatch_cost, 0)
			.call[APIC_TIMER_DISPATCH_AT_ONCE]);
	KUNIT_EXPECT_EQ(test, records[3].order, 0U);
	KUNIT_EXPECT_EQ(test, records[2].order, 1U);
	KUNIT_EXPECT_EQ(test, records[0].order, 2U);
	KUNIT_EXPECT_EQ(test, records[1].order, 3U);

	/* A pending timer is moved to the past, and is late; moved ahead, it is not. */
	add(test, 4, 5000);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timers[4], apic_timer_sim.now + 1), 1);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 3ULL);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timers[4], 0), 1);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 4ULL);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timers[4], 1), 1);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late, 4ULL);
	run_for(machine_plain.latency + 1);
	KUNIT_EXPECT_EQ(test, order, 5U);
}

/* The largest value means never. */
static void never_test(struct kunit *test)
{
	timers[0].expires = U64_MAX;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[0]), 0);
	KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
	add(test, 1, 1000);
	run_for(1ULL << 62);
	KUNIT_EXPECT_EQ(test, records[1].runs, 1U);
	KUNIT_EXPECT_EQ(test, records[0].runs, 0U);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
}

/* Check whether the kernel's next event takes the fast path. */
static bool is_fast(void)
{
	return apic_timer_mux_kernel_only(machine_mux(), 1000000, apic_timer_sim.now);
}

static void kernel_at(u64 tsc)
{
	unsigned long flags;

	local_irq_save(flags);
	if (tsc == APIC_TIMER_NEVER)
		apic_timer_mux_give_up_kernel();
	else
		apic_timer_sim_kernel(tsc);
	local_irq_restore(flags);
}

static void delete(unsigned int how)
{
	struct apic_timer_base *base;
	unsigned long flags;

	switch (how) {
	case 0:
		del_apic_timer(&timers[0]);
		del_apic_timer(&timers[1]);
		break;
	case 1:
		apic_timer_drain_all();
		break;
	default:	/* as another CPU does */
		base = apic_timer_base_lock(&timers[0], &flags);
		apic_timer_base_dequeue(base, &timers[1]);
		apic_timer_base_dequeue(base, &timers[0]);
		apic_timer_base_unlock(base, flags);
	}
}

/*
 * After the last timer was deleted or cancelled, the hardware may fire once for it, but does not
 * stay armed when the kernel gives up its event. From the next interrupt on, the kernel's events
 * take the fast path.
 */
static void deleted_last_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 6; i++) {
		kernel_at(apic_timer_sim.now + 5000);
		add(test, 0, 1000000);
		add(test, 1, 2000000);
		KUNIT_EXPECT_FALSE(test, is_fast());
		delete(i / 2);
		KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
		if (i % 2)
			kernel_at(APIC_TIMER_NEVER);
		else
			run_for(10000);
		KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
		KUNIT_EXPECT_TRUE(test, is_fast());
		apic_timer_mux_end_kernel_only(machine_mux());
		kernel_at(APIC_TIMER_NEVER);
	}
	KUNIT_EXPECT_EQ(test, order, 0U);
}

/* A deletion does not access the hardware; the interrupt finds no timer. */
static void deleted_head_test(struct kunit *test)
{
	u64 idle = machine_stat(SPURIOUS);
	unsigned long programmed;

	add(test, 0, 1000);
	add(test, 1, 50000);
	programmed = apic_timer_sim.programmed;
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, programmed);
	KUNIT_EXPECT_EQ(test, run_for(5000), 1UL);
	KUNIT_EXPECT_EQ(test, machine_stat(SPURIOUS), idle + 1);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, records[0].runs, 0U);
	KUNIT_EXPECT_EQ(test, records[1].runs, 1U);
}

/* The hardware is armed once for a head, and once at the end of an interrupt. */
static void armed_once_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		add(test, i, 1000000 + i);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 1UL);
	add(test, 100, 500000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 2UL);
	run_for(600000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 3UL);
	run_for(2000000);
	KUNIT_EXPECT_EQ(test, order, 101U);
}

/*
 * Bounded work. Handlers may run for busy_us (500) without a break.
 */
#define BUSY_NS		(500 * NSEC_PER_USEC)
#define TICK_NS		(4 * NSEC_PER_MSEC)

static unsigned int kernel_events;
static u64 kernel_late_max, kernel_next;
static u64 handler_cost, handler_step;
static u64 handler_busy;

static void tick(u64 now)
{
	kernel_late_max = max(kernel_late_max, now - kernel_next);
	kernel_events++;
	kernel_next += TICK_NS;
	apic_timer_sim_kernel(kernel_next);
}

/* Arms itself again without end, for a moment that is past or nearly past. */
static void hog(unsigned long long now, unsigned long data)
{
	handler_busy += handler_cost;
	apic_timer_sim.now += handler_cost;
	timers[data].expires = handler_step ?
		apic_timer_sim.now + handler_step : now;
	add_apic_timer(&timers[data]);
}

static void hog_start(struct kunit *test, u64 cost, u64 step)
{
	unsigned long flags;

	kernel_events = 0;
	kernel_late_max = 0;
	handler_busy = 0;
	handler_cost = cost;
	handler_step = step;
	apic_timer_sim.machine.kernel_event = tick;
	kernel_next = apic_timer_sim.now + TICK_NS;
	local_irq_save(flags);
	apic_timer_sim_kernel(kernel_next);
	local_irq_restore(flags);
	timers[0].function = hog;
	add(test, 0, 1000);
}

static void hog_stop(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	apic_timer_sim.machine.kernel_event = NULL;
	machine_mux()->deadline[APIC_TIMER_MUX_KERNEL] = APIC_TIMER_NEVER;
}

/*
 * With a hog the kernel's tick is served, and part of the time is free: half
 * of it if the hog itself makes no pauses, otherwise at least a ninth.
 */
static void check_hog(struct kunit *test, u64 cost, u64 step)
{
	unsigned int ticks = cost < 100 ? 10 : 100;
	u64 throttled = machine_stat(THROTTLED);
	unsigned long interrupts;

	machine_start(test, &machine_plain);
	hog_start(test, cost, step);
	interrupts = run_for(ticks * TICK_NS);
	KUNIT_EXPECT_LT(test, interrupts, MACHINE_LIMIT);
	KUNIT_EXPECT_GT(test, machine_stat(THROTTLED), throttled);
	KUNIT_EXPECT_GE(test, kernel_events, ticks - 2);
	KUNIT_EXPECT_LE(test, kernel_late_max, BUSY_NS + cost + 10000);
	KUNIT_EXPECT_LE(test, handler_busy,
			(step ? ticks * TICK_NS / 9 * 8 : ticks * TICK_NS / 2) +
			BUSY_NS + cost);
	hog_stop(test);
}

static void throttle_past_test(struct kunit *test)
{
	check_hog(test, 300, 0);
	check_hog(test, 5, 0);
	check_hog(test, 100000, 0);
}

/* Expiries are not in the past, but each interrupt follows the previous one closely. */
static void throttle_quick_interrupts_test(struct kunit *test)
{
	/* The rest of the machine has 1 cycle in 10. */
	check_hog(test, 9000, 900);
	check_hog(test, 90000, 9000);
}

/* Interrupts are as quick, but the gaps compensate for it: handlers are not throttled. */
static void quick_interrupts_test(struct kunit *test)
{
	u64 throttled = machine_stat(THROTTLED);
	unsigned long interrupts;

	hog_start(test, 1500, 400);
	interrupts = run_for(100 * TICK_NS);
	KUNIT_EXPECT_GT(test, interrupts, 100 * TICK_NS / 2500);
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED), throttled);
	KUNIT_EXPECT_GE(test, kernel_events, 98U);
	KUNIT_EXPECT_LE(test, kernel_late_max, 10000ULL);
	hog_stop(test);
}

static void chain(unsigned long long now, unsigned long data)
{
	apic_timer_sim.now += handler_cost;
	timers[data].expires += handler_step;
	add_apic_timer(&timers[data]);
}

static void start_chain(struct kunit *test, u32 mode, u64 cost, u64 step)
{
	machine_start(test, &machine_plain);
	kernel_events = 0;
	kernel_late_max = 0;
	handler_cost = cost;
	handler_step = step;
	apic_timer_sim.machine.latency = 600;
	apic_timer_sim.machine.kernel_event = tick;
	apic_timer_sim.machine.cost = 10;
	kernel_next = apic_timer_sim.now + TICK_NS;
	local_irq_disable();
	apic_timer_sim_kernel(kernel_next);
	local_irq_enable();
	timers[0].function = chain;
	timers[0].flags = mode;
	add(test, 0, 10000);
}

static void stop_chain(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, kernel_events, 98U);
	KUNIT_EXPECT_LE(test, kernel_late_max, BUSY_NS);
	timers[0].flags = APIC_TIMER_RAW;
	hog_stop(test);
}

/*
 * Exact expiries so close that it would pay to wait for each in the interrupt of
 * the one before: the rest of the machine still gets its turn, and no expiry has
 * to wait for it.
 */
static void check_exact_chain(struct kunit *test, u64 cost, u64 step)
{
	u64 throttled = machine_stat(THROTTLED);
	u64 expired = machine_stat(EXPIRED), interrupts;

	start_chain(test, APIC_TIMER_EXACT, cost, step);
	interrupts = run_for(100 * TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED), throttled);
	KUNIT_EXPECT_GE(test, machine_stat(EXPIRED) - expired,
			100 * TICK_NS / step - 10);
	KUNIT_EXPECT_GT(test, interrupts, 100 * TICK_NS / 20000);
	stop_chain(test);
}

static unsigned int beats, late_beats;

static void beat(unsigned long long now, unsigned long data)
{
	beats++;
	late_beats += apic_timer_now() - timers[data].expires > 5;
	/* 600 on average, sometimes more, sometimes less. */
	apic_timer_sim.machine.latency = 580 + beats * 7 % 41;
	chain(now, data);
}

/*
 * The period is close to the lead, because some expiries have needed 4 us. Each expiry is
 * waited for in the interrupt of the one before, until the rest of the machine has waited
 * long enough. Then the lead becomes shorter, but still covers usual latencies.
 */
static void check_beat(struct kunit *test, u64 cost, u64 step)
{
	u64 throttled = machine_stat(THROTTLED);
	unsigned long flags;
	unsigned int n;

	start_chain(test, APIC_TIMER_EXACT, cost, step);
	timers[0].function = beat;
	apic_timer_sim.machine.cost = 1;
	beats = 0;
	late_beats = 0;
	local_irq_save(flags);
	for (n = 0; n < 300; n++)
		apic_timer_lead_learn(APIC_TIMER_CPU_BUSY, n % 20 == 7 ? 4000 : 600);
	local_irq_restore(flags);
	run_for(100 * TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED), throttled);
	KUNIT_EXPECT_GE(test, beats, (unsigned int)(100 * TICK_NS / step - 10));
	KUNIT_EXPECT_LE_MSG(test, late_beats, beats / 100, "%llu every %llu", cost, step);
	stop_chain(test);
}

static void beat_test(struct kunit *test)
{
	check_beat(test, 300, 5000);
	check_beat(test, 300, 2500);
	check_beat(test, 1000, 5000);
}

static void exact_chain_test(struct kunit *test)
{
	check_exact_chain(test, 0, 2000);
	check_exact_chain(test, 300, 2000);
}

/*
 * Expiries so close that leaving the interrupt and entering it again takes
 * longer: the time between two interrupts is not available to the rest of the
 * machine. It still gets its turn, by throttling.
 */
static void too_close_chain_test(struct kunit *test)
{
	u64 throttled = machine_stat(THROTTLED);

	start_chain(test, APIC_TIMER_EXACT, 100, 700);
	run_for(100 * TICK_NS);
	KUNIT_EXPECT_GE(test, machine_stat(THROTTLED) - throttled,
			100 * TICK_NS / BUSY_NS / 4);
	stop_chain(test);
}

/*
 * Each expiry has its own interrupt, but the next one fires while the previous
 * one is being left: none of the time between the handlers is available to the
 * rest of the machine.
 */
static void heels_chain_test(struct kunit *test)
{
	u64 throttled = machine_stat(THROTTLED);

	start_chain(test, APIC_TIMER_RAW, 100, 1300);
	run_for(100 * TICK_NS);
	KUNIT_EXPECT_GE(test, machine_stat(THROTTLED) - throttled,
			100 * TICK_NS / 1300 * 100 / BUSY_NS / 2);
	stop_chain(test);

	/* Of this chain it has half the time. */
	throttled = machine_stat(THROTTLED);
	start_chain(test, APIC_TIMER_RAW, 100, 2600);
	run_for(100 * TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED), throttled);
	stop_chain(test);
}

/* An expiry long after such a chain is exact again. */
static void after_chain_test(struct kunit *test)
{
	start_chain(test, APIC_TIMER_EXACT, 100, 700);
	run_for(BUSY_NS * 3 / 4);
	KUNIT_EXPECT_GT(test, machine_base()->throttle.level, 1U);
	timers[0].flags = APIC_TIMER_RAW;
	hog_stop(test);

	timers[1].flags = APIC_TIMER_EXACT;
	add(test, 1, NSEC_PER_MSEC);
	run_for(2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, records[1].runs, 1U);
	KUNIT_EXPECT_LE(test, records[1].now - timers[1].expires, 5ULL);
	timers[1].flags = APIC_TIMER_RAW;
}

static unsigned int seen_busy[3];

/* Uses all of the CPU's time, but pauses for an eighth after it has done so for long. */
static void give_way(unsigned long long now, unsigned long data)
{
	unsigned int busy = apic_timer_busy();

	seen_busy[min(busy, 2U)]++;
	chain(now, data);
	if (busy > 1)
		mod_apic_timer(&timers[data], now + BUSY_NS / 8);
}

/* Handlers that observe how long they have kept the CPU busy are not throttled. */
static void busy_test(struct kunit *test)
{
	u64 throttled = machine_stat(THROTTLED);
	unsigned int was;

	memset(seen_busy, 0, sizeof(seen_busy));
	start_chain(test, APIC_TIMER_RAW, 1000, 500);
	timers[0].function = give_way;
	run_for(10 * TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED), throttled);
	/* In each round, about as much time without a break as with a short one. */
	KUNIT_EXPECT_GE(test, seen_busy[0], 10U);
	KUNIT_EXPECT_GE(test, seen_busy[1], 10U);
	KUNIT_EXPECT_GE(test, seen_busy[2], 10U);
	KUNIT_EXPECT_LT(test, seen_busy[2], seen_busy[0] / 10);

	/* Between interrupts, and when the whole burst has been forgiven. */
	do {
		was = seen_busy[2];
		run_for(1000);
	} while (seen_busy[2] == was);
	local_irq_disable();
	KUNIT_EXPECT_EQ(test, apic_timer_busy(), 2U);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	run_for(BUSY_NS);
	local_irq_disable();
	KUNIT_EXPECT_EQ(test, apic_timer_busy(), 0U);
	local_irq_enable();
	apic_timer_sim.machine.kernel_event = NULL;
	machine_mux()->deadline[APIC_TIMER_MUX_KERNEL] = APIC_TIMER_NEVER;
}

/* The initial guess of a latency stays, unless spinning for it takes most of the time. */
static void lead_hurries_test(struct kunit *test)
{
	const struct apic_timer_lead *lead = per_cpu_ptr(&apic_timer_lead, 0);
	u64 guess;

	start_chain(test, APIC_TIMER_EXACT, 100, 50000);
	guess = lead->exact[0];
	run_for(10 * TICK_NS);
	KUNIT_EXPECT_GE(test, lead->exact[0], guess * 9 / 10);
	timers[0].flags = APIC_TIMER_RAW;
	hog_stop(test);

	/* Nor because of a long handler that is over, and forgiven. */
	start_chain(test, APIC_TIMER_EXACT, BUSY_NS / 3, BUSY_NS);
	run_for(BUSY_NS);
	handler_cost = 100;
	run_for(20 * TICK_NS);
	KUNIT_EXPECT_GE(test, lead->exact[0], guess * 9 / 10);
	timers[0].flags = APIC_TIMER_RAW;
	hog_stop(test);

	start_chain(test, APIC_TIMER_EXACT, 100, 5000);
	KUNIT_EXPECT_EQ(test, lead->exact[0], guess);
	run_for(10 * TICK_NS);
	KUNIT_EXPECT_LE(test, lead->exact[0], guess / 3);
	timers[0].flags = APIC_TIMER_RAW;
	hog_stop(test);
}

/*
 * A single handler that takes too long is followed by a pause. The first pauses are
 * shorter than the handler, because it may not take as long again. Then handlers have
 * half of the time.
 */
static void throttle_long_handler_test(struct kunit *test)
{
	u64 began;

	hog_start(test, 20 * NSEC_PER_MSEC, 0);
	run_for(200 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, handler_busy, 160 * NSEC_PER_MSEC + 0ULL);
	handler_busy = 0;
	began = apic_timer_sim.now;
	run_for(2 * NSEC_PER_SEC);
	KUNIT_EXPECT_LE(test, handler_busy,
			(apic_timer_sim.now - began) / 2 + 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, handler_busy,
			(apic_timer_sim.now - began) / 2 - 40 * NSEC_PER_MSEC);
	/* The kernel has its turn in each pause. */
	KUNIT_EXPECT_LE(test, kernel_late_max, 20 * NSEC_PER_MSEC + 10000ULL);
	hog_stop(test);
}

#define STOLEN_NS	(10 * NSEC_PER_MSEC)

static unsigned int shots_to_theft;
static u64 shot_late_max;

/* Takes 2 us, except when a hypervisor or firmware takes the CPU away meanwhile. */
static void robbed(unsigned long long now, unsigned long data)
{
	shot_late_max = max(shot_late_max, now - timers[data].expires);
	apic_timer_sim.now += shots_to_theft-- ? 2000 : STOLEN_NS;
	apic_timer_forward(&timers[data], apic_timer_sim.now, NSEC_PER_MSEC);
	add_apic_timer(&timers[data]);
}

/* Time that the CPU was away looks like a long handler, but makes expiries late by busy_us only. */
static void throttle_stolen_time_test(struct kunit *test)
{
	u64 throttled = machine_stat(THROTTLED);
	unsigned int i;

	timers[0].function = robbed;
	shots_to_theft = 50;
	add(test, 0, NSEC_PER_MSEC);
	shot_late_max = 0;
	for (i = 0; i < 10; i++) {
		run_for(60 * NSEC_PER_MSEC);
		shots_to_theft = 40;
	}
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED) - throttled, 10ULL);
	KUNIT_EXPECT_LE(test, shot_late_max, BUSY_NS + 10000ULL);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
}

/* Every second of its runs is throttled, and every other one forgiven after a short break. */
static void binge(unsigned long long now, unsigned long data)
{
	handler_busy += 5 * NSEC_PER_MSEC;
	apic_timer_sim.now += 5 * NSEC_PER_MSEC;
	timers[data].expires = records[data].runs++ % 2 ? apic_timer_sim.now + NSEC_PER_MSEC : now;
	add_apic_timer(&timers[data]);
}

/*
 * A burst that is forgiven does not make the next throttle short again: handlers have hardly
 * more time than if each throttle lasted as long as the burst before it, 10 ms of 16.
 */
static void throttle_owed_test(struct kunit *test)
{
	u64 began = apic_timer_sim.now;

	handler_busy = 0;
	timers[0].function = binge;
	add(test, 0, 1000);
	run_for(2 * (u64)NSEC_PER_SEC);
	KUNIT_EXPECT_LE(test, handler_busy,
			(apic_timer_sim.now - began) / 16 * 10 + 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
}

/*
 * Handlers are throttled for busy_us at first, then for twice as long each time, and for at
 * most 100 ms, even if they took longer.
 */
static void hold_max_test(struct kunit *test)
{
	struct apic_timer_base *base = machine_base();
	u64 wanted = BUSY_NS, until = apic_timer_sim.now + 2000;
	unsigned int i;

	hog_start(test, 5ULL * NSEC_PER_SEC, 0);
	for (i = 0; i < 12; i++) {
		apic_timer_sim_run(until, MACHINE_LIMIT);
		until = base->not_before + 2000;
		KUNIT_EXPECT_GT(test, base->not_before, apic_timer_sim.now + wanted - 10000);
		KUNIT_EXPECT_LE(test, base->not_before, apic_timer_sim.now + wanted);
		wanted = min(2 * wanted, 100ULL * NSEC_PER_MSEC);
	}
	hog_stop(test);
}

/* After a throttle they run, even if entering an interrupt takes longer. */
static void hold_ends_test(struct kunit *test)
{
	unsigned int i;

	apic_timer_sim.machine.latency = 5 * NSEC_PER_MSEC;
	for (i = 1; i <= 100; i++)
		add(test, i, 20 * NSEC_PER_MSEC * i);
	run_for(3 * (u64)NSEC_PER_SEC);
	KUNIT_ASSERT_EQ(test, order, 100U);

	hog_start(test, BUSY_NS + 100000, 0);
	run_for(NSEC_PER_SEC);
	KUNIT_EXPECT_GT(test, handler_busy, (u64)NSEC_PER_SEC / 20);
	hog_stop(test);
}

/* Handlers that leave gaps are not throttled, even if their total time is long. */
static void no_throttle_test(struct kunit *test)
{
	u64 throttled = machine_stat(THROTTLED);

	hog_start(test, 8000, 2000);
	run_for(NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, machine_stat(THROTTLED), throttled);
	KUNIT_EXPECT_GT(test, handler_busy, (u64)NSEC_PER_SEC * 3 / 4);
	hog_stop(test);
}

/* Timers that are due while handlers are throttled run afterwards, in order. */
static void throttled_not_lost_test(struct kunit *test)
{
	unsigned int i;
	u64 began;

	handler_cost = 2 * NSEC_PER_MSEC;
	hog_start(test, 2 * NSEC_PER_MSEC, 0);
	began = apic_timer_sim.now;
	for (i = 1; i <= 100; i++)
		add(test, i, 10000 * i);
	run_for(20 * NSEC_PER_MSEC);
	hog_stop(test);
	run_for(20 * NSEC_PER_MSEC);
	for (i = 1; i <= 100; i++) {
		KUNIT_ASSERT_EQ(test, records[i].runs, 1U);
		KUNIT_ASSERT_EQ(test, records[i].order, i - 1);
		KUNIT_ASSERT_GE(test, records[i].now, timers[i].expires);
	}
	/* Make sure that they were throttled, or this test is void. */
	KUNIT_EXPECT_GT(test, records[1].now - began, 2 * NSEC_PER_MSEC + 0ULL);
}

static void cancel_all_test(struct kunit *test)
{
	u64 cancelled = machine_stat(CANCELLED);
	unsigned int i;

	for (i = 0; i < 200; i++)
		add(test, i, 1000 + i % 7);
	apic_timer_drain_all();
	KUNIT_EXPECT_EQ(test, machine_base()->queue.count, 0UL);
	KUNIT_EXPECT_EQ(test, machine_stat(CANCELLED) - cancelled, 200ULL);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, order, 0U);
	/* and they can be used again */
	add(test, 0, 1000);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, order, 1U);
}

static struct {
	struct apic_timer_list *timer;
	struct completion begun, done;
	int ret;
} modifier;

static int modify(void *unused)
{
	wait_for_completion(&modifier.begun);
	modifier.ret = mod_apic_timer(modifier.timer, 1);
	complete(&modifier.done);
	return 0;
}

static void let_modify(void *unused, const struct apic_timer_list *timer)
{
	complete(&modifier.begun);
}

/* The only CPU goes offline. A timer modified after others were cancelled is cancelled as well. */
static void cancel_modified_test(struct kunit *test)
{
	struct apic_timer_base *base = machine_base();
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < 200; i++)
		add(test, i, 1000 + i);
	init_completion(&modifier.begun);
	init_completion(&modifier.done);
	modifier.timer = &timers[199];
	task = kthread_run(modify, NULL, "modifier");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	/* The task runs as soon as the base is unlocked. */
	sched_set_fifo(task);
	KUNIT_ASSERT_EQ(test, register_trace_apic_timer_cancel(let_modify, NULL), 0);
	apic_timer_drain_cpu();
	unregister_trace_apic_timer_cancel(let_modify, NULL);
	tracepoint_synchronize_unregister();
	wait_for_completion(&modifier.done);

	KUNIT_EXPECT_EQ(test, modifier.ret, 1);
	KUNIT_EXPECT_EQ(test, base->queue.count, 0UL);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(modifier.timer));
	KUNIT_EXPECT_EQ(test, mod_apic_timer(modifier.timer, 1), -ENODEV);

	apic_timer_base_online();
	add(test, 0, 1000);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, order, 1U);
}

static void look_test(struct kunit *test)
{
	struct apic_timer_base_view views[APIC_TIMER_QUEUE_GROUP];
	struct apic_timer_queue_cursor cursor;
	unsigned int i, n, seen = 0;

	for (i = 0; i < 20; i++) {
		timers[i].expires = apic_timer_sim.now + 1000000 +
				    (i < 15 ? 0 : i);
		KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
	}
	apic_timer_queue_cursor_init(&cursor);
	while ((n = apic_timer_base_snapshot(machine_base(), &cursor, views))) {
		KUNIT_ASSERT_LE(test, seen + n, 20U);
		for (i = 0; i < n; i++, seen++) {
			KUNIT_EXPECT_PTR_EQ(test, views[i].timer,
					    (const void *)&timers[seen]);
			KUNIT_EXPECT_EQ(test, views[i].expires,
					timers[seen].expires);
			KUNIT_EXPECT_TRUE(test, views[i].function == record);
		}
	}
	apic_timer_base_snapshot_end(machine_base(), &cursor);
	KUNIT_EXPECT_EQ(test, seen, 20U);
	apic_timer_drain_all();
}

static struct kunit_case cases[] = {
	KUNIT_CASE(once_in_order_test),
	KUNIT_CASE(equal_moments_test),
	KUNIT_CASE(nothing_lost_test),
	KUNIT_CASE(error_test),
	KUNIT_CASE(late_test),
	KUNIT_CASE(never_test),
	KUNIT_CASE(deleted_last_test),
	KUNIT_CASE(deleted_head_test),
	KUNIT_CASE(armed_once_test),
	KUNIT_CASE(throttle_past_test),
	KUNIT_CASE(throttle_quick_interrupts_test),
	KUNIT_CASE(quick_interrupts_test),
	KUNIT_CASE(exact_chain_test),
	KUNIT_CASE(beat_test),
	KUNIT_CASE(too_close_chain_test),
	KUNIT_CASE(heels_chain_test),
	KUNIT_CASE(after_chain_test),
	KUNIT_CASE(lead_hurries_test),
	KUNIT_CASE(throttle_long_handler_test),
	KUNIT_CASE(throttle_stolen_time_test),
	KUNIT_CASE(throttle_owed_test),
	KUNIT_CASE(hold_max_test),
	KUNIT_CASE(hold_ends_test),
	KUNIT_CASE(busy_test),
	KUNIT_CASE(no_throttle_test),
	KUNIT_CASE(throttled_not_lost_test),
	KUNIT_CASE(cancel_all_test),
	KUNIT_CASE(cancel_modified_test),
	KUNIT_CASE(look_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_base",
	.init = base_test_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
