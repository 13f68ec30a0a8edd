// SPDX-License-Identifier: GPL-2.0
/*
 * Notifiers of the verdict about the TSC.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/notifier.h>

#include "trust.h"
#include "worth.h"

static unsigned int calls;
static unsigned long worth;
static struct apic_clock_verdict given;

static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	calls++;
	worth = event;
	given = *(struct apic_clock_verdict *)data;
	return NOTIFY_DONE;
}

static struct notifier_block block = {
	.notifier_call = notified,
};

static void update(enum apic_clock_worth to, unsigned int measured)
{
	const struct apic_clock_verdict verdict = { .worth = to, .measured = measured };

	apic_clock_trust_update(&verdict);
}

/* Each change is reported once, with the facts that it follows from, and nothing else is. */
static void change_test(struct kunit *test)
{
	update(APIC_CLOCK_EXACT, 1);
	calls = 0;
	KUNIT_ASSERT_EQ(test, apic_clock_register_notifier(&block), 0);
	update(APIC_CLOCK_EXACT, 2);
	KUNIT_EXPECT_EQ(test, calls, 0U);

	update(APIC_CLOCK_UNTRUSTED, 3);
	KUNIT_EXPECT_EQ(test, calls, 1U);
	KUNIT_EXPECT_EQ(test, worth, (unsigned long)APIC_CLOCK_UNTRUSTED);
	KUNIT_EXPECT_EQ(test, (int)given.worth, APIC_CLOCK_UNTRUSTED);
	KUNIT_EXPECT_EQ(test, given.measured, 3U);
	update(APIC_CLOCK_UNTRUSTED, 4);
	KUNIT_EXPECT_EQ(test, calls, 1U);

	update(APIC_CLOCK_BOUNDED, 5);
	KUNIT_EXPECT_EQ(test, calls, 2U);
	KUNIT_EXPECT_EQ(test, worth, (unsigned long)APIC_CLOCK_BOUNDED);

	KUNIT_EXPECT_EQ(test, apic_clock_unregister_notifier(&block), 0);
	update(APIC_CLOCK_UNTRUSTED, 6);
	KUNIT_EXPECT_EQ(test, calls, 2U);
}

/* Before a CPU that has just come online is measured, there is no verdict. */
static void unmeasured_test(struct kunit *test)
{
	struct apic_clock_verdict verdict = { .worth = APIC_CLOCK_BOUNDED, .unmeasured = 1 };

	update(APIC_CLOCK_EXACT, 1);
	calls = 0;
	KUNIT_ASSERT_EQ(test, apic_clock_register_notifier(&block), 0);
	apic_clock_trust_update(&verdict);
	KUNIT_EXPECT_EQ(test, calls, 0U);
	verdict.unmeasured = 0;
	apic_clock_trust_update(&verdict);
	KUNIT_EXPECT_EQ(test, calls, 1U);
	KUNIT_EXPECT_EQ(test, apic_clock_unregister_notifier(&block), 0);
}

/* Misuse returns an error; it neither triggers WARN() nor loses the notifier. */
static void refuse_test(struct kunit *test)
{
	static struct notifier_block empty;

	update(APIC_CLOCK_EXACT, 1);
	calls = 0;
	KUNIT_EXPECT_EQ(test, apic_clock_register_notifier(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_clock_register_notifier(&empty), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_clock_unregister_notifier(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, apic_clock_unregister_notifier(&block), -ENOENT);
	KUNIT_ASSERT_EQ(test, apic_clock_register_notifier(&block), 0);
	KUNIT_EXPECT_EQ(test, apic_clock_register_notifier(&block), -EEXIST);
	update(APIC_CLOCK_UNTRUSTED, 2);
	KUNIT_EXPECT_EQ(test, calls, 1U);
	KUNIT_EXPECT_EQ(test, apic_clock_unregister_notifier(&block), 0);
	KUNIT_EXPECT_EQ(test, apic_clock_unregister_notifier(&block), -ENOENT);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(change_test),
	KUNIT_CASE(unmeasured_test),
	KUNIT_CASE(refuse_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_clock_trust",
	.test_cases = cases,
};

kunit_test_suite(suite);
