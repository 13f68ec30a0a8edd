// SPDX-License-Identifier: GPL-2.0
/*
 * The last stretch: wait for the moment, and call the driver. What the call takes is
 * the same few instructions each time, and it is measured, with a driver of our own that
 * does nothing but look at the TSC. So much before the moment the wait ends.
 *
 * Never early comes first: all of the least that was measured is taken off only where
 * most measurements gave it, as in an emulator that counts instructions. Elsewhere
 * the TSC counts in steps, or the CPU's clock was slow when it was measured, and half
 * of the least is sure.
 */
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <asm/msr.h>

#include "path.h"

/*
 * Up to here before the end of the wait the loop is gentle to the other hyperthread. A PAUSE
 * takes 140 cycles of the core on some CPUs, which may be slower than the TSC.
 */
#define GENTLE		512	/* TSC cycles */
#define ROUNDS		256
/* An interrupt or a tracer came in between; and no more than that is ever taken off. */
#define TAKEN_OFF_MAX	100	/* TSC cycles */

u32 shaper_path_cycles;

/* The lower half of the TSC, which is enough for short distances: saves instructions. */
static __always_inline u32 rdtsc_low(void)
{
	u32 low;

	asm volatile("rdtsc" : "=a" (low) : : "edx");
	return low;
}

/*
 * Wait. What is overshot is at most one turn of the second loop, so that has three
 * instructions.
 *
 * Return: the last TSC value seen, which is not before @until.
 */
static __always_inline u64 wait(u64 until)
{
	u64 now = rdtsc();
	s32 over;

	while ((s64)(until - now) > GENTLE) {
		cpu_relax();
		now = rdtsc();
	}
	if ((s64)(until - now) <= 0)
		return now;
	do
		over = rdtsc_low() - (u32)until;
	while (over < 0);
	return until + over;
}

/**
 * shaper_wait() - wait for a moment
 * @until:	absolute TSC
 *
 * Context: Any; interrupts off if it is to be exact.
 * Return: the last TSC value seen, which is not before @until.
 */
u64 shaper_wait(u64 until)
{
	return wait(until);
}

/**
 * shaper_start() - give a packet to the driver at its moment
 * @start:	the packet
 *
 * There must be one copy of this function: what one takes says nothing about another.
 *
 * Context: Interrupts off; on if @start->irqs_on when it returns. The lock of the
 * device's queue is held, and the queue is not stopped.
 */
noinline __noclone void shaper_start(struct shaper_start *start)
{
	struct netdev_queue *txq = start->txq;
	struct net_device *dev = start->dev;
	struct sk_buff *skb = start->skb;
	u64 until = start->at - shaper_path_cycles, left;

	prefetch(dev->netdev_ops->ndo_start_xmit);
	prefetch(skb->data);
	start->ready = rdtsc();
	if (unlikely(start->irqs_on)) {
		left = wait(until);
		local_irq_enable();
		start->rc = netdev_start_xmit(skb, dev, txq, false);
	} else {
		left = wait(until);
		start->rc = netdev_start_xmit(skb, dev, txq, false);
	}
	start->left = left + shaper_path_cycles;
}

/* When the driver below was called. */
static u64 called;

/* A driver that looks at the TSC and takes nothing. */
static notrace netdev_tx_t look(struct sk_buff *skb, struct net_device *dev)
{
	called = rdtsc();
	return NETDEV_TX_BUSY;
}

static void measure(struct shaper_start *start)
{
	u32 least = U32_MAX, took, same = 0;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		local_irq_save(flags);
		/* At any point of a step of the TSC, and of the loop. */
		start->at = rdtsc() + GENTLE / 2 + i % 64;
		shaper_start(start);
		took = min_t(u64, called - start->left, U32_MAX);
		local_irq_restore(flags);
		/* The first rounds find cold caches. */
		if (i < ROUNDS / 8)
			continue;
		if (took < least) {
			least = took;
			same = 0;
		}
		same += took == least;
	}
	if (least > TAKEN_OFF_MAX)
		shaper_path_cycles = 0;
	else
		shaper_path_cycles = same > ROUNDS * 3 / 4 ? least : least / 2;
}

/**
 * shaper_path_measure() - measure the way to the driver
 *
 * Context: Task context, once, before it is used. Takes some 50 microseconds.
 * Return: 0, -ENOMEM.
 */
int shaper_path_measure(void)
{
	netdev_tx_t (*driver)(struct sk_buff *skb, struct net_device *dev) = look;
	/* Nothing of them is used but what netdev_start_xmit() touches. */
	struct net_device_ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL);
	struct net_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	struct netdev_queue *txq = kzalloc(sizeof(*txq), GFP_KERNEL);
	struct sk_buff *skb = kzalloc(sizeof(*skb), GFP_KERNEL);
	struct shaper_start start = { .skb = skb, .dev = dev, .txq = txq };
	int err = -ENOMEM;

	/*
	 * The compiler must not learn that this function is all that is ever called: gcc 15
	 * compares with it and inlines it, so that any other driver takes longer.
	 */
	OPTIMIZER_HIDE_VAR(driver);
	if (ops && dev && txq && skb) {
		ops->ndo_start_xmit = driver;
		dev->netdev_ops = ops;
		measure(&start);
		err = 0;
	}
	kfree(skb);
	kfree(txq);
	kfree(dev);
	kfree(ops);
	return err;
}
