// SPDX-License-Identifier: GPL-2.0
/*
 * The queueing discipline "apic" sends each packet at its moment, by the CPU's local APIC
 * timer.
 *
 * Its parts, in the order of a packet's way through it:
 *
 *	ready.c		enqueue: when a packet wants to leave (flows.c), at first from afar
 *			(far.c), its class (classify.c), and all that can be done in advance
 *	edf.c, plan.c	which packet is first, when the rate lets it leave; class.c: classes
 *	arm.c		arm the timer for the first packet; lead.c: how early
 *	send.c		sending, by the handler of the timer (hard.c) and by dequeue (soft.c)
 *	path.c		the wait, and the call of the driver
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_version.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "cb.h"
#include "class_ops.h"
#include "config.h"
#include "epoch.h"
#include "hard.h"
#include "offload.h"
#include "path.h"
#include "ready.h"
#include "shaper.h"
#include "soft.h"

/* Called under the root qdisc's lock, except when the qdisc is destroyed. */
static void shaper_reset(struct Qdisc *sch)
{
	struct shaper *q = qdisc_priv(sch);
	struct shaper_freed freed = {};
	struct shaper_edf edf;
	struct shaper_far far;
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&q->lock, flags);
	q->dead = true;
	q->generation++;
	raw_spin_unlock_irqrestore(&q->lock, flags);

	/* The handler takes none of the locks held here. */
	del_apic_timer_sync(&q->timer);
	qdisc_watchdog_cancel(&q->watchdog);

	shaper_classes_reset(q, &freed);
	raw_spin_lock_irqsave(&q->lock, flags);
	edf = q->edf;
	shaper_edf_init(&q->edf);
	far = q->far;
	shaper_far_init(&q->far);
	WRITE_ONCE(q->queued, 0);
	q->plan.next = 0;
	q->plan.rest = 0;
	q->asked = 0;
	q->expired = 0;
	q->stopped = false;
	q->kicked = false;
	/* The kernel may hold a packet even now, and give it back: @q->handed stays. */
	q->dead = false;
	raw_spin_unlock_irqrestore(&q->lock, flags);

	shaper_freed_add(&freed, q, &edf);
	for (i = 0; i < SHAPER_CLOCKS; i++) {
		shaper_freed_add_list(&freed, q, far.clock[i].first);
		shaper_freed_add(&freed, q, &far.clock[i].edf);
	}
	q->gone = 0;
	q->gone_len = 0;
	shaper_flows_clear(&q->flows);
	shaper_freed_free(&freed);
}

static int shaper_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct shaper *q = qdisc_priv(sch);
	int err;

	/* If this fails, destroy() is called: initialise all that it uses first. */
	raw_spin_lock_init(&q->lock);
	shaper_edf_init(&q->edf);
	shaper_far_init(&q->far);
	shaper_classes_init(&q->classes);
	q->timer.function = shaper_handler;
	q->timer.data = (unsigned long)q;
	init_apic_timer(&q->timer);
	q->timer.flags = APIC_TIMER_RAW | APIC_TIMER_UNDISTURBED;
	q->config = shaper_defaults;
	qdisc_watchdog_init(&q->watchdog, sch);
	q->sch = sch;
	shaper_epoch_add(q);

	err = shaper_flows_init(&q->flows);
	if (err)
		return err;
	err = tcf_block_get(&q->block, &q->filters, sch, extack);
	return err ?: shaper_configure(sch, options, extack);
}

static void shaper_destroy(struct Qdisc *sch)
{
	struct shaper *q = qdisc_priv(sch);

	/* Also called for a qdisc whose creation failed before init(). */
	if (!q->sch)
		return;
	apic_timer_shutdown_sync(&q->timer);
	qdisc_watchdog_cancel(&q->watchdog);
	if (q->thread)
		kthread_stop(q->thread);
	if (q->config.offload)
		shaper_offload_off(sch, q->config.ahead_ns, true);
	tcf_block_put(q->block);
	shaper_epoch_del(q);
	shaper_classes_exit(q);
	shaper_flows_exit(&q->flows);
}

static int shaper_change(struct Qdisc *sch, struct nlattr *options,
			 struct netlink_ext_ack *extack)
{
	return shaper_configure(sch, options, extack);
}

static struct Qdisc_ops shaper_ops __read_mostly = {
	.id = "apic",
	.cl_ops = &shaper_class_ops,
	.priv_size = sizeof(struct shaper),
	.enqueue = shaper_enqueue,
	.dequeue = shaper_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = shaper_init,
	.reset = shaper_reset,
	.destroy = shaper_destroy,
	.change = shaper_change,
	.dump = shaper_dump,
	.dump_stats = shaper_dump_stats,
	.owner = THIS_MODULE,
};

static int __init shaper_module_init(void)
{
	int err;

	err = shaper_path_measure();
	if (err)
		return err;
	err = shaper_epoch_init();
	if (err)
		return err;
	err = register_qdisc(&shaper_ops);
	if (err)
		shaper_epoch_exit();
	return err;
}

static void __exit shaper_module_exit(void)
{
	unregister_qdisc(&shaper_ops);
	shaper_epoch_exit();
}

module_init(shaper_module_init);
module_exit(shaper_module_exit);
MODULE_ALIAS("net-sch-apic");
MODULE_DESCRIPTION("Queueing discipline that sends each packet at its departure time");
MODULE_LICENSE("GPL");
MODULE_VERSION(APIC_TIMER_VERSION);
