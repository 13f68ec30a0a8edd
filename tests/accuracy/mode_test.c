// SPDX-License-Identifier: GPL-2.0
/*
 * Each mode keeps its promise on a CPU that is idle between the expiries.
 */
#include <linux/module.h>
#include <linux/time64.h>

#include "accuracy.h"

static void exact(struct kunit *test, const char *name, unsigned int flags)
{
	struct accuracy_plan plan = accuracy_plan(name, flags);
	struct accuracy_figures error = accuracy_run(test, &plan).error;

	KUNIT_EXPECT_GE(test, error.min, 0LL);
	ACCURACY_LE(test, error.p50, 3);
	ACCURACY_LE(test, error.p99, 3);
	ACCURACY_LE(test, error.p999, 8);
	ACCURACY_LE(test, error.max, ACCURACY_RARE);
}

/* First of all: nothing has been learnt, and the warm-up must suffice. */
static void fresh_test(struct kunit *test)
{
	exact(test, "exact, fresh", APIC_TIMER_EXACT);
}

/* The bounds are those of the LAPIC timer. */
static void source_test(struct kunit *test)
{
	struct apic_timer_info info;

	KUNIT_ASSERT_EQ(test, 0, apic_timer_query(accuracy_cpu(), &info));
	kunit_info(test, "source %s, TSC %u kHz\n", info.source, info.tsc_khz);
	if (accuracy_source())
		KUNIT_EXPECT_STREQ(test, info.source, accuracy_source());
}

static void raw_test(struct kunit *test)
{
	struct accuracy_plan plan = accuracy_plan("raw", APIC_TIMER_RAW);
	struct accuracy_figures error = accuracy_run(test, &plan).error;

	KUNIT_EXPECT_GT(test, error.min, 0LL);
	ACCURACY_LE(test, error.p50, 600);
	ACCURACY_LE(test, error.p999, 1500);
	/* A rare one, such as behind the kernel's reseeding of its random numbers. */
	ACCURACY_LE(test, error.max, 4000);
}

/*
 * About the mean of all, whatever delays a few: an interrupt that must first update the kernel's
 * clock is some 490 cycles later.
 */
static void mean_test(struct kunit *test)
{
	struct accuracy_plan plan = accuracy_plan("mean", APIC_TIMER_MEAN);
	struct accuracy_figures error = accuracy_run(test, &plan).error;

	ACCURACY_LE(test, abs(error.mean), ACCURACY_MEAN);
	/* Several such interrupts within some tens of expiries raise the lead that much. */
	ACCURACY_LE(test, -error.min, 100);
	ACCURACY_LE(test, abs(error.p50), 10);
	ACCURACY_LE(test, error.sd, 15000);
}

static void exact_test(struct kunit *test)
{
	exact(test, "exact", APIC_TIMER_EXACT);
}

/* A timer without requests. */
static void default_test(struct kunit *test)
{
	exact(test, "default", 0);
}

/* The error does not grow with the distance. */
static void far_test(struct kunit *test)
{
	struct accuracy_plan close = {
		.name = "exact, 100 us",
		.flags = APIC_TIMER_EXACT,
		.near_ns = 100 * NSEC_PER_USEC,
		.far_ns = 100 * NSEC_PER_USEC,
		.warm_up = ACCURACY_WARM_UP,
		.shots = 100,
	}, far = {
		.name = "exact, 1 s",
		.flags = APIC_TIMER_EXACT,
		.near_ns = NSEC_PER_SEC,
		.far_ns = NSEC_PER_SEC,
		/* A case of more than 120 s would be a task that hangs. */
		.shots = accuracy_virtual_time() ? 100 : 3,
	};
	struct accuracy_figures at_close = accuracy_run(test, &close).error;
	struct accuracy_figures at_far = accuracy_run(test, &far).error;

	KUNIT_EXPECT_GE(test, at_far.min, 0LL);
	ACCURACY_LE(test, abs(at_far.p50 - at_close.p50), 3);
	ACCURACY_LE(test, abs(at_far.p99 - at_close.p99), 30);
}

/* Nearer than leaving and re-entering the interrupt takes; one at a time. */
static void near_test(struct kunit *test)
{
	static const struct {
		const char *name;
		u64 ns;
		s64 p999, max;	/* bounds, TSC cycles */
	} rows[] = {
		/* Due before the hardware is programmed. */
		{ "exact, 100 ns", 100, 1000, 1000 },
		{ "exact, 1 us", 1000, 8, 1000 },
		{ "exact, 2 us", 2000, 8, 1000 },
		{ "exact, 5 us", 5000, 8, 1000 },
		{ "exact, 10 us", 10000, 8, 1000 },
	};
	struct accuracy_plan plan = {
		.flags = APIC_TIMER_EXACT,
		.pause_ns = 200 * NSEC_PER_USEC,
		.warm_up = ACCURACY_WARM_UP,
		.shots = 1000,
	};
	struct accuracy_figures error;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		plan.name = rows[i].name;
		plan.near_ns = rows[i].ns;
		plan.far_ns = rows[i].ns;
		error = accuracy_run(test, &plan).error;
		KUNIT_EXPECT_GE(test, error.min, 0LL);
		ACCURACY_LE(test, error.p999, rows[i].p999);
		ACCURACY_LE(test, error.max, rows[i].max);
	}
}

/* The handler's argument is the TSC at which it starts. */
static void argument_test(struct kunit *test)
{
	static const unsigned int modes[] = {
		APIC_TIMER_RAW, APIC_TIMER_MEAN, APIC_TIMER_EXACT,
	};
	struct accuracy_figures argument;
	struct accuracy_plan plan;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		plan = accuracy_plan("error", modes[i]);
		argument = accuracy_run(test, &plan).argument;
		accuracy_report(test, "argument", &argument);
		ACCURACY_LE(test, -argument.min, 3);
		ACCURACY_LE(test, argument.max, 3);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(fresh_test),
	KUNIT_CASE(source_test),
	KUNIT_CASE(raw_test),
	KUNIT_CASE(mean_test),
	KUNIT_CASE(exact_test),
	KUNIT_CASE(default_test),
	KUNIT_CASE(far_test),
	KUNIT_CASE(near_test),
	KUNIT_CASE(argument_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_accuracy_mode",
	.init = accuracy_init,
	.exit = accuracy_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit: how exactly apic_timer's timers start");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
