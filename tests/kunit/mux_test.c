// SPDX-License-Identifier: GPL-2.0
/*
 * Expiries: one timer for two deadlines, hops, and expiries at any distance.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "machine.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "policy/lead.h"

static struct apic_timer_list timer;
static unsigned int runs, kernel_events;
static u64 ran_at, kernel_at;

static void ran(unsigned long long now, unsigned long data)
{
	runs++;
	ran_at = now;
}

static void kernel_event(u64 now)
{
	kernel_events++;
	kernel_at = now;
}

static int shot_test_init(struct kunit *test)
{
	runs = 0;
	kernel_events = 0;
	init_apic_timer(&timer);
	timer.function = ran;
	return machine_init(test);
}

static void set(enum apic_timer_mux_user user, u64 tsc)
{
	unsigned long flags;

	local_irq_save(flags);
	if (user == APIC_TIMER_MUX_TIMERS)
		apic_timer_mux_set_target(&(struct apic_timer_target) {
			.expires = tsc,
		});
	else
		apic_timer_sim_kernel(tsc);
	local_irq_restore(flags);
}

static unsigned long run_for(u64 cycles)
{
	return apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

static void leg_test(struct kunit *test)
{
	static const u64 reaches[] = { 1, 1000, 1ULL << 27, 1ULL << 39, U64_MAX };
	u64 distance, max_delta, delta;
	struct rnd_state rnd;
	unsigned int i, n;

	KUNIT_EXPECT_EQ(test, apic_timer_mux_delta(0, 1000, true), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_mux_delta(1, 1000, true), 1ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_mux_delta(1000, 1000, true), 1000ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_mux_delta(1001, 1000, true), 1000ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_mux_delta(1ULL << 60, U64_MAX, false),
			1ULL << 60);
	KUNIT_EXPECT_EQ(test, apic_timer_mux_delta(U64_MAX, U64_MAX, false),
			U64_MAX);
	/* 10 s at 1 GHz with a clock that drifts: a first hop short of it */
	delta = apic_timer_mux_delta(10000000000, U64_MAX, true);
	KUNIT_EXPECT_LT(test, delta, 9990000000ULL);
	KUNIT_EXPECT_GT(test, delta, 9000000000ULL);

	prandom_seed_state(&rnd, 11);
	for (n = 0; n < 100000; n++) {
		prandom_bytes_state(&rnd, &distance, sizeof(distance));
		distance = (distance >> prandom_u32_state(&rnd) % 64) | 1;
		for (i = 0; i < ARRAY_SIZE(reaches); i++) {
			max_delta = reaches[i];
			delta = apic_timer_mux_delta(distance, max_delta, n & 1);
			KUNIT_ASSERT_GT(test, delta, 0ULL);
			KUNIT_ASSERT_LE(test, delta, distance);
			KUNIT_ASSERT_LE(test, delta, max_delta);
			/* at least half of what it could be: few hops */
			KUNIT_ASSERT_GE(test, delta, min(distance, max_delta) / 2);
		}
	}
}

/* Over any distance, the number of hops is small. */
static void delta_converges_test(struct kunit *test)
{
	unsigned int bit, hops;
	u64 distance;

	for (bit = 0; bit < 64; bit++) {
		distance = 1ULL << bit;
		for (hops = 0; distance && hops < 100; hops++)
			distance -= apic_timer_mux_delta(distance, U64_MAX, true);
		KUNIT_EXPECT_LE(test, hops, 12U);
	}
}

static void earliest_test(struct kunit *test)
{
	u64 now = apic_timer_sim.now;

	KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
	set(APIC_TIMER_MUX_KERNEL, now + 5000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.fires, now + 5000);
	/* ours after it */
	set(APIC_TIMER_MUX_TIMERS, now + 7000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 1UL);
	/* ours before it */
	set(APIC_TIMER_MUX_TIMERS, now + 3000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.fires, now + 3000);
	/* the kernel's before ours */
	set(APIC_TIMER_MUX_KERNEL, now + 2000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.fires, now + 2000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 3UL);
	/* the same again needs no access to the hardware */
	set(APIC_TIMER_MUX_KERNEL, now + 2000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 3UL);
	/* the kernel stops its event: ours stays */
	set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
	KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
	KUNIT_EXPECT_LE(test, apic_timer_sim.fires, now + 3000);
	set(APIC_TIMER_MUX_TIMERS, APIC_TIMER_NEVER);
	KUNIT_EXPECT_LE(test, run_for(100000), 1UL);
	KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
}

