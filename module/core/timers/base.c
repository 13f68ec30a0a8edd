// SPDX-License-Identifier: GPL-2.0
/*
 * The timers of each CPU: pending queue, running timer, expiry, arming from
 * another CPU.
 *
 * A timer belongs to the base of @timer->cpu, whose lock covers it. It changes
 * its base without ever holding two locks: under the old one its cpu becomes
 * APIC_TIMER_CPU_MOVING, on which others wait, and under the new one the new
 * cpu. A handler is never run on two CPUs at a time: @timer->prev_cpu names
 * the CPU of its latest run, which may not have ended when the timer has moved
 * on, and @timer->prev_run which of that CPU's runs it is. Each run waits for
 * the one before. To wait for the CPU alone would not do: by then it may run
 * the same timer again and wait for us.
 */
#include <linux/cpumask.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/sched.h>

#include <trace/events/apic_timer.h>

#include "hw/smi.h"
#include "lib/param.h"
#include "lib/stats.h"
#include "mux/mux.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "policy/qos.h"
#include "timers/base.h"
#include "timers/dispatch.h"
#include "timers/state.h"
#include "tsc/tsc.h"

APIC_TIMER_PARAM(spin_budget_ns, 5000, 0, 1000000, "ns",
		 "longest that an expiry of mode exact may wait on the TSC, for timers that don't say");
APIC_TIMER_PARAM(defer_ns, 20000, 0, 1000000, "ns",
		 "longest that an event of the kernel's is held back so that an expiry of mode exact comes first; 0 is never");

/* TSC cycles */
static u64 defer_max, spin_max;

DEFINE_PER_CPU(struct apic_timer_base, apic_timer_base);

/**
 * apic_timer_base_lock() - lock the base that a timer belongs to
 * @timer:	the timer
 * @flags:	interrupt state, for apic_timer_base_unlock()
 *
 * Return: the base, locked.
 */
struct apic_timer_base *apic_timer_base_lock(const struct apic_timer_list *timer,
					     unsigned long *flags)
	__acquires(&base->lock)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	for (;;) {
		cpu = READ_ONCE(timer->cpu);
		if (likely(cpu != APIC_TIMER_CPU_MOVING)) {
			base = apic_timer_base_of(cpu);
			raw_spin_lock_irqsave(&base->lock, *flags);
			/* Not of this base, it may be changing. */
			if (likely(data_race(timer->cpu == cpu)))
				return base;
			raw_spin_unlock_irqrestore(&base->lock, *flags);
		}
		cpu_relax();
	}
}

/**
 * apic_timer_base_move() - let a timer belong to another base
 * @base:	its base, locked
 * @timer:	the timer, in no queue
 * @cpu:	CPU of the new base
 *
 * Return: the new base, locked instead of @base. Interrupts stay off.
 */
struct apic_timer_base *apic_timer_base_move(struct apic_timer_base *base,
					     struct apic_timer_list *timer,
					     unsigned int cpu)
{
	lockdep_assert_held(&base->lock);

	if (base->cpu == cpu)
		return base;

	/*
	 * The latest run was here, and is this one or over. If it is elsewhere
	 * it waits for one here, or did: the next need only wait for that.
	 */
	if (timer->prev_cpu == base->cpu)
		timer->prev_run = base->run;
	WRITE_ONCE(timer->cpu, APIC_TIMER_CPU_MOVING);
	raw_spin_unlock(&base->lock);

	base = apic_timer_base_of(cpu);
	raw_spin_lock(&base->lock);
	WRITE_ONCE(timer->cpu, cpu);
	return base;
}

static u64 spin_budget(const struct apic_timer_list *timer)
{
	return timer->spin_budget ?: spin_max;
}

/* What comes upon an interrupt now, as far as can be told. */
static enum apic_timer_cpu_state cpu_state_now(const struct apic_timer_mux *mux)
{
	if (!is_idle_task(current))
		return APIC_TIMER_CPU_BUSY;
	return mux->tick_stopped ? APIC_TIMER_CPU_TICK_STOPPED : APIC_TIMER_CPU_IDLE;
}

