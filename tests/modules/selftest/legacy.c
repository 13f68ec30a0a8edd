// SPDX-License-Identifier: GPL-2.0
/*
 * Run the consumer of 2001.
 */
#include "selftest.h"
#include "api_2001.h"

static void consumer_of_2001(struct selftest *test)
{
	consumer_2001_start();
	/* It is armed anew if everything was over before it changed its mind. */
	(void)selftest_wait(consumer_2001_fired() >= 10);
	consumer_2001_stop();
	EXPECT_GE(test, consumer_2001_fired(), 10);
	EXPECT_GE(test, 11, consumer_2001_fired());
}

const struct selftest_case selftest_legacy_cases[] = {
	CASE(consumer_of_2001),
	{}
};
