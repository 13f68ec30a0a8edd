// SPDX-License-Identifier: GPL-2.0
/*
 * What a handler may do: to its own timer, to its neighbours, in the past.
 *
 * Handlers only take notes, because a KUnit assertion must not fail in an
 * interrupt.
 */
#include <kunit/test.h>
#include <linux/hardirq.h>
#include <linux/lockdep.h>
#include <linux/slab.h>

#include "machine.h"

#define RUNS_MAX	20000

/* Events, in the order in which they happened. */
static struct {
	unsigned int runs;
	unsigned long data[RUNS_MAX];
	u64 now[RUNS_MAX];
	unsigned int nesting, nesting_max;
	unsigned long stack_low, stack_high;
	int result[4];
	bool good[4];
} notes;

static struct apic_timer_list timers[4];

static noinline void enter(u64 now, unsigned long data)
{
	unsigned long stack = (unsigned long)__builtin_frame_address(0);

	notes.stack_low = min(notes.stack_low, stack);
	notes.stack_high = max(notes.stack_high, stack);
	notes.nesting_max = max(notes.nesting_max, ++notes.nesting);
	if (notes.runs < RUNS_MAX) {
		notes.data[notes.runs] = data;
		notes.now[notes.runs] = now;
	}
	notes.runs++;
}

static void leave(void)
{
	notes.nesting--;
}

static int handler_test_init(struct kunit *test)
{
	unsigned int i;

	memset(&notes, 0, sizeof(notes));
	notes.stack_low = ULONG_MAX;
	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		init_apic_timer(&timers[i]);
		timers[i].data = i;
		timers[i].function = NULL;
	}
	return machine_init(test);
}

static void handler_test_exit(struct kunit *test)
{
	/* No handler ran inside another, and none was left unfinished. */
	KUNIT_EXPECT_LE(test, notes.nesting_max, 1U);
	KUNIT_EXPECT_EQ(test, notes.nesting, 0U);
	machine_exit(test);
}

static void arm(struct kunit *test, unsigned int i, u64 distance,
		void (*function)(unsigned long long, unsigned long))
{
	timers[i].function = function;
	timers[i].expires = apic_timer_sim.now + distance;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[i]), 0);
}

static unsigned long run_for(u64 cycles)
{
	return apic_timer_sim_run(apic_timer_sim.now + cycles, MACHINE_LIMIT);
}

static void note(unsigned long long now, unsigned long data)
{
	enter(now, data);
	leave();
}

static void context(unsigned long long now, unsigned long data)
{
	enter(now, data);
	notes.good[0] = in_hardirq() && irqs_disabled();
	notes.good[1] = !raw_spin_is_locked(&machine_base()->lock) &&
			!lockdep_is_held(&machine_base()->lock);
	notes.good[2] = !apic_timer_pending(&timers[data]);
	notes.good[3] = now >= timers[data].expires &&
			now <= apic_timer_now();
	leave();
}

static void context_test(struct kunit *test)
{
	arm(test, 2, 1000, context);
	run_for(5000);
	KUNIT_ASSERT_EQ(test, notes.runs, 1U);
	KUNIT_EXPECT_EQ(test, notes.data[0], 2UL);
	KUNIT_EXPECT_TRUE(test, notes.good[0]);
	KUNIT_EXPECT_TRUE(test, notes.good[1]);
	KUNIT_EXPECT_TRUE(test, notes.good[2]);
	KUNIT_EXPECT_TRUE(test, notes.good[3]);
}

#define PERIOD	10000

static void rearm(unsigned long long now, unsigned long data)
{
	enter(now, data);
	timers[data].expires += PERIOD;
	if (notes.runs < 100)
		notes.result[0] |= add_apic_timer(&timers[data]);
	leave();
}

static void rearms_itself_test(struct kunit *test)
{
	u64 start = apic_timer_sim.now + PERIOD, late;
	unsigned int i;

	arm(test, 0, PERIOD, rearm);
	run_for(200 * PERIOD);
	KUNIT_ASSERT_EQ(test, notes.runs, 100U);
	KUNIT_EXPECT_EQ(test, notes.result[0], 0);
	for (i = 0; i < 100; i++) {
		late = notes.now[i] - (start + (u64)i * PERIOD);
		KUNIT_ASSERT_GE(test, late, machine_plain.latency);
		KUNIT_ASSERT_LE(test, late, machine_plain.latency + 20);
	}
}

/* The bug of 2001: "already due" was handled by recursion. */
static void rearm_past(unsigned long long now, unsigned long data)
{
	enter(now, data);
	timers[data].expires -= 1;
	if (notes.runs < RUNS_MAX)
		notes.result[0] |= add_apic_timer(&timers[data]);
	leave();
}

static void rearms_in_the_past_test(struct kunit *test)
{
	unsigned long interrupts;

	arm(test, 0, 1000, rearm_past);
	interrupts = run_for(10 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, notes.runs, (unsigned int)RUNS_MAX);
	KUNIT_EXPECT_EQ(test, notes.result[0], 0);
	/* All from one loop, at one depth of the stack. */
	KUNIT_EXPECT_EQ(test, interrupts, 1UL);
	KUNIT_EXPECT_EQ(test, notes.nesting_max, 1U);
	KUNIT_EXPECT_EQ(test, notes.stack_low, notes.stack_high);
}

