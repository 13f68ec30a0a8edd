// SPDX-License-Identifier: GPL-2.0
/*
 * The exported functions: states, and every documented error.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/prandom.h>
#include <linux/preempt.h>
#include <linux/time64.h>

#include "attach.h"
#include "machine.h"
#include "mux/source.h"
#include "timers/drain.h"
#include "timers/state.h"

static unsigned int runs;

static void count_run(unsigned long long now, unsigned long data)
{
	runs++;
}

static struct apic_timer_list timer;

static int timer_test_init(struct kunit *test)
{
	runs = 0;
	memset(&timer, 0, sizeof(timer));
	init_apic_timer(&timer);
	timer.function = count_run;
	timer.expires = machine_plain.tsc + 1000;
	return machine_init(test);
}

static void run_for(u64 cycles)
{
	apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

static void init_keeps_test(struct kunit *test)
{
	struct apic_timer_list fresh;

	memset(&fresh, 0xa5, sizeof(fresh));
	fresh.expires = 123;
	fresh.data = 456;
	fresh.function = count_run;
	init_apic_timer(&fresh);
	KUNIT_EXPECT_EQ(test, fresh.expires, 123ULL);
	KUNIT_EXPECT_EQ(test, fresh.data, 456UL);
	KUNIT_EXPECT_TRUE(test, fresh.function == count_run);
	KUNIT_EXPECT_EQ(test, fresh.flags, 0U);
	KUNIT_EXPECT_EQ(test, fresh.spin_budget, 0U);
	KUNIT_EXPECT_PTR_EQ(test, fresh.next, NULL);
	KUNIT_EXPECT_PTR_EQ(test, fresh.prev, NULL);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&fresh));

	fresh.expires = apic_timer_sim.now + 10;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&fresh), 0);
	run_for(1000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
}

static void static_initialiser_test(struct kunit *test)
{
	static DEFINE_APIC_TIMER(defined, count_run, 42);

	KUNIT_EXPECT_EQ(test, defined.data, 42UL);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&defined));
	KUNIT_EXPECT_EQ(test, del_apic_timer(&defined), -ENOENT);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&defined, apic_timer_sim.now + 10),
			0);
	KUNIT_EXPECT_TRUE(test, apic_timer_pending(&defined));
	run_for(1000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&defined));
}

/* Every function rejects the timer, does not change it, and counts the mistake. */
static void refused_by_all(struct kunit *test, struct apic_timer_list *bad)
{
	u64 refused = machine_stat(REFUSED);
	struct apic_timer_list before;

	if (bad)
		before = *bad;
	KUNIT_EXPECT_EQ(test, add_apic_timer(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, add_apic_timer_on(bad, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(bad, 5), -EINVAL);
	KUNIT_EXPECT_EQ(test, del_apic_timer(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, del_apic_timer_sync(bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(bad), -EINVAL);
	if (bad)
		KUNIT_EXPECT_EQ(test, memcmp(&before, bad, sizeof(before)), 0);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 6);
	KUNIT_EXPECT_EQ(test, machine_base()->queue.count, 0UL);
}

static void uninitialised_test(struct kunit *test)
{
	static const u8 poisons[] = { 0x00, 0x5a, 0x6b, 0xa5, 0xcc, 0xff };
	struct apic_timer_list bad;
	struct rnd_state rnd;
	unsigned int i;

	refused_by_all(test, NULL);
	for (i = 0; i < ARRAY_SIZE(poisons); i++) {
		memset(&bad, poisons[i], sizeof(bad));
		refused_by_all(test, &bad);
	}
	prandom_seed_state(&rnd, 3);
	for (i = 0; i < 1000; i++) {
		prandom_bytes_state(&rnd, &bad, sizeof(bad));
		refused_by_all(test, &bad);
	}
	/* Everything is right except its state, one off at either end. */
	bad = timer;
	bad.state = APIC_TIMER_NEW - 1;
	refused_by_all(test, &bad);
	bad.state = APIC_TIMER_SHUTDOWN + 1;
	refused_by_all(test, &bad);
}

/* Functions that take a pointer reject NULL, once for each call, with an error. */
static void null_test(struct kunit *test)
{
	struct apic_timer_period period = { .period_ns = 1000 };
	u64 refused = machine_stat(REFUSED);

	init_apic_timer(NULL);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(NULL));
	KUNIT_EXPECT_EQ(test, apic_timer_query(0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_timer_register_notifier(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_timer_unregister_notifier(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward(NULL, 1, 1), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(NULL, &period, 1), 0ULL);
	KUNIT_EXPECT_EQ(test, apic_timer_forward_period(&timer, NULL, 1), 0ULL);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 8);
	KUNIT_EXPECT_EQ(test, timer.expires, machine_plain.tsc + 1000);
	KUNIT_EXPECT_EQ(test, period.n, 0ULL);
}

static int ignore(struct notifier_block *block, unsigned long event, void *notice)
{
	return NOTIFY_DONE;
}

static void notifier_test(struct kunit *test)
{
	struct notifier_block block = { .notifier_call = ignore };
	struct notifier_block empty = {};
	u64 refused = machine_stat(REFUSED);

	/* Otherwise only an event would detect it, much later and in an interrupt. */
	KUNIT_EXPECT_EQ(test, apic_timer_register_notifier(&empty), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_timer_unregister_notifier(&block), -ENOENT);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 2);

	KUNIT_EXPECT_EQ(test, apic_timer_register_notifier(&block), 0);
	KUNIT_EXPECT_EQ(test, apic_timer_register_notifier(&block), -EEXIST);
	KUNIT_EXPECT_EQ(test, apic_timer_unregister_notifier(&block), 0);
	KUNIT_EXPECT_EQ(test, apic_timer_unregister_notifier(&block), -ENOENT);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused + 4);
}

/* All three functions that arm reject the timer with @err, and do not change it. */
static void not_armed(struct kunit *test, int err)
{
	unsigned long long expires = timer.expires;
	unsigned int state = timer.state;

	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), err);
	KUNIT_EXPECT_EQ(test, add_apic_timer_on(&timer, 0), err);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, 7), err);
	KUNIT_EXPECT_EQ(test, timer.expires, expires);
	KUNIT_EXPECT_EQ(test, timer.state, state);
	KUNIT_EXPECT_EQ(test, machine_base()->queue.count, 0UL);
	KUNIT_EXPECT_FALSE(test, apic_timer_sim.active);
}

