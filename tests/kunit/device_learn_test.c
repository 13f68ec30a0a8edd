// SPDX-License-Identifier: GPL-2.0
/*
 * device/learn.c: how early a sleeper is woken.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "device/learn.h"

#define COST	3000ULL
#define BUDGET	20000ULL
#define GUESS	10000ULL

static struct device_learn learn;
static struct rnd_state rnd;

static int device_learn_test_init(struct kunit *test)
{
	prandom_seed_state(&rnd, 1997);
	device_learn_init(&learn, GUESS, 9995);
	return 0;
}

static u64 lead(void)
{
	return device_learn_lead(&learn, DEVICE_WAKE_PLAIN, COST, BUDGET);
}

/* Random number from @low to @low + @range - 1. */
static u64 around(u64 low, u32 range)
{
	return low + prandom_u32_state(&rnd) % range;
}

/* At first the lead is the guess, and never more than the budget. */
static void guess_test(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, lead(), GUESS);
	KUNIT_EXPECT_LE(test, lead(), GUESS * 5 / 4);
	KUNIT_EXPECT_EQ(test, device_learn_lead(&learn, DEVICE_WAKE_PLAIN, COST, 500), 500ULL);
}

/* Wake-ups of an idle machine: one in a hundred is longer. */
static void idle_test(struct kunit *test)
{
	unsigned int i, late = 0, n = 20000;
	u64 wake, back, waited = 0;

	for (i = 0; i < 2000 + n; i++) {
		wake = i % 100 ? around(3550, 60) : around(4500, 300);
		back = around(200, 20);
		if (i >= 2000) {
			late += wake + back > lead();
			waited += lead() - min(lead(), wake + back);
		}
		device_learn_wake(&learn, DEVICE_WAKE_PLAIN, wake);
		device_learn_back(&learn, back);
	}
	KUNIT_EXPECT_LE(test, late, n / 1000);
	KUNIT_EXPECT_LE(test, waited / n, 2000ULL);
}

/* A tick makes every eighth wake-up longer, and that is known in advance. */
static void kinds_test(struct kunit *test)
{
	unsigned int i, late = 0, n = 20000;
	enum device_wake kind;
	u64 wake, waited = 0, early;

	for (i = 0; i < 2000 + n; i++) {
		kind = i % 8 ? DEVICE_WAKE_PLAIN : DEVICE_WAKE_TICK;
		wake = kind == DEVICE_WAKE_TICK ? around(5400, 60) : around(4030, 60);
		early = device_learn_lead(&learn, kind, COST, BUDGET);
		if (i >= 2000) {
			late += wake > early;
			waited += early - min(early, wake);
		}
		device_learn_wake(&learn, kind, wake);
		device_learn_back(&learn, 200);
	}
	KUNIT_EXPECT_LE(test, late, n / 1000);
	/* Half the cost of the difference alone. */
	KUNIT_EXPECT_LE(test, waited / n, 700ULL);
}

/* A storm: one wake-up in ten is ten times as long. The others do not wait for that. */
static void storm_test(struct kunit *test)
{
	unsigned int i, n = 20000;
	u64 wake, waited = 0;

	for (i = 0; i < 2000 + n; i++) {
		wake = i % 10 ? around(4000, 500) : around(30000, 20000);
		if (i >= 2000)
			waited += lead() - min(lead(), wake);
		device_learn_wake(&learn, DEVICE_WAKE_PLAIN, wake);
		device_learn_back(&learn, 200);
	}
	/* The mean is above most of them. */
	KUNIT_EXPECT_LE(test, waited / n, COST + 5000);
	KUNIT_EXPECT_LE(test, lead(), BUDGET);

	/* And the storm is forgotten when it is over. */
	for (i = 0; i < 20000; i++)
		device_learn_wake(&learn, DEVICE_WAKE_PLAIN, around(3550, 60));
	KUNIT_EXPECT_LE(test, lead(), 3600 + COST + 800);
	KUNIT_EXPECT_GE(test, lead(), 3600ULL);
}

/* The kernel allows for the shortest exit of a kind that was seen, less a margin. */
static void exit_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, device_learn_exit(&learn, DEVICE_RETURN_SWITCHED), 0ULL);
	device_learn_least(&learn, DEVICE_RETURN_SWITCHED, 400);
	device_learn_least(&learn, DEVICE_RETURN_SWITCHED, 360);
	device_learn_least(&learn, DEVICE_RETURN_SWITCHED, 5000);
	KUNIT_EXPECT_EQ(test, device_learn_exit(&learn, DEVICE_RETURN_SWITCHED), 270ULL);
	KUNIT_EXPECT_EQ(test, device_learn_exit(&learn, DEVICE_RETURN_STRAIGHT), 0ULL);
	device_learn_least(&learn, DEVICE_RETURN_STRAIGHT, 0);
	KUNIT_EXPECT_EQ(test, device_learn_exit(&learn, DEVICE_RETURN_STRAIGHT), 0ULL);
}

/* The lead stays within its bounds, whatever a caller reports about its last sleep. */
static void hostile_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 100000; i++) {
		u64 any = (u64)prandom_u32_state(&rnd) << 32 | prandom_u32_state(&rnd);

		device_learn_wake(&learn, DEVICE_WAKE_PLAIN, any >> (i % 64));
		device_learn_back(&learn, any >> ((i + 7) % 64));
		KUNIT_ASSERT_LE(test, lead(), BUDGET);
		KUNIT_ASSERT_GT(test, lead(), 0ULL);
	}
}

static struct kunit_case device_learn_test_cases[] = {
	KUNIT_CASE(guess_test),
	KUNIT_CASE(idle_test),
	KUNIT_CASE(kinds_test),
	KUNIT_CASE(storm_test),
	KUNIT_CASE(exit_test),
	KUNIT_CASE(hostile_test),
	{}
};

static struct kunit_suite device_learn_test_suite = {
	.name = "apic_timer_device_learn",
	.init = device_learn_test_init,
	.test_cases = device_learn_test_cases,
};

kunit_test_suite(device_learn_test_suite);
/* device/learn.c is not a module of its own here. */
#include "device/learn.c"