/* A timer is deleted while the kernel wants no event; then the kernel gives it up once more. */
static void give_up_again(struct kunit *test)
{
	unsigned long programmed;

	set(APIC_TIMER_MUX_TIMERS, apic_timer_sim.now + 40000);
	set(APIC_TIMER_MUX_TIMERS, APIC_TIMER_NEVER);
	KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
	set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
	KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
	KUNIT_EXPECT_EQ(test, machine_mux()->fires, APIC_TIMER_NEVER);

	/* Disarmed hardware is left alone. */
	programmed = apic_timer_sim.programmed;
	set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, programmed);
}

/* With nothing to fire for, the hardware is disarmed: a CPU may not power down otherwise. */
static void none_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine = machine_plain;
	const struct apic_timer_mux *mux = machine_mux();
	unsigned long flags;
	unsigned int n;
	u64 now;

	for (n = 0; n < 2; n++) {
		machine.counter_hz = n ? 1000ULL * machine.tsc_khz : 0;
		machine_start(test, &machine);
		now = apic_timer_sim.now;
		set(APIC_TIMER_MUX_KERNEL, now + 5000);
		set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
		KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
		KUNIT_EXPECT_EQ(test, mux->fires, APIC_TIMER_NEVER);

		/* Nor for a timer that was deleted. */
		set(APIC_TIMER_MUX_KERNEL, now + 50000);
		set(APIC_TIMER_MUX_TIMERS, now + 40000);
		set(APIC_TIMER_MUX_TIMERS, APIC_TIMER_NEVER);
		KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
		set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
		KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
		give_up_again(test);

		/* Nor behind a fence, which still defers the kernel's next event. */
		now = apic_timer_sim.now;
		set(APIC_TIMER_MUX_KERNEL, now + 50000);
		local_irq_save(flags);
		apic_timer_mux_fence(now + 20000, 20000, now);
		local_irq_restore(flags);
		set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
		KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
		set(APIC_TIMER_MUX_KERNEL, now + 10000);
		KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
		KUNIT_EXPECT_GE(test, mux->fires, now + 20000);
		set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
		give_up_again(test);

		now = apic_timer_sim.now;
		set(APIC_TIMER_MUX_TIMERS, now + 3000);
		KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
		set(APIC_TIMER_MUX_TIMERS, APIC_TIMER_NEVER);
		KUNIT_EXPECT_LE(test, run_for(100000), 1UL);
		KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
	}
}

static void kernel_beside_ours_test(struct kunit *test)
{
	const struct machine_named *m;
	struct apic_timer_sim_machine machine;
	struct rnd_state rnd;
	unsigned int n;
	u64 start, ours, its, slack;

	prandom_seed_state(&rnd, 12);
	for_each_machine(m) {
		machine = m->machine;
		machine.kernel_event = kernel_event;
		machine_start(test, &machine);
		slack = 2 * machine_tick(&machine) + machine.latency +
			100 * machine.cost + 50;
		for (n = 0; n < 500; n++) {
			runs = 0;
			kernel_events = 0;
			start = apic_timer_sim.now;
			ours = start + 20000 + prandom_u32_state(&rnd) % 100000;
			its = start + 20000 + prandom_u32_state(&rnd) % 100000;
			timer.expires = ours;
			if (n & 1)
				set(APIC_TIMER_MUX_KERNEL, its);
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
			if (!(n & 1))
				set(APIC_TIMER_MUX_KERNEL, its);
			run_for(1000000);
			KUNIT_ASSERT_EQ_MSG(test, runs, 1U, "%s", m->name);
			KUNIT_ASSERT_EQ_MSG(test, kernel_events, 1U, "%s",
					    m->name);
			KUNIT_ASSERT_GE_MSG(test, ran_at, ours, "%s", m->name);
			KUNIT_ASSERT_LE_MSG(test, ran_at, ours + slack, "%s",
					    m->name);
			KUNIT_ASSERT_GE_MSG(test, kernel_at, its, "%s", m->name);
			KUNIT_ASSERT_LE_MSG(test, kernel_at, its + slack, "%s",
					    m->name);
		}
	}
}