static void no_function_test(struct kunit *test)
{
	timer.function = NULL;
	not_armed(test, -EINVAL);
}

static void unknown_flags_test(struct kunit *test)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (BIT(bit) & APIC_TIMER_FLAGS)
			continue;
		timer.flags = BIT(bit);
		not_armed(test, -EINVAL);
		timer.flags = BIT(bit) | APIC_TIMER_RAW;
		not_armed(test, -EINVAL);
	}
}

static void modes_test(struct kunit *test)
{
	struct apic_timer_info info;
	unsigned int flags;

	KUNIT_ASSERT_EQ(test, apic_timer_query(0, &info), 0);
	KUNIT_EXPECT_EQ(test, info.modes,
			(unsigned int)(BIT(APIC_TIMER_RAW) |
				       BIT(APIC_TIMER_MEAN) |
				       BIT(APIC_TIMER_EXACT)));
	for (flags = 0; flags <= APIC_TIMER_FLAGS; flags++) {
		timer.flags = flags;
		/* A timer that chooses a quantile needs a budget. */
		if (flags & APIC_TIMER_COVER_MASK) {
			not_armed(test, -EINVAL);
			continue;
		}
		KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
		KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
		run_for(5000);
	}
}

/* A spin budget is valid only if the mode spins, or the module's default may. */
static void spin_budget_test(struct kunit *test)
{
	unsigned int flags, mode;

	timer.spin_budget = 1;
	for (flags = 0; flags <= APIC_TIMER_FLAGS; flags++) {
		timer.flags = flags;
		mode = flags & APIC_TIMER_MODE_MASK;
		if (mode == APIC_TIMER_RAW || mode == APIC_TIMER_MEAN) {
			not_armed(test, -EINVAL);
			continue;
		}
		KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
		KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
		run_for(5000);
	}
}

