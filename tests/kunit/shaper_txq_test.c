// SPDX-License-Identifier: GPL-2.0
/* The lock of a device's queue, tried by an interrupt. */
#include <kunit/test.h>
#include <linux/bottom_half.h>

#include "../../module/shaper/txq.h"

static struct netdev_queue *new_queue(struct kunit *test)
{
	struct netdev_queue *txq = kunit_kzalloc(test, sizeof(*txq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, txq);
	spin_lock_init(&txq->_xmit_lock);
	txq->xmit_lock_owner = -1;
	return txq;
}

static void one_at_a_time(struct kunit *test)
{
	struct netdev_queue *txq = new_queue(test);
	bool first, second, third;

	local_bh_disable();
	first = shaper_txq_trylock(txq);
	second = shaper_txq_trylock(txq);
	__netif_tx_unlock(txq);
	third = shaper_txq_trylock(txq);
	__netif_tx_unlock(txq);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, first);
	KUNIT_EXPECT_FALSE(test, second);
	KUNIT_EXPECT_TRUE(test, third);
}

/* A locked queue as it looks without CONFIG_SMP, which UML does not have. */
static void never_on_top_of_the_driver(struct kunit *test)
{
	struct netdev_queue *txq = new_queue(test);

	if (IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a spinlock says so by itself");
	txq->xmit_lock_owner = 0;
	KUNIT_EXPECT_FALSE(test, shaper_txq_trylock(txq));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(one_at_a_time),
	KUNIT_CASE(never_on_top_of_the_driver),
	{}
};

static struct kunit_suite suite = {
	.name = "shaper_txq",
	.test_cases = cases,
};

kunit_test_suite(suite);