static unsigned long programmed_inside;

static void arms_inside(unsigned long long now, unsigned long data)
{
	unsigned long before = apic_timer_sim.programmed;

	ran(now, data);
	apic_timer_sim_kernel(now + 700);
	apic_timer_sim_kernel(now + 300);
	apic_timer_mux_reprogram();
	programmed_inside = apic_timer_sim.programmed - before;
}

/* In the interrupt the hardware is not programmed until its end, and then once. */
static void held_in_interrupt_test(struct kunit *test)
{
	apic_timer_sim.machine.kernel_event = kernel_event;
	timer.function = arms_inside;
	timer.expires = apic_timer_sim.now + 1000;
	programmed_inside = 99;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	apic_timer_sim_run(apic_timer_sim.now + 5000, 1);
	KUNIT_EXPECT_EQ(test, programmed_inside, 0UL);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 2UL);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.fires, ran_at + 300);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, kernel_events, 1U);
}

/* The hardware was suspended: its deadline is programmed again. */
static void rearm_test(struct kunit *test)
{
	unsigned long flags;

	timer.expires = apic_timer_sim.now + 100000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	apic_timer_sim.active = false;
	KUNIT_EXPECT_EQ(test, run_for(1000), 0UL);

	local_irq_save(flags);
	apic_timer_mux_reprogram();
	local_irq_restore(flags);
	KUNIT_EXPECT_TRUE(test, apic_timer_sim.active);
	run_for(200000);
	KUNIT_EXPECT_EQ(test, runs, 1U);

	/* Without a deadline, nothing is programmed. */
	local_irq_save(flags);
	apic_timer_mux_reprogram();
	local_irq_restore(flags);
	KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
}

/* Let a timer expire over a distance. Return: how late it was, in cycles. */
static u64 shoot(struct kunit *test, const struct machine_named *m,
		 u64 distance)
{
	runs = 0;
	timer.expires = apic_timer_sim.now + distance;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	apic_timer_sim_run(timer.expires + 10000000, MACHINE_LIMIT);
	KUNIT_ASSERT_EQ_MSG(test, runs, 1U, "%s: lost at %llu cycles", m->name,
			    distance);
	KUNIT_ASSERT_GE_MSG(test, ran_at, timer.expires, "%s: early", m->name);
	return ran_at - timer.expires;
}

/*
 * Maximum delay of an expiry: the interrupt's latency, code, the tick that the
 * count is rounded up to, and all that once more if the last hop was short by
 * the drift over 2^17 cycles.
 */
static u64 late_max(const struct apic_timer_sim_machine *machine)
{
	return 2 * (machine->latency + 20 * machine->cost +
		    machine_tick(machine)) + 20;
}

/* If the calibration were 100 ppm off, the delay would be 1 ms and 6 ms. */
static void far_shots_test(struct kunit *test)
{
	static const unsigned int seconds[] = { 1, 10, 60, 3600 };
	const struct machine_named *m;
	unsigned int i;
	u64 late;

	for_each_machine(m) {
		machine_start(test, &m->machine);
		for (i = 0; i < ARRAY_SIZE(seconds); i++) {
			late = shoot(test, m, seconds[i] *
				     (m->machine.tsc_khz * 1000ULL));
			KUNIT_EXPECT_LE_MSG(test, late, late_max(&m->machine),
					    "%s: %u s", m->name, seconds[i]);
		}
	}
}

/* The kernel's own events need no hops, except one if the interrupt is too early. */
static void kernel_needs_no_hops_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine;
	const struct machine_named *m;
	u64 hops, distance;

	for_each_machine(m) {
		machine = m->machine;
		machine.kernel_event = kernel_event;
		machine_start(test, &machine);
		distance = machine.tsc_khz * 1000ULL;
		kernel_events = 0;
		hops = machine_stat(HOPS);
		set(APIC_TIMER_MUX_KERNEL, apic_timer_sim.now + distance);
		run_for(2 * distance);
		KUNIT_EXPECT_EQ_MSG(test, kernel_events, 1U, "%s", m->name);
		KUNIT_EXPECT_LE_MSG(test, machine_stat(HOPS) - hops, 1ULL, "%s",
				    m->name);
	}
}

