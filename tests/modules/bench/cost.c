// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the cost of operations on timers, in TSC cycles, while others are pending.
 *
 * Write TIMER WHAT COUNT SEED to "cost". WHAT is
 *
 *	fill	add timers until COUNT are pending: a sample for each added
 *	add	add one more, not the first to expire; COUNT times
 *	fresh	initialise a timer, as one that is allocated for a single shot
 *		is, and add it, not the first to expire
 *	head	add one that is the first to expire
 *	modify	give a pending timer another moment, not the first
 *	delete	delete the timer added last
 *	older	delete one of those that "fill" added, which is then added again
 *		for the same moment
 *	expire	what a shot takes from the thread that it interrupts: from
 *		before the interrupt until after it; nothing happens in the
 *		handler
 *	empty	delete all, in random order: a sample for each
 *
 * Pending timers expire at random moments of the hour after the next.
 */
#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bench.h"

#define HOUR_NS		(3600ULL * NSEC_PER_SEC)
#define HEAD_NS		(100ULL * NSEC_PER_USEC)
#define SHOT_NS		(50ULL * NSEC_PER_USEC)
/* A delayed hrtimer_interrupt() postpones its next one by 100 ms. */
#define SHOT_LIMIT_NS	(10ULL * NSEC_PER_SEC)

static struct bench_ops *ops;		/* kind of the pending timers */
static void **timers;
static unsigned int pending;
static u64 *moments;			/* of each */
static u64 earliest;
static u64 overhead;			/* cycles from one TSC read to the next */
static struct rnd_state random;
static bool expired;

static u32 random_below(u32 limit)
{
	return mul_u64_u32_shr(prandom_u32_state(&random), limit, 32);
}

static u64 somewhere(void)
{
	return ops->moment(HOUR_NS +
			   mul_u64_u32_shr(HOUR_NS, prandom_u32_state(&random),
					   32));
}

/* The same, but not before all pending timers. */
static u64 not_first(void)
{
	u64 moment;

	do {
		moment = somewhere();
	} while (pending && moment <= earliest);
	return moment;
}

/* Execute STATEMENT with interrupts off, and take a sample of its time. */
#define COST(statement) do {						\
	u64 before;							\
									\
	local_irq_disable();						\
	before = rdtsc_ordered();					\
	statement;							\
	bench_sample((s64)(rdtsc_ordered() - before - overhead));	\
	local_irq_enable();						\
} while (0)

static void *new_timer(void)
{
	void *timer = kzalloc(ops->size, GFP_KERNEL);

	if (timer)
		ops->init(timer);
	return timer;
}

static int fill(unsigned int count)
{
	u64 moment;
	int ret = 0;

	for (; pending < count && !ret; cond_resched()) {
		timers[pending] = new_timer();
		if (!timers[pending])
			return -ENOMEM;
		moment = somewhere();
		moments[pending] = moment;
		earliest = pending ? min(earliest, moment) : moment;
		COST(ret = ops->add(timers[pending], moment));
		if (ret)
			kfree(timers[pending]);
		else
			pending++;
	}
	return ret;
}

static void empty(void)
{
	while (pending) {
		unsigned int i = random_below(pending--);

		COST(ops->del(timers[i]));
		kfree(timers[i]);
		timers[i] = timers[pending];
		cond_resched();
	}
}

static int older(unsigned int count)
{
	if (!pending)
		return -EINVAL;
	while (count--) {
		unsigned int i = random_below(pending);

		COST(ops->del(timers[i]));
		if (ops->add(timers[i], moments[i])) {
			kfree(timers[i]);
			timers[i] = timers[--pending];
			return -EIO;
		}
	}
	return 0;
}

/**
 * bench_expired() - the whole of a handler whose shot's cost is measured
 */
void bench_expired(void)
{
	WRITE_ONCE(expired, true);
}
EXPORT_SYMBOL_GPL(bench_expired);

/*
 * Read the TSC until the shot has run, which shows as a gap: the last one before the flag was
 * found set, or the one after if the interrupt came between the two reads. The gap without a shot
 * is subtracted.
 */