/* How to go about the head of the queue. */
static struct apic_timer_target target_of(const struct apic_timer_base *base,
					  const struct apic_timer_list *head)
{
	const struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);
	struct apic_timer_target target = { .expires = APIC_TIMER_NEVER };
	unsigned int state, mode, level;
	u64 budget, leave;

	if (!head)
		return target;

	target.expires = head->expires;
	if (unlikely(base->not_before) &&
	    (head->expires < base->not_before ||
	     head->expires - base->not_before < lead->exact[1])) {
		target.expires = max(target.expires, base->not_before);
		return target;
	}

	mode = apic_timer_mode_of(head);
	state = is_idle_task(current) ? APIC_TIMER_CPU_IDLE :
					APIC_TIMER_CPU_BUSY;
	if (mode == APIC_TIMER_EXACT) {
		target.exact = true;
		budget = spin_budget(head);
		target.defer_max = min(defer_max, lead->defer);
		target.lead[0] = min(lead->exact[0], budget);
		target.lead[1] = min(lead->exact[1], budget);
		/* To leave the interrupt takes about as long as to come in. */
		leave = lead->exact[0];
		level = base->expiring ? base->throttle.level :
			 apic_timer_throttle_level_at(&base->throttle,
						      head->expires);
		if (unlikely(level)) {
			/* Wait less: all else has waited for long. */
			leave = lead->mean[state];
			target.lead[0] = level == 1 ? min(leave, budget) : 0;
			target.lead[1] = target.lead[0];
		}
		/* Others would have nothing of it if we left only to be back. */
		target.serve_window = min(target.lead[0] + leave, budget);
	} else if (mode == APIC_TIMER_MEAN) {
		target.lead[0] = lead->mean[state];
		target.lead[1] = lead->mean[APIC_TIMER_CPU_TICK_STOPPED];
	}
	return target;
}

/* Arm for the head of the queue. */
static void program_head(struct apic_timer_base *base)
{
	const struct apic_timer_list *head = base->queue.first;
	struct apic_timer_target target = target_of(base, head);

	apic_timer_mux_set_target(&target);
	if (target.exact)
		apic_timer_qos_want(target.expires);
}

/* Another CPU has put a new head into our queue. */
static void program_kicked(void *unused)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&base->lock);
	if (base->online && !base->expiring)
		program_head(base);
	raw_spin_unlock(&base->lock);
}

/**
 * apic_timer_base_program() - arm for a new head, here or on the base's CPU
 * @base:	the base, locked and online
 */
void apic_timer_base_program(struct apic_timer_base *base)
{
	lockdep_assert_held(&base->lock);

	/* The end of the interrupt will. */
	if (base->expiring)
		return;

	if (base->cpu == smp_processor_id()) {
		program_head(base);
		return;
	}
	/*
	 * -EBUSY: an earlier kick is under way and will find this head, as it
	 * takes the lock. -ENXIO: the CPU is going away, and with it its
	 * timers, see apic_timer_drain_cpu().
	 */
	if (!smp_call_function_single_async(base->cpu, &base->kick))
		apic_timer_stats_inc(KICKS);
}

static bool runs_on(unsigned int cpu, const struct apic_timer_list *timer)
{
	/* Pairs with the releases in expire(): what the handler did is seen. */
	return smp_load_acquire(&apic_timer_base_of(cpu)->running) == timer;
}

/**
 * apic_timer_base_runs() - whether a timer's handler is running
 * @base:	the timer's base, locked
 * @timer:	the timer
 *
 * Return: true while it runs, on whatever CPU.
 */
bool apic_timer_base_runs(const struct apic_timer_base *base,
			  const struct apic_timer_list *timer)
{
	lockdep_assert_held(&base->lock);

	return runs_on(base->cpu, timer) || runs_on(timer->prev_cpu, timer);
}