/*
 * A kernel event, for which no lead is subtracted, is late by the drift. One of
 * our expiries soon after it must not be, in whichever order and however late
 * the two were armed.
 */
static void ours_after_kernel_test(struct kunit *test)
{
	static const unsigned int after[] = {
		0, 1, 1000, 100000, 300000, 1000000, 10000000, 100000000,
	};
	struct apic_timer_sim_machine machine;
	const struct machine_named *m;
	unsigned int i, order;
	u64 second, its;

	for_each_machine(m) {
		machine = m->machine;
		machine.kernel_event = kernel_event;
		machine_start(test, &machine);
		second = machine.tsc_khz * 1000ULL;
		for (i = 0; i < 3 * ARRAY_SIZE(after); i++) {
			order = i / ARRAY_SIZE(after);
			runs = 0;
			kernel_events = 0;
			its = apic_timer_sim.now + 10 * second;
			timer.expires = its + after[i % ARRAY_SIZE(after)];
			if (order)
				set(APIC_TIMER_MUX_KERNEL, its);
			if (order == 2)
				run_for(10 * second - second / 200);
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
			if (!order)
				set(APIC_TIMER_MUX_KERNEL, its);
			run_for(12 * second);
			KUNIT_ASSERT_EQ_MSG(test, runs, 1U, "%s", m->name);
			KUNIT_ASSERT_EQ(test, kernel_events, 1U);
			KUNIT_ASSERT_GE(test, kernel_at, its);
			KUNIT_ASSERT_GE(test, ran_at, timer.expires);
			KUNIT_EXPECT_LE_MSG(test, ran_at - timer.expires,
					    late_max(&machine),
					    "%s: %u after the kernel's, order %u",
					    m->name, after[i % ARRAY_SIZE(after)],
					    order);
		}
	}
}

static u64 ticks_to_cycles(const struct machine_named *m, u64 ticks)
{
	return apic_timer_sim_ticks_to_cycles(ticks,
					      m->machine.tsc_khz * 1000ULL,
					      m->machine.counter_hz);
}

/* Over any distance up to 2^10 times reach, no expiry is lost, early or late. */
static void any_distance_test(struct kunit *test)
{
	const struct machine_named *m;
	struct rnd_state rnd;
	u64 distance, limit;
	unsigned int n, bit;

	prandom_seed_state(&rnd, 13);
	for_each_machine(m) {
		machine_start(test, &m->machine);
		limit = apic_timer_source_sim.max_delta >> 44 ?
			1ULL << 62 : apic_timer_source_sim.max_delta << 10;
		for (bit = 0; bit < 62 && 1ULL << bit <= limit; bit++) {
			for (n = 0; n < 12; n++) {
				prandom_bytes_state(&rnd, &distance,
						    sizeof(distance));
				distance = (1ULL << bit) +
					   (n ? distance % (1ULL << bit) : 0);
				if (apic_timer_sim.now >> 62)
					machine_start(test, &m->machine);
				KUNIT_ASSERT_LE_MSG(test,
						    shoot(test, m, distance),
						    late_max(&m->machine),
						    "%s: %llu cycles", m->name,
						    distance);
			}
		}
		/* at and around each change of divider and the reach */
		for (n = 30; n < 40; n++) {
			distance = 1ULL << n;
			if (m->machine.counter_hz)
				distance = ticks_to_cycles(m, distance);
			shoot(test, m, distance - 1);
			shoot(test, m, distance);
			shoot(test, m, distance + 1);
		}
		if (apic_timer_source_sim.max_delta >> 60)
			continue;
		shoot(test, m, apic_timer_source_sim.max_delta - 1);
		shoot(test, m, apic_timer_source_sim.max_delta);
		shoot(test, m, apic_timer_source_sim.max_delta + 1);
	}
}

