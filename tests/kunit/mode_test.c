// SPDX-License-Identifier: GPL-2.0
/*
 * The accuracy modes: how early each arms, and when its handlers start.
 */
#include <kunit/test.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "machine.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "timers/calibrate.h"
#include "timers/dispatch.h"

#define BUDGET		5000		/* the module's, on machine_plain */
#define HOLD		20000
#define LATE		1000
#define MEAN_MAX_NS	100000LL
#define TICK		((u64)TICK_NSEC)

static struct apic_timer_list timers[3];
static struct rnd_state rnd;

/* For each timer: number of runs, and last and extreme errors. */
static struct {
	unsigned int runs, order;
	s64 error, least, most;
	u64 told;
} records[3];

static unsigned int order;

static void ran(unsigned long long now, unsigned long data)
{
	s64 error = apic_timer_now() - timers[data].expires;

	records[data].runs++;
	records[data].order = order++;
	records[data].error = error;
	records[data].told = now;
	records[data].least = min(records[data].least, error);
	records[data].most = max(records[data].most, error);
}

static void forget(void)
{
	unsigned int i;

	memset(records, 0, sizeof(records));
	for (i = 0; i < ARRAY_SIZE(records); i++) {
		records[i].least = S64_MAX;
		records[i].most = S64_MIN;
	}
	order = 0;
}

static int mode_test_init(struct kunit *test)
{
	unsigned int i;

	prandom_seed_state(&rnd, 42);
	forget();
	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		init_apic_timer(&timers[i]);
		timers[i].function = ran;
		timers[i].data = i;
		timers[i].flags = APIC_TIMER_EXACT;
	}
	return machine_init(test);
}

static u32 below(u32 limit)
{
	return mul_u64_u32_shr(limit, prandom_u32_state(&rnd), 32);
}

static void add(struct kunit *test, unsigned int i, u64 distance)
{
	timers[i].expires = apic_timer_sim.now + distance;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
}

static void run_for(u64 cycles)
{
	apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

/* Arm timer 0 @n times, each time after it has run. */
static void shots(struct kunit *test, unsigned int n)
{
	while (n--) {
		add(test, 0, 10000 + below(100000));
		run_for(200000);
	}
}

static const struct apic_timer_lead *lead(void)
{
	return per_cpu_ptr(&apic_timer_lead, 0);
}

static void kernel_at(u64 tsc)
{
	unsigned long flags;

	local_irq_save(flags);
	apic_timer_sim_kernel(tsc);
	local_irq_restore(flags);
}

/* In mode raw the hardware is programmed for the expiry, and the handler is late by the latency. */
static void raw_test(struct kunit *test)
{
	timers[0].flags = APIC_TIMER_RAW;
	shots(test, 100);
	KUNIT_EXPECT_EQ(test, records[0].runs, 100U);
	KUNIT_EXPECT_GE(test, records[0].least, (s64)machine_plain.latency);
	KUNIT_EXPECT_LE(test, records[0].most, (s64)machine_plain.latency + 20);
}

/* Mode mean subtracts the mean latency: within 100 expiries the errors centre on 0. */
static void mean_test(struct kunit *test)
{
	unsigned int step;

	timers[0].flags = APIC_TIMER_MEAN;
	for (step = 0; step < 3; step++) {
		apic_timer_sim.machine.latency = 300 << step;
		shots(test, 100);
		forget();
		shots(test, 100);
		KUNIT_EXPECT_GE(test, records[0].least, -2LL);
		KUNIT_EXPECT_LE(test, records[0].most, 2LL);
	}
}

static struct {
	struct apic_timer_period period;
	u64 runs, missed, early;
} periodic;

/* As in the documentation of apic_timer_forward_period(). */
static void run_again(unsigned long long now, unsigned long data)
{
	struct apic_timer_list *timer = (struct apic_timer_list *)data;

	periodic.runs++;
	periodic.early += now < timer->expires;
	apic_timer_sim.machine.latency = 300 + below(600);
	now = max(now, timer->expires);
	periodic.missed += apic_timer_forward_period(timer, &periodic.period, now) - 1;
	add_apic_timer(timer);
}

/* A handler that starts too early half of the time still runs once for each moment. */
static void mean_periodic_test(struct kunit *test)
{
	struct apic_timer_list *timer = &timers[0];

	memset(&periodic, 0, sizeof(periodic));
	periodic.period.start = apic_timer_sim.now + 10000;
	periodic.period.period_ns = 10000;
	timer->function = run_again;
	timer->data = (unsigned long)timer;
	timer->flags = APIC_TIMER_MEAN;
	timer->expires = periodic.period.start;
	KUNIT_ASSERT_EQ(test, add_apic_timer(timer), 0);
	run_for(10000 * 1000 + 5000);
	KUNIT_EXPECT_EQ(test, periodic.runs, 1000ULL);
	KUNIT_EXPECT_EQ(test, periodic.period.n, 1000ULL);
	KUNIT_EXPECT_EQ(test, periodic.missed, 0ULL);
	KUNIT_EXPECT_GT(test, periodic.early, 250ULL);
	KUNIT_EXPECT_EQ(test, del_apic_timer(timer), 1);
}

/*
 * If the CPU is taken away for a millisecond each time, as an overloaded host
 * does to a guest, the mean is a millisecond. When that ends, the first expiry
 * is early, but only by a limited amount.
 */
static void mean_capped_test(struct kunit *test)
{
	static const u64 rates[] = { 1000000, 4500000 };
	struct apic_timer_sim_machine machine = machine_plain;
	unsigned int i, n;
	s64 most;

	timers[0].flags = APIC_TIMER_MEAN;
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		machine.tsc_khz = rates[i];
		machine_start(test, &machine);
		most = MEAN_MAX_NS * rates[i] / 1000000;
		apic_timer_sim.machine.latency = rates[i];
		for (n = 0; n < 100; n++) {
			add(test, 0, 4 * rates[i]);
			run_for(8 * rates[i]);
		}
		apic_timer_sim.machine.latency = 0;
		forget();
		add(test, 0, 4 * rates[i]);
		run_for(8 * rates[i]);
		KUNIT_EXPECT_EQ(test, records[0].runs, 1U);
		KUNIT_EXPECT_GE(test, records[0].error, -most);
		/* The latency of a deep idle state is still compensated for. */
		KUNIT_EXPECT_LE(test, records[0].error, -most / 2);
	}
}

