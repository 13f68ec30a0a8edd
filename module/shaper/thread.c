// SPDX-License-Identifier: GPL-2.0
/*
 * Mode thread: a SCHED_FIFO thread runs the softirq that sends. The thread raises NET_TX with
 * softirqs off. When it turns them on, the softirq runs in this thread, at its priority, even on
 * PREEMPT_RT. If the kernel waits for a qdisc's softirq, because a device is closed or a qdisc
 * destroyed, it therefore waits for this thread as well.
 */
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "send.h"
#include "thread.h"

/*
 * Return the thread to its CPU. A wake-up while its CPU is offline lets it run on others from then
 * on: on any, or if some are isolated, on those that are not, of which there may be only one.
 */
static void return_to(u32 cpu)
{
	if (cpu == TC_APIC_CPU_ANY || likely(cpumask_equal(current->cpus_ptr, cpumask_of(cpu))))
		return;
	/*
	 * While CPUs go offline or online, do not wait: try again at the next packet. If the CPU
	 * went offline now, the thread would be allowed only there, and still be on this one.
	 * On PREEMPT_RT migrate_enable() warns about that.
	 */
	if (!cpus_read_trylock())
		return;
	if (cpu_active(cpu))
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
	cpus_read_unlock();
}

static int run(void *data)
{
	struct shaper *q = data;
	bool scheduled;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		if (!READ_ONCE(q->woken)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		WRITE_ONCE(q->woken, false);
		/* For another CPU, the thread is replaced. Until then the old CPU will do. */
		return_to(data_race(READ_ONCE(q->config.cpu)));
		local_bh_disable();
		scheduled = shaper_schedule(q);
		local_bh_enable();
		/* This ends: code that keeps a device down also empties the queue. */
		if (unlikely(!scheduled && READ_ONCE(q->queued))) {
			WRITE_ONCE(q->woken, true);
			schedule_timeout_interruptible(1);
		}
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/**
 * shaper_thread_create() - create the thread of a qdisc
 * @q:		the qdisc
 * @cpu:	CPU on which it runs, or %TC_APIC_CPU_ANY
 *
 * Context: Task context, RTNL.
 * Return: the thread, which the caller must wake, or an ERR_PTR().
 */
struct task_struct *shaper_thread_create(struct shaper *q, u32 cpu)
{
	struct task_struct *thread;

	thread = kthread_create(run, q, "sch_apic/%s", qdisc_dev(q->sch)->name);
	if (IS_ERR(thread))
		return thread;
	if (cpu != TC_APIC_CPU_ANY)
		kthread_bind(thread, cpu);
	sched_set_fifo(thread);
	return thread;
}
