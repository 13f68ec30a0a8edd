/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_QOS_H
#define _APIC_TIMER_QOS_H

#include <linux/types.h>

#ifdef CONFIG_APIC_TIMER_SIM

static inline void apic_timer_qos_want(u64 expires) {}

#else

#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

/**
 * struct apic_timer_qos - the next exact expiry of a CPU
 * @next:	exact expiry that the hardware was last programmed for, absolute
 *		TSC; kept after it has expired, %U64_MAX if there was none
 * @until:	an exact expiry before this TSC needs a re-evaluation at once; the
 *		next re-evaluation finds a later one. 0 while there is a request or a
 *		kick is under way, %U64_MAX while no exact expiry is known; always 0
 *		without latency_qos
 *
 * Under the lock of the CPU's base; the work item reads @until without it.
 */
struct apic_timer_qos {
	u64 next;
	u64 until;
};

DECLARE_PER_CPU(struct apic_timer_qos, apic_timer_qos);

/* The re-evaluation, in qos_requests.c */
extern struct workqueue_struct *apic_timer_qos_workqueue;
extern struct delayed_work apic_timer_qos_work;

void apic_timer_qos_kick(void);
void apic_timer_qos_kick_sync(void);

/**
 * apic_timer_qos_want() - note an exact expiry for which this CPU is programmed
 * @expires:	absolute TSC
 *
 * Context: Interrupts off, this CPU's base locked.
 */
static inline void apic_timer_qos_want(u64 expires)
{
	struct apic_timer_qos *qos = this_cpu_ptr(&apic_timer_qos);

	qos->next = expires;
	if (unlikely(expires < qos->until))
		apic_timer_qos_kick();
}

#endif /* CONFIG_APIC_TIMER_SIM */

#endif /* _APIC_TIMER_QOS_H */