/* From the first expiry on, handlers are in time, as far as the budget allows. */
static void exact_test(struct kunit *test)
{
	static const u64 latencies[] = { 0, 100, 2000, 4500, 500, 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(latencies); i++) {
		apic_timer_sim.machine.latency = latencies[i];
		shots(test, 50);
		forget();
		shots(test, 500);
		KUNIT_EXPECT_GE(test, records[0].least, 0LL);
		KUNIT_EXPECT_LE(test, records[0].most, 2LL);
	}
}

/* The handler gets the TSC at its start. */
static void told_test(struct kunit *test)
{
	unsigned int mode;

	for (mode = APIC_TIMER_RAW; mode <= APIC_TIMER_EXACT; mode++) {
		timers[0].flags = mode;
		shots(test, 1);
		KUNIT_EXPECT_EQ(test, (s64)(records[0].told - timers[0].expires),
				records[0].error);
	}
}

/*
 * With all kinds of latencies, near and far, with short and long budgets, and
 * with several timers at once, an exact one never starts early and never spins
 * longer than its budget. It is late by no more than its latency exceeds its
 * budget.
 */
static void exact_never_early_test(struct kunit *test)
{
	unsigned int machine, i, n;
	u64 spun, ran_before;

	for (machine = 0; machine < machines_count; machine++) {
		machine_start(test, &machines[machine].machine);
		forget();
		for (n = 0; n < 20000; n++) {
			if (!below(20))
				apic_timer_sim.machine.latency =
					below(1 << below(16));
			spun = machine_stat(SPIN_CYCLES);
			ran_before = machine_stat(EXPIRED);
			for (i = 0; i <= below(ARRAY_SIZE(timers)); i++) {
				timers[i].spin_budget =
					below(2) ? 0 : 1 + below(20000);
				if (!apic_timer_pending(&timers[i]))
					add(test, i, below(1 << below(24)));
			}
			run_for(below(1 << below(24)));
			/* 20 us, or the module's 5, at the fastest TSC here. */
			KUNIT_ASSERT_LE(test, machine_stat(SPIN_CYCLES) - spun,
					(machine_stat(EXPIRED) - ran_before) *
					25000);
		}
		run_for(1ULL << 40);
		for (i = 0; i < ARRAY_SIZE(timers); i++) {
			KUNIT_EXPECT_FALSE(test,
					   apic_timer_pending(&timers[i]));
			KUNIT_EXPECT_GT(test, records[i].runs, 100U);
			KUNIT_EXPECT_GE_MSG(test, records[i].least, 0LL, "%s",
					    machines[machine].name);
		}
	}
}

/* The hardware is programmed no earlier than the budget allows. */
static void budget_test(struct kunit *test)
{
	static const unsigned int budgets[] = { 1, 100, 1000, 4000 };
	unsigned int i;

	apic_timer_sim.machine.latency = 8000;
	shots(test, 50);
	forget();
	shots(test, 100);
	KUNIT_EXPECT_GE(test, records[0].least, 8000LL - BUDGET);
	KUNIT_EXPECT_LE(test, records[0].most, 8000LL - BUDGET + 20);

	for (i = 0; i < ARRAY_SIZE(budgets); i++) {
		timers[0].spin_budget = budgets[i];
		add(test, 0, 50000);
		KUNIT_EXPECT_EQ(test, apic_timer_sim.fires,
				timers[0].expires - budgets[i]);
		run_for(100000);
	}

	/* With a larger budget than the module's, it is in time again. */
	timers[0].spin_budget = 10000;
	forget();
	shots(test, 100);
	KUNIT_EXPECT_LE(test, records[0].most, 2LL);
}