static void add_twice_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), -EBUSY);
	KUNIT_EXPECT_EQ(test, add_apic_timer_on(&timer, 0), -EBUSY);
	KUNIT_EXPECT_TRUE(test, apic_timer_pending(&timer));
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 1U);

	/* It is not added twice any more. */
	timer.expires = apic_timer_sim.now + 10;
	KUNIT_EXPECT_EQ(test, add_apic_timer_on(&timer, 0), 0);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 2U);
}

/* The same with another expiry: the timer and those behind it run as they were added. */
static void add_twice_later_test(struct kunit *test)
{
	struct apic_timer_list other;
	u64 expires = timer.expires;

	init_apic_timer(&other);
	other.function = count_run;
	other.expires = expires + 1000;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, add_apic_timer(&other), 0);
	timer.expires += NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), -EBUSY);
	KUNIT_EXPECT_EQ(test, timer.expires, expires);
	timer.expires += NSEC_PER_SEC;
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 2U);
}

static void no_such_cpu_test(struct kunit *test)
{
	const int cpus[] = { -1, INT_MIN, INT_MAX, nr_cpu_ids };
	struct apic_timer_info info;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cpus); i++) {
		KUNIT_EXPECT_EQ(test, add_apic_timer_on(&timer, cpus[i]),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, apic_timer_query(cpus[i], &info),
				-EINVAL);
	}
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&timer));
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), -ENOENT);
}

static void offline_test(struct kunit *test)
{
	u64 cancelled = machine_stat(CANCELLED);
	struct apic_timer_info info;

	KUNIT_ASSERT_EQ(test, add_apic_timer(&timer), 0);
	/* There is no other CPU to take it over. */
	apic_timer_drain_cpu();
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&timer));
	KUNIT_EXPECT_EQ(test, machine_stat(CANCELLED), cancelled + 1);
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), -ENODEV);
	KUNIT_EXPECT_EQ(test, add_apic_timer_on(&timer, 0), -ENODEV);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, 5), -ENODEV);
	KUNIT_EXPECT_EQ(test, apic_timer_query(0, &info), -ENODEV);
	KUNIT_EXPECT_STREQ(test, info.source, "sim");
	KUNIT_EXPECT_EQ(test, (int)info.hardware, (int)APIC_TIMER_HW_NONE);
	KUNIT_EXPECT_EQ(test, del_apic_timer_sync(&timer), 0);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 0U);

	apic_timer_base_online();
	timer.expires = apic_timer_sim.now + 10;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
}

static void nmi_test(struct kunit *test)
{
	int add, on, mod, del, sync, shutdown;
	unsigned long flags;

	local_irq_save(flags);
	preempt_count_add(NMI_OFFSET);
	add = add_apic_timer(&timer);
	on = add_apic_timer_on(&timer, 0);
	mod = mod_apic_timer(&timer, 5);
	del = del_apic_timer(&timer);
	sync = del_apic_timer_sync(&timer);
	shutdown = apic_timer_shutdown_sync(&timer);
	preempt_count_sub(NMI_OFFSET);
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, add, -EPERM);
	KUNIT_EXPECT_EQ(test, on, -EPERM);
	KUNIT_EXPECT_EQ(test, mod, -EPERM);
	KUNIT_EXPECT_EQ(test, del, -EPERM);
	KUNIT_EXPECT_EQ(test, sync, -EPERM);
	KUNIT_EXPECT_EQ(test, shutdown, -EPERM);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(&timer));
}

