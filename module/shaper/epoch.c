// SPDX-License-Identifier: GPL-2.0
/*
 * Moments that change while packets wait.
 *
 * If the TSC has not counted through a suspend, a new epoch begins. apic_timer has moved the
 * timers; here the moments of all packets follow, at once, because the machine stands still
 * until then.
 *
 * When one of the kernel's clocks is set, the converted moments of far packets become wrong. The
 * timekeeper notifies us under its lock, where it is not possible to convert moments or to wake
 * tasks. The kernel does not notify modules when it refines the rate of the TSC, a second or two
 * after boot; we use the timekeeper's tick to notice that as well. There may be any number of
 * qdiscs, so they follow in task context, each with interrupts off for itself:
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
 * Changed under both locks. To walk the list, hold @walking if interrupts may be on meanwhile, or
 * @lock with interrupts off all the time.
 */
static LIST_HEAD(shapers);
static DEFINE_MUTEX(walking);
static DEFINE_RAW_SPINLOCK(lock);

/* Called under one of the locks. */
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

/* Interrupts are off, and no other CPU runs; none was stopped while it held the locks. */
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

/* Convert again, because a clock was set or the rate of the TSC refined. */
static void convert_one(struct shaper *q, s64 unused)
	__must_hold(&q->lock)
{
	shaper_convert(q);
	shaper_far_look_again(&q->far);
	if (q->far.count)
		shaper_arm(q);
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

/* Called at each tick of the timekeeper, under its lock and inside its sequence counter. */
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
 * shaper_epoch_add() - let a qdisc follow the TSC
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
 * shaper_epoch_del() - remove a qdisc
 * @q:	the qdisc, which was added
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
 * shaper_epoch_init() - register for notifications
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
 * shaper_epoch_exit() - unregister from notifications
 *
 * Context: Task context; no qdisc exists any more.
 */
void shaper_epoch_exit(void)
{
	pvclock_gtod_unregister_notifier(&clock_block);
	irq_work_sync(&changed_work);
	cancel_work_sync(&convert_work);
	apic_timer_unregister_notifier(&block);
}
