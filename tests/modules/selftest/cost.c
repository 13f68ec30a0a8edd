// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the cost of arming, changing, deleting and expiry while other timers are pending, for
 * ours and for the kernel's hrtimers.
 */
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "compat/hrtimer.h"
#include "selftest.h"

#define PROBES 1000

static const unsigned int counts[] = { 1, 10, 100, 1000, 100000, 1000000 };

#define PENDING_MAX 1000000

/* A random moment of the hour after the next: none of them ever runs. */
static u64 somewhere_ns(void)
{
	return 3600 * NSEC_PER_SEC +
	       mul_u64_u32_shr(3600 * NSEC_PER_SEC, selftest_random(), 32);
}

/**
 * struct rival - a kind of timer
 * @name:	for the reader
 * @size:	of one
 * @init:	initialise one
 * @moment:	convert a distance in nanoseconds to a moment, as @add takes it
 * @add:	arm one that is not pending
 * @mod:	give a pending one another moment
 * @del:	delete one
 * @del_sync:	delete one and wait for its handler
 * @nothing:	do nothing, called like the others
 */
struct rival {
	const char *name;
	size_t size;
	void (*init)(void *timer);
	u64 (*moment)(u64 ns);
	void (*add)(void *timer, u64 moment);
	void (*mod)(void *timer, u64 moment);
	void (*del)(void *timer, u64 unused);
	void (*del_sync)(void *timer, u64 unused);
	void (*nothing)(void *timer, u64 unused);
};

static bool expired;

static void ours_expired(unsigned long long now, unsigned long data)
{
	WRITE_ONCE(expired, true);
}

static void ours_init(void *timer)
{
	struct apic_timer_list *t = timer;

	t->function = ours_expired;
	init_apic_timer(t);
	t->flags = APIC_TIMER_RAW;
}

static u64 ours_moment(u64 ns)
{
	return apic_timer_now() + apic_timer_ns_to_tsc(ns);
}

static void ours_add(void *timer, u64 moment)
{
	struct apic_timer_list *t = timer;

	t->expires = moment;
	add_apic_timer(t);
}

static void ours_mod(void *timer, u64 moment)
{
	mod_apic_timer(timer, moment);
}

static void ours_del(void *timer, u64 unused)
{
	del_apic_timer(timer);
}

static void ours_del_sync(void *timer, u64 unused)
{
	del_apic_timer_sync(timer);
}

static void nothing(void *timer, u64 unused)
{
}

static enum hrtimer_restart theirs_expired(struct hrtimer *timer)
{
	WRITE_ONCE(expired, true);
	return HRTIMER_NORESTART;
}