static void delete_test(struct kunit *test)
{
	int (*const del[])(struct apic_timer_list *) = {
		del_apic_timer, del_apic_timer_sync,
	};
	unsigned int i, before;

	for (i = 0; i < ARRAY_SIZE(del); i++) {
		init_apic_timer(&timer);
		before = runs;
		KUNIT_EXPECT_EQ(test, del[i](&timer), -ENOENT);

		timer.expires = apic_timer_sim.now + 1000;
		KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
		KUNIT_EXPECT_EQ(test, del[i](&timer), 1);
		KUNIT_EXPECT_FALSE(test, apic_timer_pending(&timer));
		KUNIT_EXPECT_EQ(test, del[i](&timer), 0);
		run_for(5000);
		KUNIT_EXPECT_EQ(test, runs, before);

		timer.expires = apic_timer_sim.now + 1000;
		KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
		run_for(5000);
		KUNIT_EXPECT_EQ(test, runs, before + 1);
		KUNIT_EXPECT_EQ(test, del[i](&timer), 0);
	}
}

/* No function arms the timer, but trying is not a mistake; after init it is as good as new. */
static void shut_down(struct kunit *test)
{
	u64 refused = machine_stat(REFUSED);

	not_armed(test, -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, del_apic_timer_sync(&timer), 0);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(&timer), 0);
	KUNIT_EXPECT_EQ(test, machine_stat(REFUSED), refused);
	run_for(5000);
	not_armed(test, -ESHUTDOWN);

	init_apic_timer(&timer);
	timer.expires = apic_timer_sim.now + 1000;
}

static int handler_ret[2];

static void shut_down_in_handler(unsigned long long now, unsigned long data)
{
	handler_ret[0] = apic_timer_shutdown_sync(&timer);
	handler_ret[1] = mod_apic_timer(&timer, now + 1000);
}

static void shutdown_test(struct kunit *test)
{
	static DEFINE_APIC_TIMER(defined, count_run, 0);
	u64 deleted = machine_stat(DELETED);

	/* never armed */
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(&timer), 0);
	shut_down(test);

	/* pending */
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(&timer), 1);
	KUNIT_EXPECT_EQ(test, machine_stat(DELETED), deleted + 1);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 0U);
	shut_down(test);

	/* deleted */
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(&timer), 0);
	run_for(5000);
	shut_down(test);

	/* expired */
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(&timer), 0);
	shut_down(test);

	/* running: this does not wait for its handler, which does not arm it */
	timer.function = shut_down_in_handler;
	KUNIT_EXPECT_EQ(test, add_apic_timer(&timer), 0);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, handler_ret[0], -EDEADLK);
	KUNIT_EXPECT_EQ(test, handler_ret[1], -ESHUTDOWN);
	shut_down(test);

	/* defined, not initialised */
	KUNIT_EXPECT_EQ(test, apic_timer_shutdown_sync(&defined), 0);
	KUNIT_EXPECT_EQ(test, add_apic_timer(&defined), -ESHUTDOWN);
	init_apic_timer(&defined);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&defined), -ENOENT);
}

static struct apic_timer_list pair[2];

static void arm_the_other(unsigned long long now, unsigned long data)
{
	runs++;
	mod_apic_timer(&pair[!data], now + 1000);
}

/* At whichever point the two are, both are over after both were shut down. */
static void shutdown_pair_test(struct kunit *test)
{
	unsigned int after, before, first;

	for (after = 0; after < 3000; after += 100) {
		for (first = 0; first < 2; first++) {
			pair[first].function = arm_the_other;
			pair[first].data = first;
			init_apic_timer(&pair[first]);
		}
		first = after / 100 % 2;
		KUNIT_EXPECT_EQ(test, mod_apic_timer(&pair[0], apic_timer_sim.now + 1000), 0);
		run_for(after);
		KUNIT_EXPECT_GE(test, apic_timer_shutdown_sync(&pair[first]), 0);
		run_for(after);
		KUNIT_EXPECT_GE(test, apic_timer_shutdown_sync(&pair[!first]), 0);
		before = runs;
		run_for(10000);
		KUNIT_EXPECT_EQ(test, runs, before);
	}
}

