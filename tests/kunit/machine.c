// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated machines that the suites run on.
 */
#include "machine.h"
#include "mux/watchdog.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "timers/calibrate.h"
#include "timers/drain.h"

#define GHZ	1000000000ULL

const struct apic_timer_sim_machine machine_plain = {
	.tsc_khz = 1000000,
	.cost = 1,
	.latency = 100,
	.tsc = 1000 * GHZ,
};

const struct machine_named machines[] = {
	{ "TSC deadline, 2.9 GHz", {
		.tsc_khz = 2900000, .cost = 20, .latency = 700, .tsc = 5 * GHZ,
	} },
	{ "TSC deadline that reaches 2^32", {
		.tsc_khz = 2100000, .cost = 20, .latency = 700, .tsc = 5 * GHZ,
		.max_delta = 1ULL << 32,
	} },
	{ "1:1", {
		.tsc_khz = 1000000, .counter_hz = GHZ, .cost = 20,
		.latency = 1000, .tsc = 77 * GHZ,
	} },
	{ "24 MHz, 3.1 GHz", {
		.tsc_khz = 3100000, .counter_hz = 24000000, .cost = 30,
		.latency = 2000, .tsc = 123456789,
	} },
	{ "24 MHz, 3.1 GHz, 100 ppm slower than believed", {
		.tsc_khz = 3100000, .counter_hz = 23997600,
		.believed_hz = 24000000, .cost = 30, .latency = 2000,
	} },
	{ "24 MHz, 3.1 GHz, 100 ppm faster than believed", {
		.tsc_khz = 3100000, .counter_hz = 24002400,
		.believed_hz = 24000000, .cost = 30, .latency = 2000,
	} },
	{ "133.33 MHz, 700 MHz", {
		.tsc_khz = 700000, .counter_hz = 133333333, .cost = 40,
		.latency = 300, .tsc = 1,
	} },
	{ "133.33 MHz, 700 MHz, 100 ppm faster than believed", {
		.tsc_khz = 700000, .counter_hz = 133346666,
		.believed_hz = 133333333, .cost = 40, .latency = 300,
	} },
	{ "bus faster than the TSC, 100 ppm slower than believed", {
		.tsc_khz = 300001, .counter_hz = 999900000,
		.believed_hz = GHZ, .cost = 10, .latency = 50,
	} },
	{ "slow counter, 100 ppm faster than believed", {
		.tsc_khz = 4294967, .counter_hz = 1200120,
		.believed_hz = 1200000, .cost = 30, .latency = 900,
	} },
};

const unsigned int machines_count = ARRAY_SIZE(machines);

/**
 * machine_tick() - return the length of the counter's tick
 * @machine:	the machine
 *
 * Return: TSC cycles, rounded up.
 */
u64 machine_tick(const struct apic_timer_sim_machine *machine)
{
	if (!machine->counter_hz)
		return 1;
	return apic_timer_sim_ticks_to_cycles(1, machine->tsc_khz * 1000ULL,
					      machine->counter_hz);
}

/**
 * machine_start() - simulate a machine on which no timer is pending
 * @test:	the running case, aborted if a timer is pending
 * @machine:	the machine
 */
void machine_start(struct kunit *test,
		   const struct apic_timer_sim_machine *machine)
{
	struct apic_timer_base *base = machine_base();

	KUNIT_ASSERT_EQ(test, base->queue.count, 0UL);
	KUNIT_ASSERT_EQ(test, apic_timer_sim_start(machine), 0);

	/* The suites of the accuracy modes choose others. */
	apic_timer_mode_default = APIC_TIMER_RAW;
	apic_timer_lead_quantile = 9999;

	/* Limits in cycles depend on the TSC frequency. */
	apic_timer_base_init();
	apic_timer_lead_init();
	base->not_before = 0;
	apic_timer_throttle_reset(&base->throttle, 0);
	apic_timer_throttle_forgive(&base->debt);

	apic_timer_mux_reset();
	/* The watchdog's work takes time of the simulated CPU. */
	apic_timer_watchdog_offline();
	apic_timer_calibrate();
}

/**
 * machine_init() - init function of suites: machine_plain
 * @test:	the case
 *
 * Return: 0.
 */
int machine_init(struct kunit *test)
{
	machine_start(test, &machine_plain);
	return 0;
}

/**
 * machine_exit() - exit function of suites: check that no timer is left
 * @test:	the case
 */
void machine_exit(struct kunit *test)
{
	struct apic_timer_base *base = machine_base();

	KUNIT_EXPECT_EQ(test, base->queue.count, 0UL);
	KUNIT_EXPECT_PTR_EQ(test, base->running, NULL);
	KUNIT_EXPECT_FALSE(test, base->expiring);
	KUNIT_EXPECT_TRUE(test, base->online);

	base->online = true;
	apic_timer_drain_all();
	apic_timer_sim.active = false;
}