/**
 * apic_timer_base_in_run() - whether a certain run of a handler is under way
 * @base:	of the CPU that runs it
 * @timer:	the timer, not followed
 * @run:	@base->run at the beginning of the run
 *
 * Return: false once it has ended; what it did is then seen.
 */
bool apic_timer_base_in_run(const struct apic_timer_base *base,
			    const struct apic_timer_list *timer,
			    unsigned int run)
{
	/* Pairs with both releases of @running in expire(). */
	if (smp_load_acquire(&base->running) != timer)
		return false;
	/* Pairs with the release of @run in expire(): earlier runs are over. */
	return smp_load_acquire(&base->run) == run;
}

/* Tell all about an expiry, for a user who asks what made it late. */
static void trace_receipt(const struct apic_timer_list *timer, unsigned int mode,
			  const struct apic_timer_dispatch *expiry,
			  const struct apic_timer_mux *mux)
{
	u64 kernel = mux->deadline[APIC_TIMER_MUX_KERNEL];
	struct apic_timer_receipt receipt = {
		.timer = timer,
		.function = expiry->function,
		.expires = expiry->expires,
		.entry = mux->entry,
		.ready = expiry->ready,
		.start = expiry->start,
		.lead = expiry->programmed_for ? mux->lead : 0,
		.delta = mux->delta,
		.deferred = kernel < expiry->ready ? expiry->ready - kernel : 0,
		.smi = apic_timer_smi_count() - mux->smi,
		.mode = mode,
		.cpu_state = expiry->cpu_state,
		.skipped = expiry->skipped,
	};

	trace_apic_timer_receipt(&receipt);
}

/* Run the handler of the head. Drops the lock while it runs. */
static void expire(struct apic_timer_base *base, struct apic_timer_list *timer)
	__must_hold(&base->lock)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	unsigned int mode = apic_timer_mode_of(timer);
	struct apic_timer_dispatch expiry = {
		.function = timer->function,
		.data = timer->data,
		.expires = timer->expires,
		.exact = mode == APIC_TIMER_EXACT,
		.skip_late = timer->flags & APIC_TIMER_SKIP_LATE,
		.cpu_state = cpu_state_now(mux),
	};
	unsigned int prev_cpu = timer->prev_cpu, prev_run = timer->prev_run;

	/* One expiry, one latency; and none when woken by something earlier. */
	if (mux->entry >= mux->programmed_for)
		expiry.programmed_for = mux->programmed_for;
	mux->programmed_for = 0;

	apic_timer_base_dequeue(base, timer);
	/* Pairs with apic_timer_base_in_run(): earlier runs are over. */
	smp_store_release(&base->run, base->run + 1);
	/* Pairs with apic_timer_base_in_run(): with @timer, @run is seen. */
	smp_store_release(&base->running, timer);
	timer->prev_cpu = base->cpu;
	raw_spin_unlock(&base->lock);

	/* The handler's last run, on another CPU, may not have ended. */
	if (unlikely(prev_cpu != base->cpu))
		while (apic_timer_base_in_run(apic_timer_base_of(prev_cpu),
					      timer, prev_run))
			cpu_relax();

	trace_apic_timer_expire_entry(timer, expiry.function, expiry.expires,
				      apic_timer_tsc_now());
	apic_timer_dispatch(&expiry);

	/* The timer may be gone from here on. */
	if (trace_apic_timer_expire_exit_enabled())
		trace_apic_timer_expire_exit(timer, expiry.function, expiry.start,
					     apic_timer_tsc_now());
	if (trace_apic_timer_receipt_enabled())
		trace_receipt(timer, mode, &expiry, mux);
	if (likely(!expiry.skipped)) {
		apic_timer_stats_inc(EXPIRED);
		apic_timer_stats_error(expiry.start - expiry.expires);
	}
	if (expiry.exact)
		apic_timer_stats_add(SPIN_CYCLES, expiry.start - expiry.ready);

	raw_spin_lock(&base->lock);
	/* Pairs with runs_on() and apic_timer_base_in_run(). */
	smp_store_release(&base->running, NULL);
}