/* Each handler arms the next two, as due as itself. */
static struct apic_timer_list tree[1023];

static void grow(unsigned long long now, unsigned long data)
{
	unsigned long child;

	enter(now, data);
	for (child = 2 * data + 1; child <= 2 * data + 2; child++) {
		if (child >= ARRAY_SIZE(tree))
			break;
		tree[child].expires = tree[data].expires - 1;
		notes.result[0] |= add_apic_timer(&tree[child]);
	}
	leave();
}

static void adds_others_in_the_past_test(struct kunit *test)
{
	u64 late = machine_stat(ADDED_LATE);
	unsigned long interrupts;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tree); i++) {
		init_apic_timer(&tree[i]);
		tree[i].function = grow;
		tree[i].data = i;
	}
	tree[0].expires = apic_timer_sim.now + 1000;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&tree[0]), 0);
	interrupts = run_for(NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, interrupts, 1UL);
	KUNIT_EXPECT_EQ(test, notes.runs, (unsigned int)ARRAY_SIZE(tree));
	KUNIT_EXPECT_EQ(test, notes.result[0], 0);
	KUNIT_EXPECT_EQ(test, machine_stat(ADDED_LATE) - late,
			(u64)ARRAY_SIZE(tree) - 1);
	KUNIT_EXPECT_EQ(test, notes.stack_low, notes.stack_high);
	/* Each timer expires before its parent's generation: the deepest first. */
	KUNIT_EXPECT_EQ(test, notes.data[1], 1UL);
	KUNIT_EXPECT_EQ(test, notes.data[2], 3UL);
	KUNIT_EXPECT_EQ(test, notes.data[3], 7UL);
}

static void delete_self(unsigned long long now, unsigned long data)
{
	enter(now, data);
	notes.result[0] = del_apic_timer(&timers[data]);
	notes.result[1] = mod_apic_timer(&timers[data], now + 100);
	notes.result[2] = del_apic_timer(&timers[data]);
	notes.result[3] = del_apic_timer(&timers[data]);
	leave();
}

static void deletes_itself_test(struct kunit *test)
{
	arm(test, 0, 1000, delete_self);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, notes.runs, 1U);
	KUNIT_EXPECT_EQ(test, notes.result[0], -EBUSY);
	KUNIT_EXPECT_EQ(test, notes.result[1], 0);
	KUNIT_EXPECT_EQ(test, notes.result[2], 1);
	KUNIT_EXPECT_EQ(test, notes.result[3], -EBUSY);
	KUNIT_EXPECT_EQ(test, del_apic_timer(&timers[0]), 0);
}

static void wait_for_self(unsigned long long now, unsigned long data)
{
	enter(now, data);
	notes.result[0] = del_apic_timer_sync(&timers[data]);
	timers[data].expires = now + 100;
	notes.result[1] = add_apic_timer(&timers[data]);
	notes.result[2] = del_apic_timer_sync(&timers[data]);
	notes.good[0] = !apic_timer_pending(&timers[data]);
	/* Another timer's handler does not matter. */
	notes.result[3] = del_apic_timer_sync(&timers[1]);
	leave();
}

static void waits_for_itself_test(struct kunit *test)
{
	arm(test, 1, 90000, note);
	arm(test, 0, 1000, wait_for_self);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, notes.runs, 1U);
	KUNIT_EXPECT_EQ(test, notes.result[0], -EDEADLK);
	KUNIT_EXPECT_EQ(test, notes.result[1], 0);
	KUNIT_EXPECT_EQ(test, notes.result[2], -EDEADLK);
	KUNIT_EXPECT_TRUE(test, notes.good[0]);
	KUNIT_EXPECT_EQ(test, notes.result[3], 1);
	run_for(200000);
	KUNIT_EXPECT_EQ(test, notes.runs, 1U);
}

static void add_self_twice(unsigned long long now, unsigned long data)
{
	enter(now, data);
	if (notes.runs == 1) {
		timers[data].expires = now + 500;
		notes.result[0] = add_apic_timer(&timers[data]);
		notes.result[1] = add_apic_timer(&timers[data]);
		notes.result[2] = add_apic_timer_on(&timers[data], 0);
		notes.result[3] = mod_apic_timer(&timers[data], now + 700);
	}
	leave();
}

static void adds_itself_twice_test(struct kunit *test)
{
	arm(test, 0, 1000, add_self_twice);
	run_for(5000);
	KUNIT_EXPECT_EQ(test, notes.runs, 2U);
	KUNIT_EXPECT_EQ(test, notes.result[0], 0);
	KUNIT_EXPECT_EQ(test, notes.result[1], -EBUSY);
	KUNIT_EXPECT_EQ(test, notes.result[2], -EBUSY);
	KUNIT_EXPECT_EQ(test, notes.result[3], 1);
	KUNIT_EXPECT_GE(test, notes.now[1] - notes.now[0], 700ULL);
}