/*
 * The farthest expiry takes too many hops to test them all, but each is within
 * reach, goes about as far as it can, and is followed by another.
 */
static void farthest_test(struct kunit *test)
{
	static const u64 distances[] = {
		(1ULL << 63) - 1, 1ULL << 63, (1ULL << 63) + 1,
		U64_MAX - (1ULL << 32),
	};
	const struct apic_timer_sim *sim = &apic_timer_sim;
	struct apic_timer_sim_machine machine;
	const struct machine_named *m;
	unsigned int i, hop;
	u64 left, max_delta, took;

	for_each_machine(m) {
		machine = m->machine;
		machine.tsc = 0;
		for (i = 0; i < ARRAY_SIZE(distances); i++) {
			machine_start(test, &machine);
			max_delta = apic_timer_source_sim.max_delta;
			runs = 0;
			timer.expires = distances[i];
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
			for (hop = 0; hop < 200 && !runs; hop++) {
				left = timer.expires - sim->now;
				if (left < 1ULL << 20)
					break;
				KUNIT_ASSERT_TRUE_MSG(test, sim->active, "%s",
						      m->name);
				KUNIT_ASSERT_GT(test, sim->delta, 0ULL);
				KUNIT_ASSERT_LE(test, sim->delta, max_delta);
				KUNIT_ASSERT_GE(test, sim->delta,
						min(left, max_delta) / 2);
				/* time that the counter takes */
				took = sim->fires - sim->now;
				KUNIT_ASSERT_LE_MSG(test,
						    max(took, sim->delta) -
						    min(took, sim->delta),
						    sim->delta / 1000 +
						    2 * machine_tick(&machine),
						    "%s: %llu, hop %u", m->name,
						    distances[i], hop);
				apic_timer_sim_run(U64_MAX, 1);
			}
			KUNIT_ASSERT_GT(test, hop, 0U);
			if (!runs)
				KUNIT_ASSERT_EQ(test, del_apic_timer(&timer), 1);
		}
	}
}

/* The deadline has passed by the time the hardware is programmed. */
static void due_while_programming_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine;
	const struct machine_named *m;
	u64 distance;

	for_each_machine(m) {
		machine = m->machine;
		machine.cost = 5000;
		machine_start(test, &machine);
		for (distance = 0; distance < 40000; distance += 333)
			KUNIT_ASSERT_LE_MSG(test, shoot(test, m, distance),
					    late_max(&machine), "%s: %llu",
					    m->name, distance);
	}
}

/* The kernel's handler in periodic mode: each call is a tick. */
#define TICK	1000000ULL

static u64 next_tick;

static void periodic_event(u64 now)
{
	kernel_event(now);
	next_tick += TICK;
	apic_timer_sim_kernel(next_tick);
}

/*
 * The hardware has fired for a kernel event, interrupts are off, and the kernel
 * moves that event away: the interrupt does not serve it.
 */
static void stray_after_kernel_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine = machine_plain;
	unsigned long flags;

	machine.kernel_event = kernel_event;
	machine_start(test, &machine);
	set(APIC_TIMER_MUX_KERNEL, apic_timer_sim.now + 1000);
	local_irq_save(flags);
	apic_timer_sim.now += 2000;
	apic_timer_sim_kernel(apic_timer_sim.now + 100000);
	local_irq_restore(flags);
	KUNIT_ASSERT_TRUE(test, apic_timer_sim.requested);

	run_for(50000);
	KUNIT_EXPECT_EQ(test, kernel_events, 0U);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, kernel_events, 1U);
}

/*
 * Interrupts are off: the hardware has fired for a timer that was since deleted,
 * which cannot be known with a clock that may be slow. The hardware is programmed
 * anew, for an exact timer. The first interrupt serves that timer and waits past
 * the programmed moment; a tick becomes due in it as well. The second interrupt
 * finds only the next tick, which is not due.
 */
