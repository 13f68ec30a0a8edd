/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_RING_H
#define _APIC_CALENDAR_RING_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <uapi/linux/apic_calendar.h>

/* Number of receipts in a calendar's ring. */
#define CALENDAR_RING_ENTRIES	4096

/**
 * struct calendar_ring - receipts, the oldest of which are overwritten
 * @lock:	protects the ring
 * @head:	number of the next receipt to add
 * @tail:	number of the next receipt to read
 * @receipts:	receipt n is at n % CALENDAR_RING_ENTRIES
 */
struct calendar_ring {
	raw_spinlock_t lock;	/* protects the ring */
	u64 head;
	u64 tail;
	struct apic_calendar_receipt *receipts;
};

int calendar_ring_init(struct calendar_ring *ring);
void calendar_ring_free(struct calendar_ring *ring);
void calendar_ring_add(struct calendar_ring *ring, struct apic_calendar_receipt *receipt);
bool calendar_ring_empty(struct calendar_ring *ring);
ssize_t calendar_ring_read(struct calendar_ring *ring, char __user *to, size_t size);

#endif /* _APIC_CALENDAR_RING_H */