/* Expiries closer together than a dispatch takes run in order; each delay counts for itself. */
static void close_test(struct kunit *test)
{
	unsigned int i, n;
	u64 before;

	apic_timer_sim.machine.latency = 700;
	apic_timer_sim.machine.cost = 20;
	shots(test, 2000);
	before = lead()->exact[0];
	for (n = 0; n < 2000; n++) {
		forget();
		/* Add them in another order than they expire. */
		for (i = ARRAY_SIZE(timers); i--;)
			timers[i].expires = apic_timer_sim.now + 20000 + 3 * i;
		for (i = ARRAY_SIZE(timers); i--;)
			KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
		run_for(50000);
		for (i = 0; i < ARRAY_SIZE(timers); i++) {
			KUNIT_ASSERT_EQ(test, records[i].runs, 1U);
			KUNIT_ASSERT_EQ(test, records[i].order, i);
			KUNIT_ASSERT_GE(test, records[i].error, 0LL);
			if (i)
				KUNIT_ASSERT_GT(test, records[i].error,
						records[i - 1].error);
		}
	}
	/* The wait for an earlier handler is not learnt as latency. */
	KUNIT_EXPECT_LE(test, lead()->exact[0], before + 50);
}

/* The interrupt waits for an expiry that is nearer than leaving and entering it takes. */
static void near_test(struct kunit *test)
{
	u64 interrupts;

	apic_timer_sim.machine.latency = 1000;
	shots(test, 3000);
	interrupts = machine_stat(INTERRUPTS);
	add(test, 0, 30000);
	add(test, 1, 31500);
	forget();
	run_for(100000);
	KUNIT_EXPECT_EQ(test, machine_stat(INTERRUPTS) - interrupts, 1ULL);
	KUNIT_EXPECT_LE(test, records[0].error, 2LL);
	KUNIT_EXPECT_LE(test, records[1].error, 2LL);
	KUNIT_EXPECT_GE(test, records[1].error, 0LL);
}

/* The handler of a late expiry runs, or is skipped and counted, as the flag says. */
static void late_test(struct kunit *test)
{
	u64 late = machine_stat(EXPIRED_LATE), skipped = machine_stat(SKIPPED);

	apic_timer_sim.machine.latency = BUDGET + LATE + 500;
	shots(test, 1);
	KUNIT_EXPECT_EQ(test, records[0].runs, 1U);
	KUNIT_EXPECT_EQ(test, machine_stat(EXPIRED_LATE) - late, 1ULL);

	timers[0].flags |= APIC_TIMER_SKIP_LATE;
	shots(test, 1);
	KUNIT_EXPECT_EQ(test, records[0].runs, 1U);
	KUNIT_EXPECT_EQ(test, machine_stat(EXPIRED_LATE) - late, 2ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(SKIPPED) - skipped, 1ULL);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&timers[0]));
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 0);

	/* The next expiry in time runs its handler again. */
	apic_timer_sim.machine.latency = 100;
	shots(test, 1);
	KUNIT_EXPECT_EQ(test, records[0].runs, 2U);
	KUNIT_EXPECT_EQ(test, machine_stat(SKIPPED) - skipped, 1ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(EXPIRED_LATE) - late, 2ULL);

	/* An SMI delays one that is ready in time. It is too late to skip that. */
	shots(test, 10);
	KUNIT_EXPECT_EQ(test, machine_stat(EXPIRED_LATE) - late, 2ULL);
	apic_timer_sim.smi = LATE + 500;
	shots(test, 1);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.smi, 0ULL);
	KUNIT_EXPECT_EQ(test, records[0].runs, 13U);
	KUNIT_EXPECT_EQ(test, machine_stat(EXPIRED_LATE) - late, 3ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(SKIPPED) - skipped, 1ULL);
}

#define KERNEL_COST	4000

static unsigned int kernel_events;
static u64 kernel_ran;

static void kernel_event(u64 now)
{
	kernel_events++;
	kernel_ran = now;
	/* The kernel's handler takes some time. */
	apic_timer_sim.now += KERNEL_COST;
}

static void kernel_start(void)
{
	kernel_events = 0;
	apic_timer_sim.machine.kernel_event = kernel_event;
}

/* A kernel event just before an exact expiry is deferred until after it. */
static void hold_test(struct kunit *test)
{
	static const u64 before[] = { 1, 100, 1000, 3000 };
	u64 deferred = machine_stat(DEFERRED);
	unsigned int i;

	shots(test, 2000);
	kernel_start();
	for (i = 0; i < ARRAY_SIZE(before); i++) {
		u64 from;

		add(test, 0, 100000);
		from = timers[0].expires - lead()->exact[0];
		kernel_at(from - before[i]);
		run_for(200000);
		KUNIT_EXPECT_EQ(test, kernel_events, i + 1);
		KUNIT_EXPECT_LE(test, records[0].error, 2LL);
		KUNIT_EXPECT_GE(test, kernel_ran, timers[0].expires);
		KUNIT_EXPECT_LE(test, kernel_ran,
				from - before[i] + HOLD + lead()->exact[0]);
		KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED) - deferred, i + 1ULL);
	}
}

