// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of receipts: handlers and threads add them, read() takes them.
 *
 * No lock is held while receipts are copied to a user: a page may be missing for any time, and
 * readers must not wait for it. They are taken only after that, so that a copy that fails loses
 * none. Of several readers the first to get there takes them:
 *
 *	CPU0: read()				CPU1: read()
 *	  peek(): 7 to 10
 *	    waits for a page			  peek(): 7 to 10
 *						  take(): tail is 7, now 11
 *	  take(): tail is not 7
 *	  peek(): 11 to 14, to the same place
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ring.h"

/* Receipts copied at a time: interrupts are off, and another CPU's cache may have them. */
#define BATCH	4

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

/* Copy the oldest receipts. Return their number, and set @first to the number of the first. */
static u32 peek(struct calendar_ring *ring, struct apic_calendar_receipt *batch, u32 size,
		u64 *first)
{
	unsigned long flags;
	u32 i, n;

	raw_spin_lock_irqsave(&ring->lock, flags);
	if (ring->head - ring->tail > CALENDAR_RING_ENTRIES)
		ring->tail = ring->head - CALENDAR_RING_ENTRIES;
	*first = ring->tail;
	n = min_t(u64, ring->head - ring->tail, size);
	for (i = 0; i < n; i++)
		batch[i] = ring->receipts[(ring->tail + i) % CALENDAR_RING_ENTRIES];
	raw_spin_unlock_irqrestore(&ring->lock, flags);
	return n;
}

/* Take receipts. Return false if another reader has taken them. */
static bool take(struct calendar_ring *ring, u64 first, u32 n)
{
	unsigned long flags;
	bool mine;

	raw_spin_lock_irqsave(&ring->lock, flags);
	/* They may have been overwritten since, but we have them. */
	mine = ring->tail == first;
	if (mine)
		ring->tail += n;
	raw_spin_unlock_irqrestore(&ring->lock, flags);
	return mine;
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
 * Sleeps only while a page of the user's buffer is missing.
 *
 * Context: Task.
 * Return: bytes; -EAGAIN: there are no receipts; -EFAULT; -EINVAL: there is no room for one.
 */
ssize_t calendar_ring_read(struct calendar_ring *ring, char __user *to, size_t size)
{
	struct apic_calendar_receipt batch[BATCH];
	u64 first, next = 0;
	size_t done = 0;
	u32 n;

	if (size < sizeof(*batch))
		return -EINVAL;
	for (;;) {
		n = peek(ring, batch, min_t(size_t, (size - done) / sizeof(*batch), BATCH), &first);
		/* Receipts that follow those of another reader are for the next call. */
		if (!n || (done && first != next))
			break;
		if (copy_to_user(to + done, batch, n * sizeof(*batch)))
			return done ?: -EFAULT;
		if (!take(ring, first, n))
			continue;
		done += n * sizeof(*batch);
		next = first + n;
	}
	return done ?: -EAGAIN;
}