static void stray_in_interrupt_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine = machine_plain;
	struct apic_timer_list exact;
	unsigned long flags;
	unsigned int n;
	u64 began, lead;

	init_apic_timer(&exact);
	exact.function = ran;
	exact.flags = APIC_TIMER_EXACT;
	machine.counter_hz = 1000ULL * machine.tsc_khz;
	machine.kernel_event = periodic_event;
	machine_start(test, &machine);
	local_irq_save(flags);
	for (n = 0; n < 40000; n++)
		apic_timer_lead_learn(APIC_TIMER_CPU_BUSY, 300);
	local_irq_restore(flags);
	began = apic_timer_sim.now;
	next_tick = began + TICK;
	set(APIC_TIMER_MUX_KERNEL, next_tick);

	for (n = 1; n <= 100; n++) {
		/* In one delta, 1/64 of which is more than all that follows. */
		apic_timer_sim_run(next_tick - 120000, MACHINE_LIMIT);
		lead = per_cpu_ptr(&apic_timer_lead, 0)->exact[0];
		KUNIT_ASSERT_LT(test, lead, 1000ULL);
		timer.expires = next_tick - lead * 3 / 2 - 100;
		KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
		apic_timer_sim_run(timer.expires - 1, MACHINE_LIMIT);

		local_irq_save(flags);
		apic_timer_sim.now += 10;
		KUNIT_ASSERT_EQ(test, del_apic_timer(&timer), 1);
		exact.expires = next_tick + lead / 4;
		KUNIT_ASSERT_EQ(test, add_apic_timer(&exact), 0);
		local_irq_restore(flags);
		KUNIT_ASSERT_TRUE(test, apic_timer_sim.requested);

		apic_timer_sim_run(next_tick + TICK / 64, MACHINE_LIMIT);
		KUNIT_ASSERT_EQ(test, runs, n);
		KUNIT_ASSERT_EQ(test, kernel_events,
				(unsigned int)div_u64(apic_timer_sim.now - began, TICK));
	}
	set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
}

/* The programmed deadline is known, whichever way it was programmed. */
static void leg_is_known_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine = machine_plain;
	const struct apic_timer_mux *mux = machine_mux();
	unsigned int n;
	u64 now;

	for (n = 0; n < 2; n++) {
		machine.counter_hz = n ? 1000ULL * machine.tsc_khz : 0;
		machine_start(test, &machine);
		set(APIC_TIMER_MUX_TIMERS, apic_timer_sim.now + 1000);
		run_for(5000);
		set(APIC_TIMER_MUX_TIMERS, APIC_TIMER_NEVER);
		KUNIT_EXPECT_LE(test, mux->delta, 1000ULL);

		now = apic_timer_sim.now;
		set(APIC_TIMER_MUX_KERNEL, now + 64000000);
		/* Our expiry is later: the hardware is not programmed. */
		set(APIC_TIMER_MUX_TIMERS, now + 128000000);
		KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, 2UL);
		KUNIT_EXPECT_EQ(test, mux->delta, 64000000ULL);
		/* The maximum delay by a clock other than the TSC. */
		KUNIT_EXPECT_EQ(test, mux->fires, now + 64000000 +
				n * (64000000 >> APIC_TIMER_MUX_DRIFT_SHIFT));
		KUNIT_EXPECT_TRUE(test, mux->tick_stopped);
		set(APIC_TIMER_MUX_TIMERS, APIC_TIMER_NEVER);
		set(APIC_TIMER_MUX_KERNEL, APIC_TIMER_NEVER);
	}
}

static void exact_at(struct kunit *test, u64 tsc)
{
	timer.flags = APIC_TIMER_EXACT;
	timer.expires = tsc;
	KUNIT_ASSERT_EQ(test, mod_apic_timer(&timer, tsc), 0);
}

