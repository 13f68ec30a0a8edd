// SPDX-License-Identifier: GPL-2.0
/*
 * Moments that change while packets wait.
 *
 * When the TSC has not counted through a sleep of the machine, a new epoch begins. The
 * timers were moved by apic_timer; here the moments of all packets follow, at once, as the
 * machine stands still until then.
 *
 * When one of the kernel's clocks is set, packets that are far have other moments than those
 * that they were converted to. The timekeeper says so under its lock, where nobody can
 * convert anything, nor wake anybody. Nor does the kernel notify modules when it refines the
 * rate of the TSC, a second or two after boot: the tick of the timekeeper is used to see that
 * as well. As there may be any number of qdiscs, they follow in task context, where each has
 * interrupts off for itself:
 *
 *	timekeeper, under its lock ---- irq_work ---- work: one qdisc after the other
 */
#include <linux/apic_timer.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/workqueue.h>
#include <asm/tsc.h>

#include "arm.h"
#include "config.h"
#include "epoch.h"

/*
 * Changed under both locks. Who lets interrupts in while he walks along it holds @walking, who has
 * them off all the time @lock.
 */
static LIST_HEAD(shapers);
static DEFINE_MUTEX(walking);
static DEFINE_RAW_SPINLOCK(lock);

/* Under one of the locks. */
static void visit_all(void (*visit)(struct shaper *q, s64 shift), s64 shift)
{
	unsigned long flags;
	struct shaper *q;

	list_for_each_entry(q, &shapers, node) {
		raw_spin_lock_irqsave(&q->lock, flags);
		visit(q, shift);
		raw_spin_unlock_irqrestore(&q->lock, flags);
	}
}

static void shift_one(struct shaper *q, s64 shift)
	__must_hold(&q->lock)
{
	shaper_edf_shift(&q->edf, shift);
	shaper_far_shift(&q->far, shift);
	shaper_plan_shift(&q->plan, shift);
	shaper_classes_shift(&q->classes, &q->plan, shift);
	shaper_flows_shift(&q->flows, shift);
	WRITE_ONCE(q->epoch, q->epoch + 1);
	q->expired = 0;
	q->asked = 0;
}

/* Interrupts off, and no other CPU runs; none held the locks when it was stopped. */
static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	const struct apic_timer_notice *notice = data;

	if (event != APIC_TIMER_TSC_EPOCH)
		return NOTIFY_DONE;
	raw_spin_lock(&lock);
	visit_all(shift_one, notice->shift);
	raw_spin_unlock(&lock);
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = notified };

/* A clock was set, or the rate of the TSC refined. */
static void convert_one(struct shaper *q, s64 unused)
	__must_hold(&q->lock)
{
	shaper_convert(q);
	if (q->far.count) {
		shaper_far_look_again(&q->far);
		shaper_arm(q);
	}
}

static void convert_all(struct work_struct *unused)
{
	mutex_lock(&walking);
	visit_all(convert_one, 0);
	mutex_unlock(&walking);
}

static DECLARE_WORK(convert_work, convert_all);

static void clocks_changed(struct irq_work *unused)
{
	queue_work(system_highpri_wq, &convert_work);
}

static struct irq_work changed_work = IRQ_WORK_INIT_HARD(clocks_changed);
static unsigned int khz_known;

/* At each tick of the timekeeper, under its lock and inside its sequence counter. */
static int ticked(struct notifier_block *unused, unsigned long was_set, void *timekeeper)
{
	unsigned int khz = READ_ONCE(tsc_khz);

	if (unlikely(was_set || khz != khz_known)) {
		khz_known = khz;
		irq_work_queue(&changed_work);
	}
	return NOTIFY_OK;
}

static struct notifier_block clock_block = { .notifier_call = ticked };

/**
 * shaper_epoch_add() - have a qdisc follow the TSC
 * @q:	the qdisc
 *
 * Context: Task context. Sleeps.
 */
void shaper_epoch_add(struct shaper *q)
{
	unsigned long flags;

	mutex_lock(&walking);
	raw_spin_lock_irqsave(&lock, flags);
	list_add(&q->node, &shapers);
	raw_spin_unlock_irqrestore(&lock, flags);
	mutex_unlock(&walking);
}

/**
 * shaper_epoch_del() - a qdisc goes away
 * @q:	the qdisc; it was added
 *
 * Context: Task context. Sleeps.
 */
void shaper_epoch_del(struct shaper *q)
{
	unsigned long flags;

	mutex_lock(&walking);
	raw_spin_lock_irqsave(&lock, flags);
	list_del(&q->node);
	raw_spin_unlock_irqrestore(&lock, flags);
	mutex_unlock(&walking);
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
	irq_work_sync(&changed_work);
	cancel_work_sync(&convert_work);
	apic_timer_unregister_notifier(&block);
}
