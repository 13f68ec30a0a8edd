/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_RING_H
#define _APIC_TIMER_DEVICE_RING_H

#include <linux/types.h>
#include <uapi/linux/apic_timer.h>

struct device_ring;
struct vm_area_struct;

/* Number of receipts in a ring. */
#define DEVICE_RING_ENTRIES	1024

struct device_ring *device_ring_new(void);
void device_ring_free(struct device_ring *ring);
pid_t device_ring_tid(const struct device_ring *ring);
u64 device_ring_add(struct device_ring *ring, const struct apic_timer_receipt *receipt);
void device_ring_began(struct device_ring *ring, u64 number, u64 began);
int device_map(struct device_ring *ring, struct vm_area_struct *vma);

#endif /* _APIC_TIMER_DEVICE_RING_H */
