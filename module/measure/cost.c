// SPDX-License-Identifier: GPL-2.0
/*
 * Measure operations on a timer while others are pending, for our timers and for hrtimers.
 *
 * The others expire at random moments between one and two hours from now, so that none
 * expires during the measurement.
 */
#include <linux/apic_timer.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "compat.h"
#include "measure.h"
#include "random.h"

#define HOUR_NS	(3600ULL * NSEC_PER_SEC)
/* Number of times that the measurement's own overhead is measured. The minimum counts. */
#define ROUNDS	100
/* Maximum number of moments drawn to find one that is not the first */
#define TRIES	64

/**
 * struct either - a timer of either kind
 * @ours:	timer for %APIC_MEASURE_APIC
 * @hrtimer:	timer for %APIC_MEASURE_HRTIMER
 * @moment:	its expiry: TSC, or ns of CLOCK_MONOTONIC
 */
struct either {
	union {
		struct apic_timer_list ours;
		struct hrtimer hrtimer;
	};
	u64 moment;
};

/**
 * struct crowd - pending timers, and one more that is measured
 * @hrtimers:	the timers are hrtimers
 * @pending:	number of pending timers
 * @random:	state of the random numbers
 * @earliest:	@moment of the first of @timers to expire
 * @overhead:	overhead of the measurement itself, in TSC cycles
 * @timers:	the pending timers, followed by the measured one
 */
struct crowd {
	bool hrtimers;
	u32 pending;
	u64 random;
	u64 earliest;
	u64 overhead;
	struct either *timers;
};

static void never(unsigned long long now, unsigned long data)
{
}

static enum hrtimer_restart hrtimer_never(struct hrtimer *hrtimer)
{
	return HRTIMER_NORESTART;
}

static void init(const struct crowd *crowd, struct either *timer)
{
	if (crowd->hrtimers) {
		measure_hrtimer_setup(&timer->hrtimer, hrtimer_never, CLOCK_MONOTONIC,
				      HRTIMER_MODE_ABS_PINNED_HARD);
		return;
	}
	timer->ours.function = never;
	init_apic_timer(&timer->ours);
	timer->ours.flags = APIC_TIMER_EXACT;
}

static int add(const struct crowd *crowd, struct either *timer)
{
	if (crowd->hrtimers) {
		hrtimer_start(&timer->hrtimer, timer->moment, HRTIMER_MODE_ABS_PINNED_HARD);
		return 0;
	}
	timer->ours.expires = timer->moment;
	return add_apic_timer(&timer->ours);
}

static void del(const struct crowd *crowd, struct either *timer)
{
	if (crowd->hrtimers)
		hrtimer_try_to_cancel(&timer->hrtimer);
	else
		del_apic_timer(&timer->ours);
}

static void modify(const struct crowd *crowd, struct either *timer)
{
	if (crowd->hrtimers)
		hrtimer_start(&timer->hrtimer, timer->moment, HRTIMER_MODE_ABS_PINNED_HARD);
	else
		mod_apic_timer(&timer->ours, timer->moment);
}

static u64 somewhere(struct crowd *crowd)
{
	u64 ns = HOUR_NS + mul_u64_u32_shr(HOUR_NS, measure_random(&crowd->random, 0, U32_MAX), 32);

	return crowd->hrtimers ? ktime_get() + ns : apic_timer_now() + apic_timer_ns_to_tsc(ns);
}

/*
 * As somewhere(), but not before all pending timers. If they expire so late that no try
 * succeeds, return a moment right after the first of them.
 */
static u64 not_first(struct crowd *crowd)
{
	unsigned int i;
	u64 moment;

	for (i = 0; i < TRIES; i++) {
		moment = somewhere(crowd);
		if (!crowd->pending || moment > crowd->earliest)
			return moment;
	}
	return crowd->earliest + 1;
}

/* TSC cycles of @call with interrupts off */
#define CYCLES_OF(crowd, call) ({					\
	u64 start_, end_;						\
									\
	local_irq_disable();						\
	start_ = rdtsc_ordered();					\
	call;								\
	end_ = rdtsc_ordered();						\
	local_irq_enable();						\
	end_ -= start_;							\
	(u32)min_t(u64, end_ - min(end_, (crowd)->overhead), U32_MAX);	\
})

