/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that a handler frees. PREEMPT_RT's allocator sleeps, so there a worker
 * does it.
 */
#ifndef _IRQ_FREE_H
#define _IRQ_FREE_H

#include <linux/kconfig.h>
#include <linux/llist.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static LLIST_HEAD(irq_free_list);

static void irq_free_all(struct work_struct *unused)
{
	struct llist_node *node = llist_del_all(&irq_free_list), *next;

	for (; node; node = next) {
		next = node->next;
		kfree(node);
	}
}

static DECLARE_WORK(irq_free_work, irq_free_all);

/* @memory: of kmalloc(), no smaller than a pointer. Any context. */
static inline void irq_free(void *memory)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		llist_add(memory, &irq_free_list);
		schedule_work(&irq_free_work);
	} else {
		kfree(memory);
	}
}

/* Before the module goes. Task context. */
static inline void irq_free_wait(void)
{
	flush_work(&irq_free_work);
}

#endif /* _IRQ_FREE_H */