/* Other modes do that with a flag; without it, the kernel event makes them late. */
static void undisturbed_test(struct kunit *test)
{
	static const unsigned int modes[] = { APIC_TIMER_RAW, APIC_TIMER_MEAN };
	unsigned int i, undisturbed;
	u64 deferred;

	for (i = 0; i < ARRAY_SIZE(modes) * 2; i++) {
		undisturbed = i % 2;
		timers[0].flags = modes[i / 2];
		shots(test, 200);
		kernel_start();
		deferred = machine_stat(DEFERRED);
		timers[0].flags |= undisturbed ? APIC_TIMER_UNDISTURBED : 0;
		forget();
		add(test, 0, 100000);
		kernel_at(timers[0].expires - 1000);
		run_for(200000);
		KUNIT_EXPECT_EQ(test, kernel_events, 1U);
		KUNIT_EXPECT_EQ(test, records[0].runs, 1U);
		KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED) - deferred, (u64)undisturbed);
		KUNIT_EXPECT_EQ(test, kernel_ran > timers[0].expires, (bool)undisturbed);
		if (undisturbed)
			KUNIT_EXPECT_LE(test, records[0].most, (s64)machine_plain.latency + 20);
		else
			KUNIT_EXPECT_GE(test, records[0].most, KERNEL_COST - 1000LL);
	}
}

static unsigned int learnt_from(void)
{
	return lead()->latency[APIC_TIMER_CPU_BUSY].averaged +
	       lead()->latency[APIC_TIMER_CPU_IDLE].averaged +
	       lead()->latency[APIC_TIMER_CPU_TICK_STOPPED].averaged;
}

/* With the flag, the handler learns for itself, so the CPU does not learn from each expiry. */
static void undisturbed_learns_less_test(struct kunit *test)
{
	timers[0].flags = APIC_TIMER_RAW | APIC_TIMER_UNDISTURBED;
	shots(test, 1000);
	KUNIT_EXPECT_GE(test, lead()->latency[APIC_TIMER_CPU_BUSY].seen +
			      lead()->latency[APIC_TIMER_CPU_IDLE].seen +
			      lead()->latency[APIC_TIMER_CPU_TICK_STOPPED].seen,
			APIC_TIMER_ESTIMATE_FIRST);
	KUNIT_EXPECT_LE(test, learnt_from(), 1000U / 16 + 1);
}

/*
 * Mode exact, also as the default, always has the flag's effects. It also learns if it is late and
 * does not spin.
 */
static void exact_learns_from_all_test(struct kunit *test)
{
	timers[0].flags = APIC_TIMER_EXACT | APIC_TIMER_UNDISTURBED;
	timers[0].spin_budget = 1;
	shots(test, 40);
	KUNIT_EXPECT_GE(test, learnt_from(), 38U);
	timers[0].flags = APIC_TIMER_UNDISTURBED;
	apic_timer_mode_default = APIC_TIMER_EXACT;
	shots(test, 40);
	/* The last 64 are counted. */
	KUNIT_EXPECT_EQ(test, learnt_from(), 64U);
}

/* How long before the expiry an event must come in order not to be deferred is learnt. */
static void hold_learnt_test(struct kunit *test)
{
	unsigned int i;
	u64 deferred, from;

	kernel_start();
	for (i = 0; i < 2000; i++) {
		add(test, 0, 100000);
		kernel_at(apic_timer_sim.now + 20000);
		run_for(200000);
	}
	KUNIT_EXPECT_EQ(test, kernel_events, i);
	KUNIT_EXPECT_GE(test, lead()->defer, lead()->exact[0] + KERNEL_COST);
	KUNIT_EXPECT_LE(test, lead()->defer,
			lead()->exact[0] + KERNEL_COST * 21 / 20);

	deferred = machine_stat(DEFERRED);
	add(test, 0, 100000);
	from = timers[0].expires - lead()->exact[0];
	kernel_at(from - lead()->defer);
	run_for(200000);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);
	KUNIT_EXPECT_LT(test, kernel_ran, from);
	KUNIT_EXPECT_LE(test, records[0].error, 2LL);

	add(test, 0, 100000);
	from = timers[0].expires - lead()->exact[0];
	kernel_at(from - lead()->defer + 1);
	run_for(200000);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred + 1);
	KUNIT_EXPECT_LE(test, records[0].error, 2LL);
}

/* An event farther away is not deferred, and neither is one for modes that promise less. */
static void no_hold_test(struct kunit *test)
{
	u64 deferred = machine_stat(DEFERRED), event;
	unsigned int mode;

	kernel_start();
	for (mode = APIC_TIMER_RAW; mode <= APIC_TIMER_EXACT; mode++) {
		timers[0].flags = mode;
		add(test, 0, 100000);
		event = timers[0].expires -
			(mode == APIC_TIMER_EXACT ? HOLD + BUDGET : 100);
		kernel_at(event);
		run_for(200000);
		KUNIT_EXPECT_EQ(test, kernel_events, mode);
		KUNIT_EXPECT_LE(test, kernel_ran, event + 300);
	}
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);
}

static u64 chain_period;

static void chain(unsigned long long now, unsigned long data)
{
	ran(now, data);
	timers[data].expires += chain_period;
	add_apic_timer(&timers[data]);
}

/* Start a chain of exact expiries on timer 0. */
static void start_chain(struct kunit *test, u64 period)
{
	chain_period = period;
	timers[0].function = chain;
	add(test, 0, period);
	run_for(100000);
}

/* In a chain of exact expiries, a kernel event is deferred for only one of them. */
static void hold_bounded_test(struct kunit *test)
{
	unsigned int i;
	u64 event;

	kernel_start();
	start_chain(test, 10000);
	for (i = 0; i < 100; i++) {
		event = apic_timer_sim.now + 30000 + below(10000);
		kernel_at(event);
		run_for(100000);
		KUNIT_ASSERT_EQ(test, kernel_events, i + 1);
		KUNIT_EXPECT_LE(test, kernel_ran, event + HOLD + BUDGET);
	}
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
}

