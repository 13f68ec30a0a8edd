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
 * struct apic_timer_qos - the exact timers of a CPU, as far as is known
 * @next:	expiry of the one that the CPU was last armed for, absolute TSC;
 *		stays when that has expired, %U64_MAX if there was none
 * @until:	an expiry before this needs a look at once, others are found by the
 *		next one: 0 while a request stands or a look is to come, %U64_MAX
 *		when nothing exact is known. 0 for ever without latency_qos.
 *
 * Under the lock of the CPU's base; @until is read without by the work item.
 */
struct apic_timer_qos {
	u64 next;
	u64 until;
};

DECLARE_PER_CPU(struct apic_timer_qos, apic_timer_qos);

/* The look at what is known, by qos_requests.c. */
extern struct workqueue_struct *apic_timer_qos_workqueue;
extern struct delayed_work apic_timer_qos_work;

void apic_timer_qos_kick(void);
void apic_timer_qos_kick_sync(void);

/**
 * apic_timer_qos_want() - this CPU is armed for an exact expiry
 * @expires:	when, absolute TSC
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
