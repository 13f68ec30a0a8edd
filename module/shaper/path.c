// SPDX-License-Identifier: GPL-2.0
/*
 * The last step: wait for the moment, and call the driver. The call is the same few
 * instructions each time. Its cost is measured with a driver of our own that only reads the
 * TSC, and the wait ends before the moment by that cost.
 *
 * A packet must never be early, so only a cost that is certain is subtracted.
 */
#include <linux/apic_timer.h>
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <asm/msr.h>

#include "path.h"

/*
 * Until this long before the end of the wait, the loop spares the other hyperthread. On some CPUs
 * a PAUSE takes 140 cycles of the core, and 180 with its RDTSC: that is 1,125 of a TSC of 5 GHz
 * if the core runs at 800 MHz.
 */
#define GENTLE		2048	/* TSC cycles */
#define ROUNDS		256
#define AHEAD		256	/* TSC cycles that each of them waits, and up to 63 more */

u32 shaper_path_longest;

/**
 * shaper_path() - get the cost from the last read of the TSC to the driver
 *
 * Context: Any.
 * Return: TSC cycles; 0 as soon as apic_timer is not certain any more.
 */
u32 shaper_path(void)
{
	return apic_timer_certain_cost(shaper_path_longest, shaper_path_longest);
}

/* Read the lower half of the TSC: enough for short distances, and saves instructions. */
static __always_inline u32 rdtsc_low(void)
{
	u32 low;

	asm volatile("rdtsc" : "=a" (low) : : "edx");
	return low;
}

/*
 * Wait. The wait overshoots by at most one turn of the second loop, so that loop has only three
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
	/*
	 * This close, 32 bits distinguish before from after. If the host of a virtual machine stops
	 * the CPU here, for 2^31 cycles or more, the wait may be up to 2^31 cycles too long.
	 */
	do
		over = rdtsc_low() - (u32)until;
	while (over < 0);
	return until + over;
}

/**
 * shaper_wait() - wait for a moment
 * @until:	absolute TSC
 *
 * Context: Any; with interrupts off for an exact wait.
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
 * There must be a single copy of this function: the cost of one copy says nothing about another.
 *
 * Context: Interrupts off; on return they are on if @start->irqs_on. The lock of the device's
 * queue is held, and the queue is not stopped.
 */
noinline __noclone void shaper_start(struct shaper_start *start)
{
	struct netdev_queue *txq = start->txq;
	struct net_device *dev = start->dev;
	struct sk_buff *skb = start->skb;
	u32 path = shaper_path();
	u64 until = start->at - path, left;

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
	start->left = left + path;
}

/* TSC at which the driver below was called. */
static u64 called;

/* A driver that only reads the TSC, and does not take the packet. */
static notrace netdev_tx_t look(struct sk_buff *skb, struct net_device *dev)
{
	called = rdtsc();
	return NETDEV_TX_BUSY;
}

static void measure(struct shaper_start *start)
{
	u64 least = U64_MAX, most = 0, took;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		local_irq_save(flags);
		/* Vary the phase within a step of the TSC, and within a turn of the loop. */
		start->at = rdtsc() + AHEAD + i % 64;
		shaper_start(start);
		took = called - start->left;
		local_irq_restore(flags);
		/* Ignore the first rounds, which run with cold caches. */
		if (i < ROUNDS / 8)
			continue;
		least = min(least, took);
		most = max(most, took);
	}
	shaper_path_longest = apic_timer_certain_cost(least, most);
}

/**
 * shaper_path_measure() - measure the cost of calling the driver
 *
 * Context: Task context, once, before it is used. Takes some 100,000 TSC cycles.
 * Return: 0, -ENOMEM.
 */
int shaper_path_measure(void)
{
	netdev_tx_t (*driver)(struct sk_buff *skb, struct net_device *dev) = look;
	/* Only the fields that netdev_start_xmit() touches are used. */
	struct net_device_ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL);
	struct net_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	struct netdev_queue *txq = kzalloc(sizeof(*txq), GFP_KERNEL);
	struct sk_buff *skb = kzalloc(sizeof(*skb), GFP_KERNEL);
	struct shaper_start start = { .skb = skb, .dev = dev, .txq = txq };
	int err = -ENOMEM;

	/*
	 * Hide from the compiler that this is the only function ever called: gcc 15 compares
	 * with it and inlines it, which makes any other driver slower.
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