#define NEAR	6000

/*
 * The same while a task keeps restarting an overdue kernel timer, for which the kernel
 * programs its event anew each time, for a moment ahead.
 */
static void hold_overdue_test(struct kunit *test)
{
	unsigned int i;
	u64 event;

	kernel_start();
	start_chain(test, NEAR);
	for (i = 0; i < 100; i++) {
		event = apic_timer_sim.now + NEAR + below(NEAR);
		kernel_at(event);
		while (kernel_events == i && apic_timer_sim.now < event + 5 * HOLD) {
			run_for(700);
			if (kernel_events == i && apic_timer_sim.now > event)
				kernel_at(apic_timer_sim.now + 30);
		}
		KUNIT_ASSERT_EQ(test, kernel_events, i + 1);
		KUNIT_EXPECT_LE(test, kernel_ran, event + HOLD + BUDGET);
		run_for(30000);
	}
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
}

/*
 * The kernel cancels an overdue event and sets another one, which has a limit of its own.
 */
static void hold_another_test(struct kunit *test)
{
	u64 deferred = machine_stat(DEFERRED);

	shots(test, 2000);
	kernel_start();
	add(test, 0, 100000);
	kernel_at(timers[0].expires - lead()->exact[0] - 1000);
	apic_timer_sim_run(timers[0].expires - lead()->exact[0] - 500, MACHINE_LIMIT);
	add(test, 1, 500000);
	kernel_at(timers[1].expires - lead()->exact[0] - 1000);
	run_for(600000);
	KUNIT_EXPECT_EQ(test, kernel_events, 1U);
	KUNIT_EXPECT_GE(test, kernel_ran, timers[1].expires);
	KUNIT_EXPECT_LE(test, records[1].error, 2LL);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred + 1);
}

/* Make timer 0 pending, and have a kernel event deferred that was due just before it. */
static void defer_event(struct kunit *test)
{
	add(test, 0, 100000);
	kernel_at(timers[0].expires - lead()->exact[0] - 1000);
	apic_timer_sim_run(timers[0].expires - lead()->exact[0] - 500, MACHINE_LIMIT);
	KUNIT_ASSERT_EQ(test, kernel_events, 0U);
}

/* The same for an event that is due soon after, with and without a later timer. */
static void hold_another_soon_test(struct kunit *test)
{
	unsigned int behind;
	u64 deferred, event;

	shots(test, 2000);
	for (behind = 0; behind < 2; behind++) {
		kernel_start();
		deferred = machine_stat(DEFERRED);
		defer_event(test);
		event = apic_timer_sim.now + 50000;
		kernel_at(event);
		if (behind)
			add(test, 1, 50000 + lead()->exact[0] + 1000);
		run_for(200000);
		KUNIT_EXPECT_EQ(test, kernel_events, 1U);
		KUNIT_EXPECT_GE(test, kernel_ran, behind ? timers[1].expires : event);
		KUNIT_EXPECT_LE(test, records[1].error, 2LL);
		KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred + behind);
	}
}

/*
 * The same if the timer is gone, and a call from another CPU finds the queue empty: then
 * the kernel alone uses the hardware.
 */
static void hold_forgotten_test(struct kunit *test)
{
	u64 deferred = machine_stat(DEFERRED);
	unsigned long flags;

	shots(test, 2000);
	kernel_start();
	defer_event(test);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	local_irq_save(flags);
	machine_base()->kick.func(NULL);
	local_irq_restore(flags);
	kernel_at(apic_timer_sim.now + 50000);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, kernel_events, 1U);

	add(test, 0, 500000);
	kernel_at(apic_timer_sim.now + 1000);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, kernel_events, 2U);
	KUNIT_EXPECT_EQ(test, machine_stat(DEFERRED), deferred);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
}

/* When the timer that a kernel event was deferred for is deleted, the event is served. */
static void hold_deleted_test(struct kunit *test)
{
	u64 event;

	kernel_start();
	add(test, 0, 100000);
	event = timers[0].expires - BUDGET - 3000;
	kernel_at(event);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	run_for(200000);
	KUNIT_EXPECT_EQ(test, kernel_events, 1U);
	KUNIT_EXPECT_LE(test, kernel_ran, event + HOLD);
}

