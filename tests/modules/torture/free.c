// SPDX-License-Identifier: GPL-2.0
/*
 * Timers on the heap travel from CPU to CPU, and are finally freed by their own handlers, or by
 * whoever has deleted them.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "../irq_free.h"
#include "torture.h"

#define MAGIC	0x600d714e5UL
#define MOST	1000	/* at a time */

/**
 * struct heap - a timer on the heap
 * @timer:	the timer
 * @magic:	%MAGIC while it lives
 * @stops:	number of CPUs still to visit
 * @expires:	its moment
 * @cpu:	the CPU that it was armed on
 * @since:	torture_onoff_now() before arming
 * @state:	random numbers for the handler
 */
struct heap {
	struct apic_timer_list timer;
	unsigned long magic;
	unsigned int stops;
	u64 expires;
	int cpu;
	u32 since;
	u32 state;
};

static atomic_t alive;

static void release(struct heap *heap)
{
	memset(heap, 0x6b, sizeof(*heap));
	irq_free(heap);
	torture_inc(FREED);
	atomic_dec(&alive);
}

/*
 * Arm the timer, which may be freed from then on. If its CPU is offline, it is freed at once.
 * Return: whether it was armed.
 */
static bool arm(struct heap *heap)
{
	int cpu = torture_cpu(&heap->state), ret;
	bool away;

	rcu_read_lock();
	heap->timer.expires = heap->expires;
	heap->cpu = cpu;
	heap->since = torture_onoff_now();
	ret = add_apic_timer_on(&heap->timer, cpu);
	away = torture_onoff_away(cpu);
	rcu_read_unlock();
	if (!ret) {
		torture_inc(ARMED);
		return true;
	}
	if (ret == -ENODEV && away)
		torture_inc(REFUSED);
	else
		torture_fault("timer on the heap: arming returned %d", ret);
	release(heap);
	return false;
}

static void go(struct heap *heap)
{
	u64 distance = (torture_random(&heap->state) >> 8) % 100000;

	heap->expires = apic_timer_now() + apic_timer_ns_to_tsc(distance);
	arm(heap);
}

static void handler(unsigned long long now, unsigned long data)
{
	struct heap *heap = (struct heap *)data;

	torture_inc(RAN);
	if (heap->magic != MAGIC) {
		torture_fault("timer on the heap: ran after it was freed");
		return;
	}
	if (now < heap->expires)
		torture_fault("timer on the heap: early");
	if (!torture_onoff_may_be_on(heap->cpu, heap->since,
				     smp_processor_id()))
		torture_fault("timer on the heap: on a CPU other than requested");
	else if (heap->cpu != smp_processor_id())
		torture_inc(MOVED);
	torture_inc(FATES);

	if (heap->stops-- && torture_operation())
		go(heap);
	else
		release(heap);
}

/**
 * torture_free_step() - start one more timer
 * @state:	of the random numbers
 */
void torture_free_step(u32 *state)
{
	struct heap *heap;

	if (atomic_read(&alive) >= MOST || !torture_operation())
		return;
	heap = kzalloc(sizeof(*heap), GFP_KERNEL);
	if (!heap)
		return;
	atomic_inc(&alive);
	heap->magic = MAGIC;
	heap->state = torture_random(state);
	heap->stops = (torture_random(state) >> 8) % 4;
	heap->timer.function = handler;
	heap->timer.data = (unsigned long)heap;
	init_apic_timer(&heap->timer);

	if ((torture_random(state) >> 8) % 4) {
		go(heap);
		return;
	}
	/* This one never expires. */
	heap->expires = U64_MAX - torture_random(state);
	if (!arm(heap))
		return;
	if (del_apic_timer(&heap->timer) != 1)
		torture_fault("timer on the heap: not deleted");
	torture_inc(DELETED);
	torture_inc(FATES);
	release(heap);
}

/**
 * torture_free_busy() - whether timers are still to run
 *
 * Return: true if waiting is useful.
 */
bool torture_free_busy(void)
{
	return atomic_read(&alive);
}

/**
 * torture_free_finish() - check that all have been freed
 */
void torture_free_finish(void)
{
	irq_free_wait();
	if (atomic_read(&alive))
		torture_fault("%d timers on the heap never ran",
			      atomic_read(&alive));
}