static u64 overhead(void)
{
	const struct crowd none = {};
	u32 least = U32_MAX;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++)
		least = min(least, CYCLES_OF(&none, barrier()));
	return least;
}

static int fill(struct crowd *crowd, u32 count)
{
	struct either *timer;
	int ret;

	crowd->earliest = U64_MAX;
	for (; crowd->pending < count; cond_resched()) {
		timer = &crowd->timers[crowd->pending];
		init(crowd, timer);
		timer->moment = somewhere(crowd);
		ret = add(crowd, timer);
		if (ret)
			return ret;
		crowd->pending++;
		crowd->earliest = min(crowd->earliest, timer->moment);
		if (signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* As del(), and wait for the handler, after which the timer may be freed. */
static void end(const struct crowd *crowd, struct either *timer)
{
	if (crowd->hrtimers)
		hrtimer_cancel(&timer->hrtimer);
	else
		del_apic_timer_sync(&timer->ours);
}

/*
 * The timers may expire meanwhile, on another CPU if the caller has not bound itself to one: when
 * a virtual machine goes on after hours, for example.
 */
static void empty(struct crowd *crowd)
{
	while (crowd->pending) {
		end(crowd, &crowd->timers[--crowd->pending]);
		cond_resched();
	}
}

static int measure(struct crowd *crowd, u32 operation, u32 *cycles)
{
	struct either *more = &crowd->timers[crowd->pending], *older;
	int ret = 0;

	switch (operation) {
	case APIC_MEASURE_ADD:
		more->moment = not_first(crowd);
		*cycles = CYCLES_OF(crowd, ret = add(crowd, more));
		del(crowd, more);
		break;
	case APIC_MEASURE_DELETE:
		more->moment = not_first(crowd);
		ret = add(crowd, more);
		*cycles = CYCLES_OF(crowd, del(crowd, more));
		break;
	case APIC_MEASURE_MODIFY:
		more->moment = not_first(crowd);
		ret = add(crowd, more);
		more->moment = not_first(crowd);
		*cycles = CYCLES_OF(crowd, modify(crowd, more));
		del(crowd, more);
		break;
	default:
		older = &crowd->timers[measure_random(&crowd->random, 0, crowd->pending - 1)];
		*cycles = CYCLES_OF(crowd, del(crowd, older));
		ret = add(crowd, older);
		break;
	}
	return ret;
}

/**
 * measure_cost() - measure the cost of an operation on a timer
 * @a:		the user's request
 *
 * Context: Task; the device's mutex. Sleeps.
 * Return: 0, -EINVAL, -ENOMEM, -EFAULT, -EINTR, or as add_apic_timer().
 */
long measure_cost(const struct apic_measure_cost *a)
{
	struct crowd crowd = {
		.hrtimers = a->trigger == APIC_MEASURE_HRTIMER,
		.random = a->seed,
	};
	u32 *cycles, i;
	long ret;

	if (a->operation >= APIC_MEASURE_OPERATIONS || a->trigger > APIC_MEASURE_HRTIMER ||
	    a->pending > APIC_MEASURE_PENDING_MAX || !a->count ||
	    a->count > MEASURE_COUNT_MAX || !a->seed ||
	    (a->operation == APIC_MEASURE_OLDER && !a->pending))
		return -EINVAL;
	cycles = kvmalloc_array(a->count, sizeof(*cycles), GFP_KERNEL);
	crowd.timers = kvcalloc(a->pending + 1, sizeof(*crowd.timers), GFP_KERNEL);
	ret = -ENOMEM;
	if (!cycles || !crowd.timers)
		goto free;
	crowd.overhead = overhead();
	ret = fill(&crowd, a->pending);
	if (!ret)
		init(&crowd, &crowd.timers[a->pending]);
	for (i = 0; i < a->count && !ret; i++) {
		ret = measure(&crowd, a->operation, &cycles[i]);
		if (!ret && signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	/* No timer has been measured unless this loop was entered. */
	if (i)
		end(&crowd, &crowd.timers[a->pending]);
	empty(&crowd);
	if (!ret && copy_to_user(u64_to_user_ptr(a->cycles), cycles, a->count * sizeof(*cycles)))
		ret = -EFAULT;
free:
	kvfree(crowd.timers);
	kvfree(cycles);
	return ret;
}
