/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Free memory in a handler. PREEMPT_RT's allocator sleeps, so a worker frees there.
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

/* @memory: from kmalloc(), at least as large as a pointer. Any context. */
static inline void irq_free(void *memory)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		llist_add(memory, &irq_free_list);
		schedule_work(&irq_free_work);
	} else {
		kfree(memory);
	}
}

/* Call before the module is unloaded. Task context. */
static inline void irq_free_wait(void)
{
	flush_work(&irq_free_work);
}

#endif /* _IRQ_FREE_H */
