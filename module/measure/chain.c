// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the chain from an interrupt to the thread that waits for it: the moment at which the
 * interrupt was due, the start and end of its handler, the deferred procedure, and, in the
 * program, the thread.
 *
 * Each read() causes one interrupt. No interrupt is in progress when read() begins or returns, so
 * no record is lost or belongs to another read().
 */
#include <linux/apic_timer.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "compat.h"
#include "measure.h"
#include "random.h"

#define DISTANCE_MIN_NS	2000
#define DISTANCE_MAX_NS	1000000000

static struct {
	bool set;
	u32 route, trigger;
	u32 least_ns, most_ns;
	u64 random;
	int cpu;		/* CPU of the task that set the chain */
	struct apic_measure_record record;
	struct apic_timer_list timer;
	struct hrtimer hrtimer;
	struct tasklet_struct tasklet;
	struct irq_work irq_work;
	struct work_struct work;
	struct workqueue_struct *queue;	/* for %APIC_MEASURE_HIGHPRI and _WORK */
	struct task_struct *thread;	/* for %APIC_MEASURE_THREAD */
	bool go;			/* the thread waits for this flag */
	struct completion done;
} chain;

static void deferred(void)
{
	chain.record.deferred = rdtsc();
	complete(&chain.done);
}

static void tasklet_runs(struct tasklet_struct *tasklet)
{
	deferred();
}

static void irq_work_runs(struct irq_work *work)
{
	deferred();
}

static void work_runs(struct work_struct *work)
{
	deferred();
}

