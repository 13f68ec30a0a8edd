// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that are closer together than dispatches, late, or limited in their waiting are handled
 * well.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/string.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "accuracy.h"

#define MOST	3
#define ROUNDS	500
/* Duration of one dispatch, cycles: the next expiry starts later by that much. */
#define DISPATCH	440

/* Timers due together. */
static struct {
	struct apic_timer_list timers[MOST];
	u64 tsc[MOST];
	unsigned int size, ran;
	unsigned int order[MOST];	/* which timer ran as the nth */
	struct completion end;
} group;

/* Not inlined, so that the handler saves nothing before its work. */
static noinline void ran(u64 tsc, unsigned long which)
{
	group.tsc[which] = tsc;
	group.order[group.ran++] = which;
	if (group.ran == group.size)
		complete(&group.end);
}

static void handler(unsigned long long now, unsigned long which)
{
	u64 tsc = rdtsc_ordered();

	ran(tsc, which);
}

static int neighbour_test_init(struct kunit *test)
{
	unsigned int i;

	memset(&group, 0, sizeof(group));
	for (i = 0; i < MOST; i++) {
		init_apic_timer(&group.timers[i]);
		group.timers[i].function = handler;
		group.timers[i].data = i;
	}
	init_completion(&group.end);
	return accuracy_init(test);
}

static void neighbour_test_exit(struct kunit *test)
{
	unsigned int i;

	accuracy_exit(test);
	for (i = 0; i < MOST; i++)
		del_apic_timer_sync(&group.timers[i]);
}

/* Arm the first timers of the group, and wait for all of them. */
static void shoot(struct kunit *test, unsigned int size, u64 start, u64 gap)
{
	unsigned long flags;
	unsigned int i;
	int ret = 0;

	group.size = size;
	group.ran = 0;
	reinit_completion(&group.end);
	local_irq_save(flags);
	start += apic_timer_now();
	for (i = 0; i < size; i++) {
		group.timers[i].expires = start + i * gap;
		ret = ret ?: add_apic_timer(&group.timers[i]);
	}
	local_irq_restore(flags);
	KUNIT_ASSERT_EQ(test, 0, ret);
	KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&group.end, HZ));
	for (i = 0; i < size; i++)
		KUNIT_ASSERT_EQ(test, i, group.order[i]);
}

/* Many times, a few cycles apart, and then alone again. */
static void neighbours(struct kunit *test, unsigned int size)
{
	struct accuracy_plan alone = accuracy_plan("alone after that",
						   APIC_TIMER_EXACT);
	struct accuracy_figures error;
	struct rnd_state random;
	s64 *errors[MOST];
	unsigned int i, n;
	char name[32];
	u64 start;

	accuracy_need_mode(test, APIC_TIMER_EXACT);
	accuracy_seed(&random);
	for (i = 0; i < size; i++) {
		group.timers[i].flags = APIC_TIMER_EXACT;
		errors[i] = kunit_kcalloc(test, ROUNDS, sizeof(s64), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, errors[i]);
	}
	for (n = 0; n < ROUNDS + ACCURACY_WARM_UP; n++) {
		start = 50 + prandom_u32_state(&random) % 200;
		shoot(test, size, apic_timer_us_to_tsc(start),
		      prandom_u32_state(&random) % 30);
		for (i = 0; n >= ACCURACY_WARM_UP && i < size; i++)
			errors[i][n - ACCURACY_WARM_UP] =
				group.tsc[i] - group.timers[i].expires;
	}
	for (i = 0; i < size; i++) {
		accuracy_figures(errors[i], ROUNDS, &error);
		snprintf(name, sizeof(name), "%u of %u", i + 1, size);
		accuracy_report(test, name, &error);
		KUNIT_EXPECT_GE(test, error.min, 0LL);
		ACCURACY_LE(test, error.p999, 20 + i * DISPATCH);
	}
	error = accuracy_run(test, &alone).error;
	KUNIT_EXPECT_GE(test, error.min, 0LL);
	ACCURACY_LE(test, error.p99, 3);
	ACCURACY_LE(test, error.max, ACCURACY_RARE);
}

