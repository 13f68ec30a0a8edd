// SPDX-License-Identifier: GPL-2.0
/*
 * Moments that change while packets wait.
 *
 * When the TSC has not counted through a sleep of the machine, a new epoch begins. The
 * timers were moved by apic_timer; here the moments of all packets follow.
 *
 * When one of the kernel's clocks is set, packets that are far have other moments than those
 * that they were converted to. The timekeeper says so under its lock, where nobody can
 * convert anything: an interrupt of its own follows.
 *
 * Nor does the kernel notify modules when it refines the rate of the TSC, a second or two
 * after boot: the tick of the timekeeper is used to see that as well.
 */
#include <linux/apic_timer.h>
#include <linux/irq_work.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <asm/tsc.h>

#include "config.h"
#include "epoch.h"
#include "send.h"

static LIST_HEAD(shapers);
static DEFINE_RAW_SPINLOCK(lock);

static void shift_one(struct shaper *q, s64 shift)
{
	raw_spin_lock(&q->lock);
	shaper_edf_shift(&q->edf, shift);
	shaper_far_shift(&q->far, shift);
	shaper_plan_shift(&q->plan, shift);
	shaper_classes_shift(&q->classes, &q->plan, shift);
	shaper_flows_shift(&q->flows, shift);
	WRITE_ONCE(q->epoch, q->epoch + 1);
	q->expired = 0;
	q->asked = 0;
	raw_spin_unlock(&q->lock);
}

/* Interrupts off, and no other CPU runs; none held the locks when it was stopped. */
static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	const struct apic_timer_notice *notice = data;
	struct shaper *q;

	if (event != APIC_TIMER_TSC_EPOCH)
		return NOTIFY_DONE;
	raw_spin_lock(&lock);
	list_for_each_entry(q, &shapers, node)
		shift_one(q, notice->shift);
	raw_spin_unlock(&lock);
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = notified };

static void clock_was_set(struct irq_work *work)
{
	unsigned long flags;
	struct shaper *q;

	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry(q, &shapers, node) {
		raw_spin_lock(&q->lock);
		if (q->far.count) {
			shaper_far_look_again(&q->far);
			/* There may be any number of qdiscs, and interrupts are off. */
			shaper_kick(q);
		}
		raw_spin_unlock(&q->lock);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
}

static struct irq_work set_work = IRQ_WORK_INIT_HARD(clock_was_set);

static void tsc_is_refined(struct irq_work *work)
{
	unsigned long flags;
	struct shaper *q;

	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry(q, &shapers, node) {
		raw_spin_lock(&q->lock);
		shaper_convert(q);
		raw_spin_unlock(&q->lock);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
}

static struct irq_work refined_work = IRQ_WORK_INIT_HARD(tsc_is_refined);
static unsigned int khz_known;

/* At each tick of the timekeeper, under its lock and inside its sequence counter. */
static int ticked(struct notifier_block *unused, unsigned long was_set, void *timekeeper)
{
	unsigned int khz = READ_ONCE(tsc_khz);

	if (unlikely(was_set))
		irq_work_queue(&set_work);
	if (unlikely(khz != khz_known)) {
		khz_known = khz;
		irq_work_queue(&refined_work);
	}
	return NOTIFY_OK;
}

static struct notifier_block clock_block = { .notifier_call = ticked };

/**
 * shaper_epoch_add() - have a qdisc follow the TSC
 * @q:	the qdisc
 *
 * Context: Task context.
 */
void shaper_epoch_add(struct shaper *q)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	list_add(&q->node, &shapers);
	raw_spin_unlock_irqrestore(&lock, flags);
}

/**
 * shaper_epoch_del() - a qdisc goes away
 * @q:	the qdisc; it was added
 *
 * Context: Task context.
 */
void shaper_epoch_del(struct shaper *q)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	list_del(&q->node);
	raw_spin_unlock_irqrestore(&lock, flags);
}

/**
 * shaper_epoch_init() - begin to listen
 *
 * Context: Task context.
 * Return: 0; a negative errno.
 */
int shaper_epoch_init(void)
{
	int err = apic_timer_register_notifier(&block);

	if (!err)
		pvclock_gtod_register_notifier(&clock_block);
	return err;
}

/**
 * shaper_epoch_exit() - stop listening
 *
 * Context: Task context; there is no qdisc.
 */
void shaper_epoch_exit(void)
{
	pvclock_gtod_unregister_notifier(&clock_block);
	irq_work_sync(&set_work);
	irq_work_sync(&refined_work);
	apic_timer_unregister_notifier(&block);
}
