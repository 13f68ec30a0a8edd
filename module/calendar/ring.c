// SPDX-License-Identifier: GPL-2.0
/*
 * Receipts, from handlers and threads to read().
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ring.h"

/**
 * calendar_ring_init() - make a ring
 * @ring:	the ring
 *
 * Context: Task. Sleeps.
 * Return: 0 or -ENOMEM.
 */
int calendar_ring_init(struct calendar_ring *ring)
{
	raw_spin_lock_init(&ring->lock);
	mutex_init(&ring->readers);
	ring->receipts = kvcalloc(CALENDAR_RING_ENTRIES, sizeof(*ring->receipts),
				  GFP_KERNEL_ACCOUNT);
	return ring->receipts ? 0 : -ENOMEM;
}

/**
 * calendar_ring_free() - free what calendar_ring_init() has made
 * @ring:	the ring
 *
 * Context: Task. Nobody uses it.
 */
void calendar_ring_free(struct calendar_ring *ring)
{
	kvfree(ring->receipts);
}

/**
 * calendar_ring_add() - add a receipt
 * @ring:	the ring
 * @receipt:	the receipt, whose number is filled in
 *
 * Context: Any but NMI, with interrupts off.
 */
void calendar_ring_add(struct calendar_ring *ring, struct apic_calendar_receipt *receipt)
{
	lockdep_assert_irqs_disabled();
	raw_spin_lock(&ring->lock);
	receipt->number = ring->head++;
	ring->receipts[receipt->number % CALENDAR_RING_ENTRIES] = *receipt;
	raw_spin_unlock(&ring->lock);
}

/* Take the oldest one that there is. */
static bool take(struct calendar_ring *ring, struct apic_calendar_receipt *receipt)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&ring->lock, flags);
	if (ring->head - ring->tail > CALENDAR_RING_ENTRIES)
		ring->tail = ring->head - CALENDAR_RING_ENTRIES;
	found = ring->tail != ring->head;
	if (found)
		*receipt = ring->receipts[ring->tail++ % CALENDAR_RING_ENTRIES];
	raw_spin_unlock_irqrestore(&ring->lock, flags);
	return found;
}

/**
 * calendar_ring_empty() - look whether there is something to read
 * @ring:	the ring
 *
 * Context: Any but NMI.
 * Return: true if there is not.
 */
bool calendar_ring_empty(struct calendar_ring *ring)
{
	unsigned long flags;
	bool empty;

	raw_spin_lock_irqsave(&ring->lock, flags);
	empty = ring->tail == ring->head;
	raw_spin_unlock_irqrestore(&ring->lock, flags);
	return empty;
}

/**
 * calendar_ring_read() - read()
 * @ring:	the ring
 * @to:		the user's buffer
 * @size:	its size
 *
 * Context: Task. Sleeps.
 * Return: bytes, or an error.
 */
ssize_t calendar_ring_read(struct calendar_ring *ring, char __user *to, size_t size)
{
	struct apic_calendar_receipt receipt;
	ssize_t done = 0;

	if (size < sizeof(receipt))
		return -EINVAL;
	if (mutex_lock_interruptible(&ring->readers))
		return -ERESTARTSYS;
	while (size - done >= sizeof(receipt) && take(ring, &receipt)) {
		if (copy_to_user(to + done, &receipt, sizeof(receipt))) {
			done = done ?: -EFAULT;
			break;
		}
		done += sizeof(receipt);
	}
	mutex_unlock(&ring->readers);
	return done ?: -EAGAIN;
}