/* An idle CPU without tick takes longer, so its hardware is programmed earlier. */
static void stopped_test(struct kunit *test)
{
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	for (i = 0; i < 40000; i++) {
		apic_timer_lead_learn(APIC_TIMER_CPU_BUSY, 300);
		apic_timer_lead_learn(APIC_TIMER_CPU_IDLE, 450);
		apic_timer_lead_learn(APIC_TIMER_CPU_TICK_STOPPED, 1000);
	}
	local_irq_restore(flags);
	KUNIT_EXPECT_GE(test, lead()->exact[0], 450ULL);
	KUNIT_EXPECT_LE(test, lead()->exact[0], 520ULL);
	KUNIT_EXPECT_GE(test, lead()->exact[1], 1000ULL);
	KUNIT_EXPECT_LE(test, lead()->exact[1], 1100ULL);
	KUNIT_EXPECT_GE(test, lead()->mean[APIC_TIMER_CPU_BUSY], 300ULL);
	KUNIT_EXPECT_LE(test, lead()->mean[APIC_TIMER_CPU_BUSY], 310ULL);
	KUNIT_EXPECT_GE(test, lead()->mean[APIC_TIMER_CPU_TICK_STOPPED], 1000ULL);

	kernel_at(apic_timer_sim.now + TICK / 2);
	add(test, 0, TICK / 4);
	KUNIT_EXPECT_EQ(test, timers[0].expires - apic_timer_sim.fires,
			lead()->exact[0]);
	/* The kernel stops its tick: the hardware is programmed anew. */
	kernel_at(apic_timer_sim.now + 10 * TICK);
	KUNIT_EXPECT_EQ(test, timers[0].expires - apic_timer_sim.fires,
			lead()->exact[1]);
	/* And back. */
	kernel_at(apic_timer_sim.now + TICK / 2);
	KUNIT_EXPECT_EQ(test, timers[0].expires - apic_timer_sim.fires,
			lead()->exact[0]);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	kernel_at(APIC_TIMER_NEVER);
}

/* A source that does not serve the kernel's events knows nothing of its tick. */
static void unshared_test(struct kunit *test)
{
	unsigned long flags;
	unsigned int i;

	apic_timer_source_sim.shared = false;
	machine_start(test, &machine_plain);
	local_irq_save(flags);
	for (i = 0; i < 40000; i++) {
		apic_timer_lead_learn(APIC_TIMER_CPU_BUSY, 300);
		apic_timer_lead_learn(APIC_TIMER_CPU_TICK_STOPPED, 1000);
	}
	local_irq_restore(flags);
	add(test, 0, TICK / 4);
	KUNIT_EXPECT_EQ(test, timers[0].expires - apic_timer_sim.fires, lead()->exact[0]);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 1);
	apic_timer_source_sim.shared = true;
	machine_start(test, &machine_plain);
}

/* In any mixture of busy and idle expiries, both are covered. */
static void alternating_test(struct kunit *test)
{
	static const u64 latency[] = { 300, 460, 1000 };
	unsigned int part, i, late, n;
	unsigned long flags;

	for (part = 1; part <= 1000; part *= 10) {
		machine_start(test, &machine_plain);
		late = 0;
		for (i = 0; i < 100000; i++) {
			n = i % part ? APIC_TIMER_CPU_BUSY :
				       i / part % APIC_TIMER_CPU_STATES;
			late += lead()->exact[n == APIC_TIMER_CPU_TICK_STOPPED] <
				latency[n];
			local_irq_save(flags);
			apic_timer_lead_learn(n, latency[n]);
			local_irq_restore(flags);
		}
		KUNIT_EXPECT_LE_MSG(test, late, 100000U / 1000,
				    "one in %u", part);
	}
}

/*
 * One interrupt in 20 takes long. A timer that covers 90 % does not wait for those, one
 * that covers 99 % does. A timer that does not choose is not affected by the others' choices.
 */
static void cover_test(struct kunit *test)
{
	static const unsigned int covers[] = {
		0, APIC_TIMER_COVER_90, APIC_TIMER_COVER_99, APIC_TIMER_COVER_999,
	};
	u64 exact = 0, spun = 0, few = 0;
	unsigned int i, n, late;

	for (i = 0; i < ARRAY_SIZE(covers); i++) {
		machine_start(test, &machine_plain);
		KUNIT_EXPECT_EQ(test, lead()->covers, 0U);
		timers[0].flags = APIC_TIMER_EXACT | covers[i];
		timers[0].spin_budget = BUDGET;
		late = 0;
		for (n = 0; n < 4000; n++) {
			apic_timer_sim.machine.latency = n % 20 ? 400 : 3000;
			if (n == 3000) {
				late = 0;
				spun = machine_stat(SPIN_CYCLES);
			}
			shots(test, 1);
			late += records[0].error > 10;
		}
		spun = machine_stat(SPIN_CYCLES) - spun;
		KUNIT_EXPECT_GE(test, records[0].least, 0LL);
		if (covers[i] == APIC_TIMER_COVER_90) {
			KUNIT_EXPECT_GE(test, late, 40U);
			KUNIT_EXPECT_LE(test, late, 60U);
			few = spun;
		} else {
			KUNIT_EXPECT_LE(test, late, 10U);
			KUNIT_EXPECT_GT(test, spun, few * 4);
		}
		/* The lead of all other timers stays the same. */
		exact = exact ?: lead()->exact[0];
		KUNIT_EXPECT_LE(test, lead()->exact[0], exact + 20);
		KUNIT_EXPECT_GE(test, lead()->exact[0] + 20, exact);
		KUNIT_EXPECT_EQ(test, !covers[i], !lead()->covers);
	}
	/* The budget limits it as usual. */
	timers[0].spin_budget = 500;
	add(test, 0, 50000);
	KUNIT_EXPECT_EQ(test, apic_timer_sim.fires, timers[0].expires - 500);
	run_for(100000);
}