static void modify_test(struct kunit *test)
{
	u64 modified = machine_stat(MODIFIED), added = machine_stat(ADDED);
	u64 at = apic_timer_sim.now + 10000;

	/* never armed */
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, at), 0);
	KUNIT_EXPECT_EQ(test, timer.expires, at);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED), added + 1);

	/* later */
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, at + 10000), 1);
	run_for(15000);
	KUNIT_EXPECT_EQ(test, runs, 0U);
	KUNIT_EXPECT_TRUE(test, apic_timer_pending(&timer));

	/* earlier */
	at = apic_timer_sim.now + 1000;
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, at), 1);
	run_for(1500);
	KUNIT_EXPECT_EQ(test, runs, 1U);
	KUNIT_EXPECT_EQ(test, machine_stat(MODIFIED), modified + 2);

	/* expired */
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, at + 5000), 0);
	run_for(20000);
	KUNIT_EXPECT_EQ(test, runs, 2U);

	/* deleted */
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, at + 90000), 0);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timer), 1);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, at + 40000), 0);
	run_for(100000);
	KUNIT_EXPECT_EQ(test, runs, 3U);

	/* into the past */
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, U64_MAX), 0);
	KUNIT_EXPECT_EQ(test, mod_apic_timer(&timer, 0), 1);
	run_for(1000);
	KUNIT_EXPECT_EQ(test, runs, 4U);
}

/* A consumer of 2001 zeroes the timer, sets its members, then initialises it. */
static void members_before_init_test(struct kunit *test)
{
	struct apic_timer_list old = {};

	old.expires = apic_timer_sim.now + 50;
	old.data = 1;
	old.function = count_run;
	init_apic_timer(&old);
	KUNIT_EXPECT_EQ(test, add_apic_timer(&old), 0);
	run_for(1000);
	KUNIT_EXPECT_EQ(test, runs, 1U);
}

static void query_test(struct kunit *test)
{
	struct apic_timer_info info;

	KUNIT_ASSERT_EQ(test, apic_timer_query(0, &info), 0);
	KUNIT_EXPECT_STREQ(test, info.source, "sim");
	KUNIT_EXPECT_EQ(test, (int)info.hardware,
			(int)APIC_TIMER_HW_SIMULATED);
	KUNIT_EXPECT_STREQ(test, apic_timer_attach_hardware_name(&info),
			   "simulated LAPIC timer");
	KUNIT_EXPECT_EQ(test, info.tsc_khz, 1000000U);
	KUNIT_EXPECT_TRUE(test, info.tsc_stable);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(init_keeps_test),
	KUNIT_CASE(static_initialiser_test),
	KUNIT_CASE(uninitialised_test),
	KUNIT_CASE(null_test),
	KUNIT_CASE(notifier_test),
	KUNIT_CASE(no_function_test),
	KUNIT_CASE(unknown_flags_test),
	KUNIT_CASE(modes_test),
	KUNIT_CASE(spin_budget_test),
	KUNIT_CASE(add_twice_test),
	KUNIT_CASE(add_twice_later_test),
	KUNIT_CASE(no_such_cpu_test),
	KUNIT_CASE(offline_test),
	KUNIT_CASE(nmi_test),
	KUNIT_CASE(delete_test),
	KUNIT_CASE(shutdown_test),
	KUNIT_CASE(shutdown_pair_test),
	KUNIT_CASE(modify_test),
	KUNIT_CASE(members_before_init_test),
	KUNIT_CASE(query_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_api",
	.init = timer_test_init,
	.exit = machine_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
