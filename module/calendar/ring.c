// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of receipts: handlers and threads add them, read() takes them.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ring.h"

/**
 * calendar_ring_init() - initialise a ring
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
 * calendar_ring_free() - free the memory of a ring
 * @ring:	the ring
 *
 * Context: Task. The ring has no users.
 */
void calendar_ring_free(struct calendar_ring *ring)
{
	kvfree(ring->receipts);
}

/**
 * calendar_ring_add() - add a receipt
 * @ring:	the ring
 * @receipt:	the receipt; its number is filled in
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

/* Take the oldest receipt. */
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
 * calendar_ring_empty() - check whether a ring is empty
 * @ring:	the ring
 *
 * Context: Any but NMI.
 * Return: true if there is nothing to read.
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
 * calendar_ring_read() - implement read()
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
