// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of receipts, which the user maps and the kernel overwrites; and the mapping
 * of the ring and of the time page.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "page.h"
#include "ring.h"

#define RING_PER_PAGE	(PAGE_SIZE / sizeof(struct apic_timer_receipt))
#define RING_PAGES	(1 + DEVICE_RING_ENTRIES / RING_PER_PAGE)

static_assert(APIC_TIMER_RING_FIRST == PAGE_SIZE);
static_assert(PAGE_SIZE % sizeof(struct apic_timer_receipt) == 0);
static_assert((DEVICE_RING_ENTRIES & (DEVICE_RING_ENTRIES - 1)) == 0);

/**
 * struct device_ring - a file's ring
 * @lock:	serialises writers
 * @head:	number of the next receipt; the user's copy is never read
 * @space:	namespace in which receipts number threads: that of the process that maps the ring
 * @page:	pages that the user maps: struct apic_timer_ring, then the receipts
 */
struct device_ring {
	raw_spinlock_t lock;
	u64 head;
	struct pid_namespace *space;
	struct page *page[RING_PAGES];
};

static struct apic_timer_ring *header(struct device_ring *ring)
{
	return page_address(ring->page[0]);
}

static struct apic_timer_receipt *receipt_of(struct device_ring *ring, u64 number)
{
	unsigned int place = number % DEVICE_RING_ENTRIES;
	struct apic_timer_receipt *receipts;

	receipts = page_address(ring->page[1 + place / RING_PER_PAGE]);
	return receipts + place % RING_PER_PAGE;
}

/**
 * device_ring_new() - allocate a ring
 *
 * Context: Task. Sleeps.
 * Return: the ring, or NULL if there is no memory.
 */
struct device_ring *device_ring_new(void)
{
	struct device_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	unsigned int i;

	if (!ring)
		return NULL;
	raw_spin_lock_init(&ring->lock);
	ring->space = get_pid_ns(task_active_pid_ns(current));
	for (i = 0; i < RING_PAGES; i++) {
		ring->page[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!ring->page[i]) {
			device_ring_free(ring);
			return NULL;
		}
	}
	header(ring)->version = 1;
	header(ring)->entries = DEVICE_RING_ENTRIES;
	return ring;
}

/**
 * device_ring_free() - free a ring
 * @ring:	the ring, or NULL
 *
 * Context: Task. The ring is not mapped.
 */
void device_ring_free(struct device_ring *ring)
{
	unsigned int i;

	if (!ring)
		return;
	for (i = 0; i < RING_PAGES && ring->page[i]; i++)
		__free_page(ring->page[i]);
	put_pid_ns(ring->space);
	kfree(ring);
}

/**
 * device_ring_tid() - return the number of this thread for a receipt
 * @ring:	the ring
 *
 * Context: Task.
 * Return: its number, 0 if those who read the ring cannot see it.
 */
pid_t device_ring_tid(const struct device_ring *ring)
{
	return task_pid_nr_ns(current, ring->space);
}

/**
 * device_ring_add() - add a receipt
 * @ring:	the ring
 * @receipt:	the receipt
 *
 * Context: Any but NMI.
 * Return: its number.
 */
u64 device_ring_add(struct device_ring *ring, const struct apic_timer_receipt *receipt)
{
	unsigned long flags;
	u64 number;

	raw_spin_lock_irqsave(&ring->lock, flags);
	number = ring->head++;
	*receipt_of(ring, number) = *receipt;
	/* Complete the receipt before its number: pairs with the user's load of head. */
	smp_store_release(&header(ring)->head, ring->head);
	raw_spin_unlock_irqrestore(&ring->lock, flags);
	return number;
}

/**
 * device_ring_began() - complete a receipt, unless it has been overwritten
 * @ring:	the ring
 * @number:	number of the receipt
 * @began:	value of its last field
 *
 * Context: Any but NMI.
 */
void device_ring_began(struct device_ring *ring, u64 number, u64 began)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&ring->lock, flags);
	if (ring->head - number <= DEVICE_RING_ENTRIES)
		WRITE_ONCE(receipt_of(ring, number)->began, began);
	raw_spin_unlock_irqrestore(&ring->lock, flags);
}

static vm_fault_t map_fault(struct vm_fault *fault)
{
	struct device_ring *ring = fault->vma->vm_private_data;
	pgoff_t ring_first = APIC_TIMER_RING_OFFSET >> PAGE_SHIFT;
	struct page *page;

	if (!ring)
		page = fault->pgoff ? NULL : device_page_struct();
	else
		page = fault->pgoff >= ring_first && fault->pgoff < ring_first + RING_PAGES ?
		       ring->page[fault->pgoff - ring_first] : NULL;
	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	fault->page = page;
	return 0;
}

static const struct vm_operations_struct map_ops = {
	.fault = map_fault,
};

/**
 * device_map() - map the time page, or a ring
 * @ring:	the ring, NULL for the page
 * @vma:	the user's mapping
 *
 * The mapping is permanently read-only, and fork() does not inherit it.
 *
 * Context: mmap().
 * Return: 0, or an error.
 */
int device_map(struct device_ring *ring, struct vm_area_struct *vma)
{
	unsigned long first = ring ? APIC_TIMER_RING_OFFSET >> PAGE_SHIFT : 0;

	if (vma->vm_pgoff != first || vma_pages(vma) > (ring ? RING_PAGES : 1))
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
#if APIC_TIMER_HAS_VM_FLAGS_SET
	vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
		     VM_MAYWRITE | VM_MAYEXEC);
#else
	vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
	vma->vm_flags &= ~(VM_MAYWRITE | VM_MAYEXEC);
#endif
	vma->vm_ops = &map_ops;
	vma->vm_private_data = ring;
	return 0;
}