static void theirs_init(void *timer)
{
	apic_timer_hrtimer_setup(timer, theirs_expired, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
}

static u64 theirs_moment(u64 ns)
{
	return ktime_add_ns(ktime_get(), ns);
}

/* It may be pending or not. */
static void theirs_add(void *timer, u64 moment)
{
	hrtimer_start(timer, moment, HRTIMER_MODE_ABS_PINNED_HARD);
}

static void theirs_del(void *timer, u64 unused)
{
	hrtimer_try_to_cancel(timer);
}

static void theirs_del_sync(void *timer, u64 unused)
{
	hrtimer_cancel(timer);
}

static const struct rival rivals[] = {
	{ "apic_timer", sizeof(struct apic_timer_list), ours_init, ours_moment,
	  ours_add, ours_mod, ours_del, ours_del_sync, nothing },
	{ "hrtimer", sizeof(struct hrtimer), theirs_init, theirs_moment,
	  theirs_add, theirs_add, theirs_del, theirs_del_sync, nothing },
};

/* Durations in cycles. */
struct cost {
	u64 sum, min, max;
};

static void cost_add(struct cost *cost, u64 took)
{
	cost->sum += took;
	cost->min = min(cost->min, took);
	cost->max = max(cost->max, took);
}

static u64 cycles(void (*call)(void *timer, u64 moment), void *timer,
		  u64 moment)
{
	u64 before, took;

	local_irq_disable();
	before = apic_timer_now();
	call(timer, moment);
	took = apic_timer_now() - before;
	local_irq_enable();
	return took;
}

/* Measurement with @timers[@pending], while the rest are pending. */
struct probe {
	const struct rival *rival;
	void *timers;
	unsigned int pending;
	u64 overhead;		/* of measuring: not counted */
};

static void *timer_at(const struct probe *probe, unsigned int i)
{
	return probe->timers + i * probe->rival->size;
}

/* Return a timer that is not pending. */
static void *spare(const struct probe *probe)
{
	return timer_at(probe, probe->pending);
}

static u64 cost_of(const struct probe *probe,
		   void (*call)(void *timer, u64 moment), void *timer, u64 ns)
{
	u64 took = cycles(call, timer, probe->rival->moment(ns));

	return took - min(took, probe->overhead);
}

static u64 add_not_head(const struct probe *probe)
{
	u64 took = cost_of(probe, probe->rival->add, spare(probe),
			   somewhere_ns());

	probe->rival->del_sync(spare(probe), 0);
	return took;
}

static u64 add_new_head(const struct probe *probe)
{
	u64 took = cost_of(probe, probe->rival->add, spare(probe),
			   1800 * NSEC_PER_SEC);

	probe->rival->del_sync(spare(probe), 0);
	return took;
}

/* Among others that stay: each takes its position in the order. */
static u64 add_to_stay(const struct probe *probe)
{
	void *timer = timer_at(probe, selftest_random() % probe->pending);

	probe->rival->del(timer, 0);
	return cost_of(probe, probe->rival->add, timer, somewhere_ns());
}

static u64 modify(const struct probe *probe)
{
	u64 took;

	probe->rival->add(spare(probe), probe->rival->moment(somewhere_ns()));
	took = cost_of(probe, probe->rival->mod, spare(probe), somewhere_ns());
	probe->rival->del_sync(spare(probe), 0);
	return took;
}

static u64 delete_recent(const struct probe *probe)
{
	probe->rival->add(spare(probe), probe->rival->moment(somewhere_ns()));
	return cost_of(probe, probe->rival->del, spare(probe), 0);
}

static u64 delete_recent_sync(const struct probe *probe)
{
	probe->rival->add(spare(probe), probe->rival->moment(somewhere_ns()));
	return cost_of(probe, probe->rival->del_sync, spare(probe), 0);
}

/* Delete a timer that has been pending for longer. */
static u64 delete_old(const struct probe *probe)
{
	void *timer = timer_at(probe, selftest_random() % probe->pending);
	u64 took = cost_of(probe, probe->rival->del, timer, 0);

	probe->rival->add(timer, probe->rival->moment(somewhere_ns()));
	return took;
}

/* Return how long it interrupts this task, including entry and exit. */
static u64 expiry(const struct probe *probe)
{
	u64 gap = 0, before, now;

	WRITE_ONCE(expired, false);
	probe->rival->add(spare(probe), probe->rival->moment(20000));
	before = apic_timer_now();
	do {
		now = apic_timer_now();
		gap = max(gap, now - before);
		before = now;
	} while (!READ_ONCE(expired));
	now = apic_timer_now();
	return max(gap, now - before);
}

static const struct {
	const char *name;
	u64 (*measure)(const struct probe *probe);
} costs[] = {
	{ "add", add_not_head },
	{ "add_new_head", add_new_head },
	{ "add_to_stay", add_to_stay },
	{ "modify", modify },
	{ "delete_recent", delete_recent },
	{ "delete_recent_sync", delete_recent_sync },
	{ "delete_old", delete_old },
	{ "expiry", expiry },
};

static struct cost
results[ARRAY_SIZE(rivals)][ARRAY_SIZE(counts)][ARRAY_SIZE(costs)];

static void measure_all(const struct probe *probe, struct cost *result)
{
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(costs); i++, result++) {
		*result = (struct cost) { .min = U64_MAX };
		for (n = 0; n < PROBES; n++)
			cost_add(result, costs[i].measure(probe));
	}
}

static void measure(struct selftest *test, unsigned int r)
{
	const struct rival *rival = &rivals[r];
	struct probe probe = { .rival = rival };
	unsigned int i;

	probe.timers = kvcalloc(PENDING_MAX + 1, rival->size, GFP_KERNEL);
	if (!EXPECT(test, probe.timers))
		return;
	for (i = 0; i <= PENDING_MAX; i++)
		rival->init(timer_at(&probe, i));
	/* The second time, everything is in the caches. */
	for (i = 0; i < 2; i++)
		probe.overhead = cycles(rival->nothing, spare(&probe), 0);

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		for (; probe.pending < counts[i]; probe.pending++) {
			rival->add(spare(&probe),
				   rival->moment(somewhere_ns()));
			cond_resched();
		}
		measure_all(&probe, results[r][i]);
	}
	while (probe.pending--) {
		rival->del_sync(spare(&probe), 0);
		cond_resched();
	}
	kvfree(probe.timers);
}

/* Cycles of each rival, on one line for each count of pending timers. */
static void cost(struct selftest *test)
{
	unsigned int i, n, r;

	for (r = 0; r < ARRAY_SIZE(rivals); r++)
		measure(test, r);
	for (i = 0; i < ARRAY_SIZE(costs); i++)
		for (n = 0; n < ARRAY_SIZE(counts); n++) {
			selftest_note(test, "%s, %u pending:", costs[i].name,
				      counts[n]);
			for (r = 0; r < ARRAY_SIZE(rivals); r++) {
				const struct cost *c = &results[r][n][i];

				selftest_note(test, " %s %llu (%llu..%llu)",
					      rivals[r].name,
					      div_u64(c->sum, PROBES), c->min,
					      c->max);
			}
			selftest_note(test, "\n");
		}
}

const struct selftest_case selftest_cost_cases[] = {
	CASE(cost),
	{}
};
