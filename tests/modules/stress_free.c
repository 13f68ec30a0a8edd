// SPDX-License-Identifier: GPL-2.0
/*
 * Timers on the heap: they travel from CPU to CPU, and in the end their own
 * handler frees them. Others are freed by who has deleted them.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "irq_free.h"
#include "stress.h"

#define MAGIC	0x600d714e5UL
#define MOST	1000	/* at a time */

/**
 * struct heap - a timer on the heap
 * @timer:	the timer
 * @magic:	%MAGIC while it lives
 * @stops:	CPUs it still goes to
 * @expires:	its moment
 * @cpu:	its CPU
 * @state:	random numbers for the handler
 */
struct heap {
	struct apic_timer_list timer;
	unsigned long magic;
	unsigned int stops;
	u64 expires;
	int cpu;
	u32 state;
};

static atomic_t alive;

static void release(struct heap *heap)
{
	memset(heap, 0x6b, sizeof(*heap));
	irq_free(heap);
	stress_inc(FREED);
	atomic_dec(&alive);
}

/* From the moment it is armed, it may be gone. */
static void go(struct heap *heap)
{
	u64 distance = (stress_random(&heap->state) >> 8) % 100000;
	int ret;

	heap->expires = apic_timer_now() + apic_timer_ns_to_tsc(distance);
	heap->timer.expires = heap->expires;
	heap->cpu = stress_cpu(&heap->state);
	stress_inc(ARMED);
	ret = add_apic_timer_on(&heap->timer, heap->cpu);
	if (ret)
		stress_fault("timer on the heap: add returned %d", ret);
}

static void handler(unsigned long long now, unsigned long data)
{
	struct heap *heap = (struct heap *)data;

	stress_inc(RAN);
	if (heap->magic != MAGIC) {
		stress_fault("timer on the heap: ran after it was freed");
		return;
	}
	if (now < heap->expires)
		stress_fault("timer on the heap: early");
	if (heap->cpu != smp_processor_id())
		stress_fault("timer on the heap: on another CPU than asked for");

	if (heap->stops-- && stress_operation())
		go(heap);
	else
		release(heap);
}

/**
 * stress_free_setup() - before the first step
 */
void stress_free_setup(void)
{
	atomic_set(&alive, 0);
}

/**
 * stress_free_step() - one more timer
 * @state:	of the random numbers
 */
void stress_free_step(u32 *state)
{
	struct heap *heap;

	if (atomic_read(&alive) >= MOST || !stress_operation())
		return;
	heap = kzalloc(sizeof(*heap), GFP_KERNEL);
	if (!heap)
		return;
	atomic_inc(&alive);
	heap->magic = MAGIC;
	heap->state = stress_random(state);
	heap->stops = (stress_random(state) >> 8) % 4;
	heap->timer.function = handler;
	heap->timer.data = (unsigned long)heap;
	init_apic_timer(&heap->timer);

	if ((stress_random(state) >> 8) % 4) {
		go(heap);
		return;
	}
	/* This one won't come. */
	heap->timer.expires = U64_MAX - stress_random(state);
	stress_inc(ARMED);
	if (add_apic_timer_on(&heap->timer, stress_cpu(state)))
		stress_fault("timer on the heap: not armed");
	if (del_apic_timer(&heap->timer) != 1)
		stress_fault("timer on the heap: not deleted");
	stress_inc(DELETED);
	release(heap);
}

/**
 * stress_free_busy() - whether timers are still to run
 *
 * Return: true when waiting is of use.
 */
bool stress_free_busy(void)
{
	return atomic_read(&alive);
}

/**
 * stress_free_finish() - all must have been freed
 */
void stress_free_finish(void)
{
	irq_free_wait();
	if (atomic_read(&alive))
		stress_fault("%d timers on the heap never ran",
			     atomic_read(&alive));
}