/* A timer that doesn't choose has the module's mode. */
static void default_test(struct kunit *test)
{
	unsigned int mode;

	apic_timer_sim.machine.latency = 900;
	shots(test, 2000);
	timers[0].flags = 0;
	for (mode = APIC_TIMER_RAW; mode <= APIC_TIMER_EXACT; mode++) {
		apic_timer_mode_default = mode;
		shots(test, 1);
		if (mode == APIC_TIMER_RAW)
			KUNIT_EXPECT_GE(test, records[0].error, 900LL);
		else
			KUNIT_EXPECT_LE(test, records[0].error, 5LL);
		KUNIT_EXPECT_GE(test, records[0].error,
				mode == APIC_TIMER_EXACT ? 0LL : -5LL);
	}
}

static u64 subtracted(void)
{
	return per_cpu(apic_timer_dispatch_cost, 0)
		.call[APIC_TIMER_DISPATCH_AT_ONCE];
}

/* Return the cycles subtracted for the call of a handler after a calibration. */
static u64 calibrated(void)
{
	apic_timer_calibrate();
	return subtracted();
}

/* Return the same after the watchdog has measured another call. */
static u64 watched(void)
{
	unsigned long flags;

	local_irq_save(flags);
	apic_timer_calibrate_watch();
	local_irq_restore(flags);
	return subtracted();
}

/* The whole cost of a call is subtracted if each call takes the same time, otherwise nothing. */
static void subtracted_test(struct kunit *test)
{
	struct apic_timer_dispatch_cost *cost =
		&per_cpu(apic_timer_dispatch_cost, 0);
	u64 early;

	/* All calls take the same. */
	apic_timer_sim.machine.cost = 64;
	KUNIT_EXPECT_EQ(test, calibrated(), 64ULL);
	KUNIT_EXPECT_EQ(test, cost->steps, 0ULL);
	KUNIT_EXPECT_EQ(test, watched(), 64ULL);

	/* Other code may subtract the cost of a call of its own, if that is certain too. */
	KUNIT_EXPECT_EQ(test, apic_timer_certain_cost(30, 30), 30ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_certain_cost(30, 31), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_certain_cost(65, 65), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_certain_cost(U64_MAX, 0), 0ULL);

	/* Longer than any call: traced. */
	apic_timer_sim.machine.cost = 65;
	KUNIT_EXPECT_EQ(test, calibrated(), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_certain_cost(30, 30), 0ULL);

	/* Some calls take longer than others: not early, but not certain either. */
	apic_timer_sim.machine.cost = 40;
	KUNIT_EXPECT_EQ(test, calibrated(), 40ULL);
	early = machine_stat(EARLY_SEEN);
	apic_timer_sim.machine.cost = 50;
	KUNIT_EXPECT_EQ(test, watched(), 0ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(EARLY_SEEN), early);

	/* Or less than is subtracted: that was early. The value doesn't rise again. */
	apic_timer_sim.machine.cost = 40;
	KUNIT_EXPECT_EQ(test, calibrated(), 40ULL);
	apic_timer_sim.machine.cost = 10;
	KUNIT_EXPECT_EQ(test, watched(), 0ULL);
	KUNIT_EXPECT_GT(test, machine_stat(EARLY_SEEN), early);
	KUNIT_EXPECT_EQ(test, apic_timer_certain_cost(30, 30), 0ULL);
	apic_timer_sim.machine.cost = 40;
	KUNIT_EXPECT_EQ(test, watched(), 0ULL);

	/* The TSC counts in steps: a call may be one of them, or less. */
	KUNIT_EXPECT_EQ(test, calibrated(), 40ULL);
	cost->steps = 1;
	KUNIT_EXPECT_EQ(test, watched(), 0ULL);
}

/* The watchdog also measures if no hardware can be checked: here, as on hrtimers. */
static void watched_without_hardware_test(struct kunit *test)
{
	u64 early = machine_stat(EARLY_SEEN);

	apic_timer_sim.machine.cost = 50;
	KUNIT_ASSERT_EQ(test, calibrated(), 50ULL);
	apic_timer_watchdog_online();
	apic_timer_sim.machine.cost = 10;
	/* Once a period of 100 ms. */
	shots(test, 2000);
	KUNIT_EXPECT_EQ(test, subtracted(), 0ULL);
	KUNIT_EXPECT_GT(test, machine_stat(EARLY_SEEN), early);
	apic_timer_watchdog_offline();
}

/* Calibration takes a while, and lets interrupts in meanwhile. */
static void calibrate_irqs_test(struct kunit *test)
{
	static const u64 costs[] = { 10, 40, 1000 };
	struct apic_timer_sim *sim = &apic_timer_sim;
	u64 limit, began;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(costs); i++) {
		sim->machine.cost = costs[i];
		/* Ten microseconds, plus the longest call of each kind. */
		limit = apic_timer_ns_to_tsc(10000) + 1000 + 20 * costs[i];
		began = sim->now;
		sim->irqs_on = began;
		sim->irqs_off = 0;
		apic_timer_calibrate();
		KUNIT_EXPECT_GT(test, sim->now - began, 4 * limit);
		KUNIT_EXPECT_LE(test, sim->irqs_off, limit);
	}
}

static u64 mean_seen[2];

static void see_mean(unsigned long long now, unsigned long data)
{
	mean_seen[data] = per_cpu(apic_timer_lead, 0).mean[APIC_TIMER_CPU_BUSY];
	ran(now, data);
}