/* An event that the kernel moves away, or that is served in time, was not deferred. */
static void not_deferred_test(struct kunit *test)
{
	struct apic_timer_sim_machine machine = machine_plain;
	u64 deferred = machine_stat(DEFERRED), now;

	machine.kernel_event = kernel_event;
	machine_start(test, &machine);
	now = apic_timer_sim.now;

	/* The event would be served after our expiry, and is moved far behind it. */
	exact_at(test, now + 100000);
	set(APIC_TIMER_MUX_KERNEL, now + 94000);
	set(APIC_TIMER_MUX_KERNEL, now + 1000000);
	run_for(2000000);
	KUNIT_ASSERT_EQ(test, runs, 1U);
	KUNIT_ASSERT_EQ(test, kernel_events, 1U);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);

	/* The event would be served after our expiry, which is moved forward. */
	now = apic_timer_sim.now;
	exact_at(test, now + 100000);
	set(APIC_TIMER_MUX_KERNEL, now + 94000);
	KUNIT_ASSERT_EQ(test, mod_apic_timer(&timer, now + 50000), 1);
	run_for(1000000);
	KUNIT_ASSERT_EQ(test, runs, 2U);
	KUNIT_ASSERT_EQ(test, kernel_events, 2U);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);

	/* Our timer is deleted, and the kernel sets another event. */
	now = apic_timer_sim.now;
	exact_at(test, now + 100000);
	set(APIC_TIMER_MUX_KERNEL, now + 94000);
	KUNIT_ASSERT_EQ(test, del_apic_timer(&timer), 1);
	set(APIC_TIMER_MUX_KERNEL, now + 500000);
	run_for(1000000);
	KUNIT_ASSERT_EQ(test, kernel_events, 3U);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);

	/* The event is served after our expiry. */
	now = apic_timer_sim.now;
	exact_at(test, now + 100000);
	set(APIC_TIMER_MUX_KERNEL, now + 94000);
	run_for(1000000);
	KUNIT_ASSERT_EQ(test, runs, 3U);
	KUNIT_ASSERT_EQ(test, kernel_events, 4U);
	KUNIT_EXPECT_GT(test, kernel_at, now + 100000);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred + 1);
}

static unsigned int looked;

static bool is_alive(bool fired)
{
	looked++;
	return true;
}

/* Arm a timer. Return: how often the watchdog looked at the hardware. */
static unsigned int looks(struct kunit *test, u64 ahead)
{
	unsigned long programmed = apic_timer_sim.programmed;

	looked = 0;
	timer.expires = apic_timer_sim.now + ahead;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.programmed, programmed + 1);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	/* The hardware fires for it nevertheless. */
	run_for(2 * ahead);
	return looked;
}

/* While the hardware is about to fire, a check would delay its interrupt. */
static void watchdog_waits_test(struct kunit *test)
{
	struct apic_timer_source source = apic_timer_source_sim;
	u64 period = 100 * NSEC_PER_MSEC;

	source.alive = is_alive;
	apic_timer_source = &source;
	apic_timer_watchdog_online();
	run_for(period);
	KUNIT_EXPECT_EQ(test, looks(test, 5000), 0U);
	KUNIT_EXPECT_GT(test, looks(test, NSEC_PER_MSEC), 0U);
	KUNIT_EXPECT_EQ(test, looks(test, NSEC_PER_MSEC), 0U);

	/* But not for longer than another period. */
	run_for(period);
	KUNIT_EXPECT_EQ(test, looks(test, 5000), 0U);
	run_for(period - NSEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, looks(test, 5000), 0U);
	KUNIT_EXPECT_EQ(test, looks(test, NSEC_PER_MSEC), 0U);

	apic_timer_watchdog_offline();
	apic_timer_source = &apic_timer_source_sim;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(leg_test),
	KUNIT_CASE(delta_converges_test),
	KUNIT_CASE(earliest_test),
	KUNIT_CASE(none_test),
	KUNIT_CASE(kernel_beside_ours_test),
	KUNIT_CASE(held_in_interrupt_test),
	KUNIT_CASE(rearm_test),
	KUNIT_CASE(far_shots_test),
	KUNIT_CASE(kernel_needs_no_hops_test),
	KUNIT_CASE(ours_after_kernel_test),
	KUNIT_CASE(any_distance_test),
	KUNIT_CASE(farthest_test),
	KUNIT_CASE(due_while_programming_test),
	KUNIT_CASE(stray_after_kernel_test),
	KUNIT_CASE(stray_in_interrupt_test),
	KUNIT_CASE(leg_is_known_test),
	KUNIT_CASE(not_deferred_test),
	KUNIT_CASE(watchdog_waits_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_mux",
	.init = shot_test_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