static void two_test(struct kunit *test)
{
	neighbours(test, 2);
}

static void three_test(struct kunit *test)
{
	neighbours(test, 3);
}

/* Keep interrupts off until a timer is later than permitted. */
static void make_late(struct kunit *test, unsigned int flags)
{
	struct apic_timer_list *timer = &group.timers[0];
	unsigned long irq_flags;
	u64 end;
	int ret;

	group.size = 1;
	group.ran = 0;
	timer->flags = flags;
	local_irq_save(irq_flags);
	timer->expires = apic_timer_now() + apic_timer_us_to_tsc(50);
	end = timer->expires + apic_timer_us_to_tsc(100);
	ret = add_apic_timer(timer);
	while (apic_timer_now() < end)
		cpu_relax();
	local_irq_restore(irq_flags);
	KUNIT_ASSERT_EQ(test, 0, ret);
	msleep(20);
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(timer));
}

static void late_test(struct kunit *test)
{
	static const unsigned int modes[] = {
		APIC_TIMER_RAW, APIC_TIMER_MEAN, APIC_TIMER_EXACT,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		accuracy_need_mode(test, modes[i]);
		make_late(test, modes[i]);
		KUNIT_EXPECT_EQ(test, group.ran, 1U);
		make_late(test, modes[i] | APIC_TIMER_SKIP_LATE);
		KUNIT_EXPECT_EQ(test, group.ran, 0U);
	}
}

/* An expiry that is on time is not skipped. */
static void skip_late_in_time_test(struct kunit *test)
{
	struct accuracy_plan plan =
		accuracy_plan("exact, skip late",
			      APIC_TIMER_EXACT | APIC_TIMER_SKIP_LATE);

	KUNIT_EXPECT_GE(test, accuracy_run(test, &plan).error.min, 0LL);
}

/* As late as without spinning, minus the budget. */
static void budget_test(struct kunit *test)
{
	struct accuracy_plan raw = accuracy_plan("raw", APIC_TIMER_RAW);
	struct accuracy_plan plan = accuracy_plan("exact, waits 100 cycles",
						  APIC_TIMER_EXACT);
	struct accuracy_figures unaided, error;

	unaided = accuracy_run(test, &raw).error;
	plan.spin_budget = 100;
	error = accuracy_run(test, &plan).error;
	KUNIT_EXPECT_GE(test, error.min, 0LL);
	ACCURACY_LE(test, abs(error.p50 - (unaided.p50 - 100)), 50);

	plan.spin_budget = 1;
	plan.name = "exact, waits 1 cycle";
	error = accuracy_run(test, &plan).error;
	KUNIT_EXPECT_GE(test, error.min, 0LL);
	ACCURACY_LE(test, abs(error.p50 - unaided.p50), 50);
}

/* A timer that does not spin has no use for a budget. */
static void budget_refused_test(struct kunit *test)
{
	struct apic_timer_list *timer = &group.timers[0];

	timer->expires = apic_timer_now() + apic_timer_us_to_tsc(1000);
	timer->spin_budget = 100;
	timer->flags = APIC_TIMER_RAW;
	KUNIT_EXPECT_EQ(test, -EINVAL, add_apic_timer(timer));
	timer->flags = APIC_TIMER_MEAN;
	KUNIT_EXPECT_EQ(test, -EINVAL, add_apic_timer(timer));
	KUNIT_EXPECT_FALSE(test, apic_timer_pending(timer));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(two_test),
	KUNIT_CASE(three_test),
	KUNIT_CASE(late_test),
	KUNIT_CASE(skip_late_in_time_test),
	KUNIT_CASE(budget_test),
	KUNIT_CASE(budget_refused_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_accuracy_neighbour",
	.init = neighbour_test_init,
	.exit = neighbour_test_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
