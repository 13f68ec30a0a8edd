// SPDX-License-Identifier: GPL-2.0
/*
 * What each mode promises, on a CPU that is idle between the shots.
 */
#include "accuracy.h"

static struct accuracy_plan plan(const char *name, unsigned int flags)
{
	return (struct accuracy_plan) {
		.name = name,
		.flags = flags,
		.near_ns = 20 * NSEC_PER_USEC,
		.far_ns = 1020 * NSEC_PER_USEC,
		.shots = ACCURACY_SHOTS,
	};
}

/* The bounds are those of the LAPIC timer. */
static void source_test(struct kunit *test)
{
	struct apic_timer_info info;

	KUNIT_ASSERT_EQ(test, 0, apic_timer_query(raw_smp_processor_id(), &info));
	kunit_info(test, "source %s, TSC %u kHz\n", info.source, info.tsc_khz);
	if (accuracy_virtual_time())
		KUNIT_EXPECT_STREQ(test, info.source, "proxy");
}

static void raw_test(struct kunit *test)
{
	struct accuracy_plan raw = plan("raw", APIC_TIMER_RAW);
	struct accuracy_figures error = accuracy_run(test, &raw).error;

	KUNIT_EXPECT_GT(test, error.min, 0LL);
	ACCURACY_LE(test, error.p50, 600);
	ACCURACY_LE(test, error.max, 1500);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(source_test),
	KUNIT_CASE(raw_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_accuracy_mode",
	.init = accuracy_init,
	.exit = accuracy_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