struct heap_timer {
	struct apic_timer_list timer;
	unsigned long id;
};

static void free_self(unsigned long long now, unsigned long data)
{
	struct heap_timer *heap = (struct heap_timer *)data;

	enter(now, heap->id);
	/* If the core still accessed the timer, it would find this pattern. */
	memset(heap, 0x6b, sizeof(*heap));
	kfree(heap);
	leave();
}

static void frees_itself_test(struct kunit *test)
{
	struct heap_timer *heap;
	unsigned int i;

	for (i = 0; i < 200; i++) {
		heap = kzalloc(sizeof(*heap), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, heap);
		init_apic_timer(&heap->timer);
		heap->id = i;
		heap->timer.data = (unsigned long)heap;
		heap->timer.function = free_self;
		/* some of them together */
		heap->timer.expires = machine_plain.tsc + 5000 + i / 4 * 300;
		KUNIT_ASSERT_EQ(test, add_apic_timer(&heap->timer), 0);
	}
	run_for(NSEC_PER_MSEC);
	KUNIT_ASSERT_EQ(test, notes.runs, 200U);
	for (i = 0; i < 200; i++)
		KUNIT_ASSERT_EQ(test, notes.data[i], (unsigned long)i);
}

static void delete_neighbours(unsigned long long now, unsigned long data)
{
	enter(now, data);
	notes.result[0] = del_apic_timer(&timers[data - 1]);
	notes.result[1] = del_apic_timer(&timers[data + 1]);
	notes.result[2] = del_apic_timer_sync(&timers[data + 2]);
	leave();
}

static void deletes_neighbours_test(struct kunit *test)
{
	/* 0 has run before; 2, which is due with 1, and 3 will not. */
	arm(test, 0, 1000, note);
	arm(test, 1, 1000, delete_neighbours);
	timers[2].expires = timers[1].expires;
	timers[2].function = note;
	KUNIT_ASSERT_EQ(test, add_apic_timer(&timers[2]), 0);
	arm(test, 3, 2000, note);
	run_for(5000);
	KUNIT_ASSERT_EQ(test, notes.runs, 2U);
	KUNIT_EXPECT_EQ(test, notes.data[1], 1UL);
	KUNIT_EXPECT_EQ(test, notes.result[0], 0);
	KUNIT_EXPECT_EQ(test, notes.result[1], 1);
	KUNIT_EXPECT_EQ(test, notes.result[2], 1);
}

static void pull_neighbour(unsigned long long now, unsigned long data)
{
	enter(now, data);
	notes.result[0] = mod_apic_timer(&timers[2], now - 1);
	notes.result[1] = mod_apic_timer(&timers[1], now + 50000);
	leave();
}

static void moves_neighbours_test(struct kunit *test)
{
	/* 1 is due with 0 and is put off; 2 is far and is moved near. */
	arm(test, 0, 1000, pull_neighbour);
	arm(test, 1, 1001, note);
	arm(test, 2, 90000, note);
	run_for(10000);
	KUNIT_ASSERT_EQ(test, notes.runs, 2U);
	KUNIT_EXPECT_EQ(test, notes.data[1], 2UL);
	KUNIT_EXPECT_EQ(test, notes.result[0], 1);
	KUNIT_EXPECT_EQ(test, notes.result[1], 1);
	run_for(200000);
	KUNIT_ASSERT_EQ(test, notes.runs, 3U);
	KUNIT_EXPECT_EQ(test, notes.data[2], 1UL);
}

static void add_earlier(unsigned long long now, unsigned long data)
{
	enter(now, data);
	timers[2].expires = now + 200;
	timers[2].function = note;
	notes.result[0] = add_apic_timer(&timers[2]);
	leave();
}

static void adds_a_new_head_test(struct kunit *test)
{
	arm(test, 0, 1000, add_earlier);
	arm(test, 1, 50000, note);
	run_for(100000);
	KUNIT_ASSERT_EQ(test, notes.runs, 3U);
	KUNIT_EXPECT_EQ(test, notes.data[1], 2UL);
	KUNIT_EXPECT_EQ(test, notes.data[2], 1UL);
	KUNIT_EXPECT_LE(test, notes.now[1] - notes.now[0],
			200 + machine_plain.latency + 20);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(context_test),
	KUNIT_CASE(rearms_itself_test),
	KUNIT_CASE(rearms_in_the_past_test),
	KUNIT_CASE(adds_others_in_the_past_test),
	KUNIT_CASE(deletes_itself_test),
	KUNIT_CASE(waits_for_itself_test),
	KUNIT_CASE(adds_itself_twice_test),
	KUNIT_CASE(frees_itself_test),
	KUNIT_CASE(deletes_neighbours_test),
	KUNIT_CASE(moves_neighbours_test),
	KUNIT_CASE(adds_a_new_head_test),
	{}
};

static struct kunit_suite suite = {
	.name = "apic_timer_handler",
	.init = handler_test_init,
	.exit = handler_test_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
