// SPDX-License-Identifier: GPL-2.0
/*
 * What arming costs while others are pending, beside the kernel's hrtimers.
 */
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat/hrtimer.h"
#include "selftest.h"

#define PROBES 1000
#define PENDING_MAX 100000

/* Somewhere in an hour that is an hour away: none of them ever runs. */
static u64 somewhere_ns(void)
{
	return 3600 * NSEC_PER_SEC +
	       mul_u64_u32_shr(3600 * NSEC_PER_SEC, selftest_random(), 32);
}

struct rival {
	const char *name;
	size_t size;
	void (*init)(void *timer);
	void (*set)(void *timer, u64 ns);
	void (*add)(void *timer);
	void (*del)(void *timer);
};

static void ours_init(void *timer)
{
	struct apic_timer_list *t = timer;

	t->function = selftest_shot_handler;
	init_apic_timer(t);
}

static void ours_set(void *timer, u64 ns)
{
	struct apic_timer_list *t = timer;

	t->expires = apic_timer_now() + apic_timer_ns_to_tsc(ns);
}

static void ours_add(void *timer)
{
	add_apic_timer(timer);
}

static void ours_del(void *timer)
{
	del_apic_timer(timer);
}

static enum hrtimer_restart unused(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static void theirs_init(void *timer)
{
	apic_timer_hrtimer_setup(timer, unused, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
}

static void theirs_set(void *timer, u64 ns)
{
	hrtimer_set_expires(timer, ktime_add_ns(ktime_get(), ns));
}

static void theirs_add(void *timer)
{
	hrtimer_start_expires(timer, HRTIMER_MODE_ABS_PINNED_HARD);
}

static void theirs_del(void *timer)
{
	hrtimer_cancel(timer);
}

static const struct rival rivals[] = {
	{ "add_apic_timer", sizeof(struct apic_timer_list), ours_init,
	  ours_set, ours_add, ours_del },
	{ "hrtimer_start", sizeof(struct hrtimer), theirs_init,
	  theirs_set, theirs_add, theirs_del },
};

/* Arm one beside those pending, at many places. */
static void probe(struct selftest *test, const struct rival *rival,
		  unsigned int pending)
{
	void *timer = kzalloc(rival->size, GFP_KERNEL);
	u64 before, took, sum = 0, least = U64_MAX, most = 0;
	unsigned int i;

	if (!EXPECT(test, timer))
		return;
	rival->init(timer);
	for (i = 0; i < PROBES; i++) {
		rival->set(timer, somewhere_ns());
		local_irq_disable();
		before = apic_timer_now();
		rival->add(timer);
		took = apic_timer_now() - before;
		local_irq_enable();
		rival->del(timer);
		sum += took;
		least = min(least, took);
		most = max(most, took);
	}
	selftest_note(test, "%s, %u pending: mean %llu min %llu max %llu cycles\n",
		      rival->name, pending, div_u64(sum, PROBES), least, most);
	kfree(timer);
}

static void measure(struct selftest *test, const struct rival *rival)
{
	static const unsigned int counts[] = { 1, 1000, PENDING_MAX };
	void *timers = kvcalloc(PENDING_MAX, rival->size, GFP_KERNEL);
	unsigned int i, pending = 0;

	if (!EXPECT(test, timers))
		return;
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		for (; pending < counts[i]; pending++) {
			void *timer = timers + pending * rival->size;

			rival->init(timer);
			rival->set(timer, somewhere_ns());
			rival->add(timer);
			cond_resched();
		}
		probe(test, rival, pending);
	}
	while (pending--) {
		rival->del(timers + pending * rival->size);
		cond_resched();
	}
	kvfree(timers);
}

static void insertion_cost(struct selftest *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rivals); i++)
		measure(test, &rivals[i]);
}

const struct selftest_case selftest_cost_cases[] = {
	CASE(insertion_cost),
	{}
};