static int thread_runs(void *unused)
{
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		if (!READ_ONCE(chain.go)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		WRITE_ONCE(chain.go, false);
		deferred();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* The deferred procedure may run on another CPU before the end of the handler is noted. */
static void interrupt(u64 now)
{
	chain.record.entry = now;
	switch (chain.route) {
	case APIC_MEASURE_DIRECT:
		complete(&chain.done);
		break;
	case APIC_MEASURE_TASKLET:
		tasklet_hi_schedule(&chain.tasklet);
		break;
	case APIC_MEASURE_IRQ_WORK:
		irq_work_queue(&chain.irq_work);
		break;
	case APIC_MEASURE_BH:
		queue_work(measure_bh_workqueue(), &chain.work);
		break;
	case APIC_MEASURE_THREAD:
		WRITE_ONCE(chain.go, true);
		wake_up_process(chain.thread);
		break;
	default:
		queue_work_on(chain.cpu, chain.queue, &chain.work);
		break;
	}
}

static void expired(u64 now)
{
	interrupt(now);
	/* This completes the record: measure_chain_read(). */
	smp_store_release(&chain.record.exit, rdtsc());
}

/* Both triggers read the TSC themselves: @now does not contain the call of the handler. */
static void timer_expired(unsigned long long now, unsigned long data)
{
	expired(rdtsc());
}

static enum hrtimer_restart hrtimer_expired(struct hrtimer *hrtimer)
{
	expired(rdtsc());
	return HRTIMER_NORESTART;
}

static int make_thread(void)
{
	struct task_struct *thread = kthread_create(thread_runs, NULL, "apic_measure");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	chain.thread = thread;
	kthread_bind(thread, chain.cpu);
	sched_set_fifo(thread);
	wake_up_process(thread);
	return 0;
}

static int make_route(void)
{
	switch (chain.route) {
	case APIC_MEASURE_BH:
		return measure_bh_workqueue() ? 0 : -EOPNOTSUPP;
	case APIC_MEASURE_THREAD:
		return make_thread();
	case APIC_MEASURE_HIGHPRI:
	case APIC_MEASURE_WORK:
		chain.queue = measure_workqueue(chain.route == APIC_MEASURE_HIGHPRI ?
						WQ_HIGHPRI : 0);
		return chain.queue ? 0 : -ENOMEM;
	default:
		return 0;
	}
}

/**
 * measure_chain_clear() - undo measure_chain_set()
 *
 * Context: Task; the device's mutex. Sleeps.
 */
void measure_chain_clear(void)
{
	if (!chain.set)
		return;
	/* The handler of the last interrupt may not have returned yet. */
	hrtimer_cancel(&chain.hrtimer);
	del_apic_timer_sync(&chain.timer);
	tasklet_kill(&chain.tasklet);
	irq_work_sync(&chain.irq_work);
	cancel_work_sync(&chain.work);
	if (chain.queue)
		destroy_workqueue(chain.queue);
	if (chain.thread)
		kthread_stop(chain.thread);
	chain.queue = NULL;
	chain.thread = NULL;
	chain.set = false;
}

static u32 mode_of(u32 trigger)
{
	switch (trigger) {
	case APIC_MEASURE_APIC_MEAN:
		return APIC_TIMER_MEAN;
	case APIC_MEASURE_APIC_RAW:
		return APIC_TIMER_RAW;
	default:
		return APIC_TIMER_EXACT;
	}
}

/**
 * measure_chain_set() - choose what each read() measures
 * @a:		the user's choice
 *
 * Context: Task; the device's mutex. Sleeps.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -ENOMEM.
 */
long measure_chain_set(const struct apic_measure_chain *a)
{
	int ret;

	if (a->route >= APIC_MEASURE_ROUTES || a->trigger >= APIC_MEASURE_TRIGGERS ||
	    a->least_ns < DISTANCE_MIN_NS || a->most_ns > DISTANCE_MAX_NS ||
	    a->least_ns > a->most_ns || !a->seed)
		return -EINVAL;
	measure_chain_clear();
	chain.route = a->route;
	chain.trigger = a->trigger;
	chain.least_ns = a->least_ns;
	chain.most_ns = a->most_ns;
	chain.random = a->seed;
	chain.cpu = raw_smp_processor_id();
	chain.record.number = U64_MAX;
	chain.go = false;
	init_completion(&chain.done);
	chain.timer.function = timer_expired;
	init_apic_timer(&chain.timer);
	chain.timer.flags = mode_of(chain.trigger);
	measure_hrtimer_setup(&chain.hrtimer, hrtimer_expired, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_PINNED_HARD);
	tasklet_setup(&chain.tasklet, tasklet_runs);
	init_irq_work(&chain.irq_work, irq_work_runs);
	INIT_WORK(&chain.work, work_runs);
	chain.set = true;
	ret = make_route();
	if (ret)
		measure_chain_clear();
	return ret;
}

static int arm(u32 distance)
{
	ktime_t at;

	if (chain.trigger != APIC_MEASURE_HRTIMER) {
		chain.timer.expires = apic_timer_now() + apic_timer_ns_to_tsc(distance);
		chain.record.expires = chain.timer.expires;
		return add_apic_timer(&chain.timer);
	}
	at = ktime_add_ns(ktime_get(), distance);
	chain.record.expires = apic_timer_clock_to_tsc(CLOCK_MONOTONIC, at, NULL);
	hrtimer_start(&chain.hrtimer, at, HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

/* Cancel the interrupt, or wait for its handler. */
static void disarm(void)
{
	if (chain.trigger != APIC_MEASURE_HRTIMER)
		del_apic_timer_sync(&chain.timer);
	else
		hrtimer_cancel(&chain.hrtimer);
}

/**
 * measure_chain_read() - cause an interrupt, and wait for it
 * @to:		the user's buffer for the record
 * @size:	size of the buffer
 *
 * Context: Task; the device's mutex. Sleeps.
 * Return: size of a record; -ENXIO: nothing was chosen; -EINVAL: @size is too small; -EINTR,
 * -EFAULT, or as add_apic_timer().
 */
ssize_t measure_chain_read(char __user *to, size_t size)
{
	int ret;

	if (!chain.set)
		return -ENXIO;
	if (size < sizeof(chain.record))
		return -EINVAL;
	chain.record.number++;
	chain.record.exit = 0;
	chain.record.deferred = 0;
	reinit_completion(&chain.done);
	ret = arm(measure_random(&chain.random, chain.least_ns, chain.most_ns));
	if (ret)
		return ret;
	if (wait_for_completion_interruptible(&chain.done)) {
		disarm();
		/*
		 * If the handler has run, the procedure that it started will complete. The handler
		 * has not run if the core cancelled the timer, because the timer's CPU went offline
		 * and no other CPU accepts timers.
		 */
		if (chain.record.exit)
			wait_for_completion(&chain.done);
		return -EINTR;
	}
	/* The handler ends soon, on whichever CPU it runs: timer_expired(). */
	smp_cond_load_acquire(&chain.record.exit, VAL);
	if (copy_to_user(to, &chain.record, sizeof(chain.record)))
		return -EFAULT;
	return sizeof(chain.record);
}