/* Handlers run: what they take is part of a stretch. */
static void begin_busy(struct apic_timer_base *base,
		       const struct apic_timer_mux *mux, u64 programmed_for)
	__must_hold(&base->lock)
{
	const struct apic_timer_lead *lead = this_cpu_ptr(&apic_timer_lead);

	apic_timer_throttle_begin(&base->throttle, mux->entry, programmed_for,
				  lead->mean[cpu_state_now(mux)]);
}

/**
 * apic_timer_expire_due() - run what is due on this CPU
 * @mux:	of this CPU
 *
 * Called by the source from its interrupt, between apic_timer_mux_begin() and
 * apic_timer_mux_end(), if apic_timer_mux_timers_due(). A handler that arms a
 * timer for the past gets it run from the same loop, never by recursion. The
 * loop is bounded: after busy_us at a stretch, which interrupts in quick
 * succession add to, nothing runs for as long as the stretch took.
 *
 * Context: Hard interrupt, interrupts off.
 */
void apic_timer_expire_due(struct apic_timer_mux *mux)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);
	struct apic_timer_target target;
	u64 now = mux->entry, programmed_for = mux->programmed_for;
	bool begun;

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&base->lock);
	if (now >= base->not_before) {
		/* The rest of the machine has had its turn. */
		if (unlikely(base->not_before)) {
			base->not_before = 0;
			apic_timer_throttle_reset(&base->throttle,
						  base->throttle.end);
		}
		/* Only after a long stretch is it to be known before the first. */
		begun = base->throttle.level;
		if (unlikely(begun)) {
			begin_busy(base, mux, programmed_for);
			apic_timer_throttle_measure(&base->throttle, now);
		}
		base->expiring = true;
		for (;;) {
			target = target_of(base, base->queue.first);
			if (now < apic_timer_mux_serve_from(mux, &target))
				break;
			if (begun && now - base->throttle.start >
					apic_timer_throttle_busy_max) {
				base->not_before =
					apic_timer_throttle_until(&base->throttle,
								  now);
				break;
			}
			mux->served = true;
			expire(base, base->queue.first);
			if (!begun)
				begin_busy(base, mux, programmed_for);
			begun = true;
			now = apic_timer_tsc_now();
			apic_timer_throttle_measure(&base->throttle, now);
		}
		base->expiring = false;
		if (begun)
			apic_timer_throttle_end(&base->throttle, now);
	}

	program_head(base);
	raw_spin_unlock(&base->lock);
}

/**
 * apic_timer_base_reprogram() - arm this CPU's hardware again, which has slept
 *
 * Context: Interrupts off; this CPU is online.
 */
void apic_timer_base_reprogram(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&base->lock);
	program_head(base);
	apic_timer_mux_reprogram();
	raw_spin_unlock(&base->lock);
}

/**
 * apic_timer_base_shift() - the TSC is another: move all pending timers
 * @shift:	TSC cycles to move them by
 *
 * Context: Interrupts off, no other CPU running.
 */
void apic_timer_base_shift(s64 shift)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	lockdep_assert_irqs_disabled();
	for_each_possible_cpu(cpu) {
		base = apic_timer_base_of(cpu);
		raw_spin_lock(&base->lock);
		apic_timer_queue_shift(&base->queue, shift);
		/* The stretch of handlers is over; these are TSC values too. */
		if (base->online)
			base->not_before = 0;
		apic_timer_throttle_reset(&base->throttle, apic_timer_tsc_now());
		raw_spin_unlock(&base->lock);
	}
}

/**
 * apic_timer_base_snapshot() - look at pending timers, in the order of expiry
 * @base:	whose
 * @cursor:	initialised, or how far earlier calls have come
 * @views:	filled in: room for APIC_TIMER_QUEUE_GROUP
 *
 * Timers may come and go between calls: see apic_timer_queue_walk(). However
 * many are pending, interrupts are off for a few of them at a time.
 *
 * Context: Any but NMI.
 * Return: number of @views filled in; 0 at the end. In any case the caller ends
 * with apic_timer_base_snapshot_end().
 */