/*
 * An exact timer is in time although the one before it, which needed no lead or a smaller one, was
 * deleted or postponed.
 */
static void former_head_test(struct kunit *test)
{
	static const unsigned int modes[] = { APIC_TIMER_RAW, APIC_TIMER_MEAN, APIC_TIMER_EXACT };
	unsigned int i, how;

	apic_timer_sim.machine.latency = 2000;
	shots(test, 50);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		for (how = 0; how < 3; how++) {
			forget();
			timers[1].flags = modes[i];
			timers[1].spin_budget = modes[i] == APIC_TIMER_EXACT ? 10 : 0;
			add(test, 1, 100000);
			add(test, 0, 100100);
			if (how == 0)
				KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[1]), 1);
			else
				mod_apic_timer(&timers[1], apic_timer_sim.now +
					       (how == 1 ? 100200 : 500000));
			run_for(200000);
			KUNIT_EXPECT_EQ(test, records[0].runs, 1U);
			KUNIT_EXPECT_GE(test, records[0].least, 0LL);
			KUNIT_EXPECT_LE(test, records[0].most, 2LL);
			run_for(1000000);
		}
	}
}

/* Learning from the first of two neighbours does not delay the second. */
static void learnt_last_test(struct kunit *test)
{
	unsigned int i;
	u64 before;

	shots(test, 10);
	before = lead()->mean[APIC_TIMER_CPU_BUSY];
	apic_timer_sim.machine.latency *= 2;
	for (i = 0; i < 2; i++) {
		timers[i].function = see_mean;
		timers[i].flags = APIC_TIMER_RAW;
		add(test, i, 100000 + i);
	}
	run_for(200000);
	KUNIT_EXPECT_EQ(test, records[1].runs, 1U);
	KUNIT_EXPECT_EQ(test, mean_seen[0], before);
	KUNIT_EXPECT_EQ(test, mean_seen[1], before);
	KUNIT_EXPECT_GT(test, lead()->mean[APIC_TIMER_CPU_BUSY], before);
}

/* Steps of the TSC are detected, but not if the reads are spread out. */
static void steps_test(struct kunit *test)
{
	u16 seen[APIC_TIMER_CALIBRATE_DELTAS] = {};
	unsigned int i;

	seen[18] = 512;
	KUNIT_EXPECT_EQ(test, apic_timer_calibrate_steps(seen, 512), 0ULL);
	seen[18] = 300;
	seen[44] = 205;
	seen[70] = 7;	/* a few are no rule */
	KUNIT_EXPECT_EQ(test, apic_timer_calibrate_steps(seen, 512), 26ULL);

	memset(seen, 0, sizeof(seen));
	seen[APIC_TIMER_CALIBRATE_DELTAS - 1] = 512;
	KUNIT_EXPECT_EQ(test, apic_timer_calibrate_steps(seen, 512),
			(u64)APIC_TIMER_CALIBRATE_NO_STEPS);
	for (i = 0; i < APIC_TIMER_CALIBRATE_DELTAS; i++)
		seen[i] = 4;
	KUNIT_EXPECT_EQ(test, apic_timer_calibrate_steps(seen, 512),
			(u64)APIC_TIMER_CALIBRATE_NO_STEPS);
}

static struct kunit_case mode_test_cases[] = {
	KUNIT_CASE(raw_test),
	KUNIT_CASE(mean_test),
	KUNIT_CASE(mean_periodic_test),
	KUNIT_CASE(mean_capped_test),
	KUNIT_CASE(exact_test),
	KUNIT_CASE(told_test),
	KUNIT_CASE(exact_never_early_test),
	KUNIT_CASE(budget_test),
	KUNIT_CASE(close_test),
	KUNIT_CASE(near_test),
	KUNIT_CASE(former_head_test),
	KUNIT_CASE(learnt_last_test),
	KUNIT_CASE(late_test),
	KUNIT_CASE(hold_test),
	KUNIT_CASE(undisturbed_test),
	KUNIT_CASE(undisturbed_learns_less_test),
	KUNIT_CASE(exact_learns_from_all_test),
	KUNIT_CASE(hold_learnt_test),
	KUNIT_CASE(no_hold_test),
	KUNIT_CASE(hold_bounded_test),
	KUNIT_CASE(hold_overdue_test),
	KUNIT_CASE(hold_another_test),
	KUNIT_CASE(hold_another_soon_test),
	KUNIT_CASE(hold_forgotten_test),
	KUNIT_CASE(hold_deleted_test),
	KUNIT_CASE(stopped_test),
	KUNIT_CASE(unshared_test),
	KUNIT_CASE(alternating_test),
	KUNIT_CASE(cover_test),
	KUNIT_CASE(default_test),
	KUNIT_CASE(subtracted_test),
	KUNIT_CASE(watched_without_hardware_test),
	KUNIT_CASE(calibrate_irqs_test),
	KUNIT_CASE(steps_test),
	{}
};

static struct kunit_suite mode_test_suite = {
	.name = "apic_timer_mode",
	.init = mode_test_init,
	.exit = machine_exit,
	.test_cases = mode_test_cases,
};

kunit_test_suite(mode_test_suite);