static int expire(void *timer)
{
	u64 before, now, gap, base = U64_MAX, limit = bench_cycles(SHOT_LIMIT_NS);
	u64 start, last;
	int ret;

	WRITE_ONCE(expired, false);
	preempt_disable();
	ret = ops->add(timer, ops->moment(SHOT_NS));
	start = rdtsc_ordered();
	now = start;
	do {
		before = now;
		now = rdtsc_ordered();
		gap = now - before;
		base = min(base, gap);
	} while (!READ_ONCE(expired) && now - start < limit && !ret);
	last = rdtsc_ordered() - now;
	preempt_enable();

	if (!ret && !READ_ONCE(expired)) {
		ops->del(timer);
		ret = -ETIMEDOUT;
	}
	if (!ret)
		bench_sample((s64)(max(gap, last) - base));
	return ret;
}

static int probe(const char *what, unsigned int count)
{
	void *timer = new_timer();
	u64 moment;
	int ret = 0;

	if (!timer)
		return -ENOMEM;
	while (count-- && !ret) {
		moment = not_first();
		if (!strcmp(what, "add")) {
			COST(ret = ops->add(timer, moment));
			ops->del(timer);
		} else if (!strcmp(what, "fresh")) {
			COST(ops->init(timer); ret = ops->add(timer, moment));
			ops->del(timer);
		} else if (!strcmp(what, "head")) {
			moment = ops->moment(HEAD_NS);
			COST(ret = ops->add(timer, moment));
			ops->del(timer);
		} else if (!strcmp(what, "modify")) {
			ret = ops->add(timer, not_first());
			COST(ops->modify(timer, moment));
			ops->del(timer);
		} else if (!strcmp(what, "delete")) {
			ret = ops->add(timer, moment);
			COST(ops->del(timer));
		} else if (!strcmp(what, "expire")) {
			ret = expire(timer);
		} else {
			ret = -EINVAL;
		}
		cond_resched();
	}
	kfree(timer);
	return ret;
}

/* Return the time of two successive reads of the TSC. */
static u64 measure_overhead(void)
{
	u64 before, least = U64_MAX;
	unsigned int i;

	local_irq_disable();
	for (i = 0; i < 100; i++) {
		before = rdtsc_ordered();
		barrier();
		least = min(least, rdtsc_ordered() - before);
	}
	local_irq_enable();
	return least;
}

static int cost_command(const char *text)
{
	char name[24], what[12];
	unsigned int count;
	struct bench_ops *asked;
	u64 seed;

	if (sscanf(text, "%23s %11s %u %llu", name, what, &count, &seed) != 4 ||
	    count > BENCH_SHOTS_MAX)
		return -EINVAL;
	asked = bench_find_ops(name);
	if (!asked || (pending && asked != ops))
		return -EINVAL;
	ops = asked;

	if (!timers)
		timers = kvcalloc(BENCH_SHOTS_MAX, sizeof(*timers), GFP_KERNEL);
	if (!moments)
		moments = kvcalloc(BENCH_SHOTS_MAX, sizeof(*moments),
				   GFP_KERNEL);
	if (!timers || !moments)
		return -ENOMEM;

	prandom_seed_state(&random, seed);
	overhead = measure_overhead();
	bench_samples_reset();
	if (!strcmp(what, "fill"))
		return fill(count);
	if (!strcmp(what, "older"))
		return older(count);
	if (!strcmp(what, "empty")) {
		empty();
		return 0;
	}
	return probe(what, count);
}

DEFINE_BENCH_FILE(cost);

/**
 * bench_cost_end() - delete the timers of a kind that is removed
 * @gone:	the kind
 *
 * Context: under bench_lock().
 */
void bench_cost_end(struct bench_ops *gone)
{
	if (gone == ops) {
		empty();
		ops = NULL;
	}
}

/**
 * bench_cost_exit() - free the memory
 */
void bench_cost_exit(void)
{
	kvfree(timers);
	kvfree(moments);
}