unsigned int apic_timer_base_snapshot(struct apic_timer_base *base,
				      struct apic_timer_queue_cursor *cursor,
				      struct apic_timer_base_view *views)
{
	struct apic_timer_list *timers[APIC_TIMER_QUEUE_GROUP];
	unsigned int i, n;
	unsigned long flags;
	bool more;

	do {
		raw_spin_lock_irqsave(&base->lock, flags);
		more = apic_timer_queue_walk(&base->queue, cursor, timers, &n);
		for (i = 0; i < n; i++)
			views[i] = (struct apic_timer_base_view) {
				.timer = timers[i],
				.function = timers[i]->function,
				.expires = timers[i]->expires,
				.flags = timers[i]->flags,
			};
		raw_spin_unlock_irqrestore(&base->lock, flags);
	} while (!n && more);
	return n;
}

/**
 * apic_timer_base_snapshot_end() - look at no more timers
 * @base:	as for apic_timer_base_snapshot()
 * @cursor:	likewise, or only initialised
 *
 * Context: Any but NMI.
 */
void apic_timer_base_snapshot_end(struct apic_timer_base *base,
				  struct apic_timer_queue_cursor *cursor)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	apic_timer_queue_walk_end(&base->queue, cursor);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/**
 * apic_timer_base_peek() - what the head of a queue is like
 * @base:	the base, locked
 * @head:	filled in; as of an empty queue when the base is offline
 */
void apic_timer_base_peek(const struct apic_timer_base *base,
			  struct apic_timer_base_head *head)
{
	const struct apic_timer_list *first = base->queue.first;

	lockdep_assert_held(&base->lock);

	*head = (struct apic_timer_base_head) {
		.expires = APIC_TIMER_NEVER,
		.budget = spin_max,
	};
	if (!first || !base->online)
		return;
	head->expires = first->expires;
	head->exact = apic_timer_mode_of(first) == APIC_TIMER_EXACT;
	if (head->exact)
		head->budget = spin_budget(first);
}

/**
 * apic_timer_base_wake() - interrupt a CPU, which may be idle
 * @cpu:	the CPU; the one that calls is awake
 *
 * Context: Any but NMI.
 */
void apic_timer_base_wake(unsigned int cpu)
{
	struct apic_timer_base *base = apic_timer_base_of(cpu);
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	/* -EBUSY and -ENXIO: see apic_timer_base_program(). */
	if (base->online && cpu != smp_processor_id() &&
	    !smp_call_function_single_async(cpu, &base->kick))
		apic_timer_stats_inc(KICKS);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/**
 * apic_timer_base_init() - set up the bases, all of them offline
 */
void apic_timer_base_init(void)
{
	struct apic_timer_base *base;
	unsigned int cpu;

	apic_timer_throttle_init();
	defer_max = apic_timer_ns_to_tsc(defer_ns);
	/* A timer's own budget has as many bits. */
	spin_max = min_t(u64, apic_timer_ns_to_tsc(spin_budget_ns), U32_MAX);

	for_each_possible_cpu(cpu) {
		base = apic_timer_base_of(cpu);
		raw_spin_lock_init(&base->lock);
		base->cpu = cpu;
		apic_timer_queue_init(&base->queue);
		INIT_CSD(&base->kick, program_kicked, NULL);
	}
}

/**
 * apic_timer_base_online() - let this CPU take timers
 *
 * Context: Task, bound to the CPU, whose source is attached.
 */
void apic_timer_base_online(void)
{
	struct apic_timer_base *base = this_cpu_ptr(&apic_timer_base);
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	WRITE_ONCE(base->online, true);
	base->open = true;
	base->not_before = 0;
	raw_spin_unlock_irqrestore(&base->lock, flags);
}
