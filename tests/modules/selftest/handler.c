// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers may arm, change, delete and free their own timers and others.
 */
#include <linux/irqflags.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../irq_free.h"
#include "selftest.h"

/* Arm the own timer again, @limit times in total, @context cycles later. */
static void add_again(struct selftest_shot *shot)
{
	if (atomic_read(&shot->runs) + 1 >= shot->limit)
		return;
	selftest_shot_due(shot, shot->now + (unsigned long)shot->context);
	shot->ret |= add_apic_timer(&shot->timer);
}

static void chain(struct selftest *test, unsigned int limit, u64 cycles)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, add_again);
	shot.limit = limit;
	shot.context = (void *)(unsigned long)cycles;
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, limit);
	EXPECT_EQ(test, shot.ret, 0);
	del_apic_timer_sync(&shot.timer);
}

static void add_itself(struct selftest *test)
{
	chain(test, 100, apic_timer_us_to_tsc(200));
}

/* Already due each time: a recursion would overflow the stack. */
static void add_itself_already_due(struct selftest *test)
{
	chain(test, 20000, 0);
}

static void mod_again(struct selftest_shot *shot)
{
	u64 expires = shot->now + apic_timer_us_to_tsc(100);

	if (atomic_read(&shot->runs) + 1 >= shot->limit)
		return;
	/* No longer pending; then pending. */
	shot->ret |= mod_apic_timer(&shot->timer, U64_MAX);
	WRITE_ONCE(shot->due, expires);
	shot->ret |= mod_apic_timer(&shot->timer, expires) != 1;
}

static void mod_itself(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, mod_again);
	shot.limit = 50;
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 50);
	EXPECT_EQ(test, shot.ret, 0);
	del_apic_timer_sync(&shot.timer);
}

/* Delete the own timer: running, so not pending; armed again, so pending. */
static void delete_oneself(struct selftest_shot *shot)
{
	int *ret = shot->context;

	ret[0] = del_apic_timer(&shot->timer);
	shot->timer.expires = shot->now;
	ret[1] = add_apic_timer(&shot->timer);
	ret[2] = apic_timer_pending(&shot->timer);
	ret[3] = del_apic_timer(&shot->timer);
	ret[4] = del_apic_timer(&shot->timer);
}

static void delete_itself(struct selftest *test)
{
	struct selftest_shot shot;
	int ret[5];

	selftest_shot_init(&shot, delete_oneself);
	shot.context = ret;
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, ret[0], -EBUSY);
	EXPECT_EQ(test, ret[1], 0);
	EXPECT_EQ(test, ret[2], 1);
	EXPECT_EQ(test, ret[3], 1);
	EXPECT_EQ(test, ret[4], -EBUSY);
	selftest_sleep_ms(5);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

struct freeing {
	struct apic_timer_list timer;
	atomic_t *runs;
};

static void free_oneself(unsigned long long now, unsigned long data)
{
	struct freeing *freeing = (struct freeing *)data;

	atomic_inc(freeing->runs);
	memset(freeing, 0x6b, sizeof(*freeing));
	irq_free(freeing);
}

static void free_itself(struct selftest *test)
{
	struct freeing *freeing;
	atomic_t runs = ATOMIC_INIT(0);
	int i, armed = 0;

	for (i = 0; i < 200; i++) {
		freeing = kzalloc(sizeof(*freeing), GFP_KERNEL);
		if (!EXPECT(test, freeing))
			break;
		freeing->runs = &runs;
		freeing->timer.function = free_oneself;
		freeing->timer.data = (unsigned long)freeing;
		init_apic_timer(&freeing->timer);
		/* Some alone, some at the same moment as others. */
		freeing->timer.expires = apic_timer_now() +
			(i % 3 ? apic_timer_us_to_tsc(i) : 0);
		if (EXPECT_EQ(test, add_apic_timer(&freeing->timer), 0))
			armed++;
	}
	EXPECT(test, selftest_wait(atomic_read(&runs) >= armed));
	EXPECT_EQ(test, atomic_read(&runs), armed);
	irq_free_wait();
}

static void delete_the_other(struct selftest_shot *shot)
{
	struct selftest_shot *other = shot->context;

	shot->ret = del_apic_timer(&other->timer);
}

/* Both due at the same moment: the first deletes the second. */
static void delete_neighbour(struct selftest *test)
{
	struct selftest_shot a, b, c;

	selftest_shot_init(&a, delete_the_other);
	selftest_shot_init(&b, NULL);
	selftest_shot_init(&c, NULL);
	a.context = &b;
	local_irq_disable();
	selftest_shot_due_us(&a, 2000);
	selftest_shot_due(&b, a.due);
	selftest_shot_due(&c, a.due);
	EXPECT_EQ(test, add_apic_timer(&a.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&b.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&c.timer), 0);
	local_irq_enable();
	EXPECT_RUNS(test, &c, 1);
	EXPECT_RUNS(test, &a, 1);
	EXPECT_EQ(test, a.ret, 1);
	EXPECT_EQ(test, atomic_read(&b.runs), 0);
	EXPECT_EQ(test, del_apic_timer_sync(&b.timer), 0);
	del_apic_timer_sync(&a.timer);
	del_apic_timer_sync(&c.timer);
}

static void put_off_the_other(struct selftest_shot *shot)
{
	struct selftest_shot *other = shot->context;

	other->due = shot->now + apic_timer_us_to_tsc(10000);
	shot->ret = mod_apic_timer(&other->timer, other->due);
}

static void mod_neighbour(struct selftest *test)
{
	struct selftest_shot a, b;

	selftest_shot_init(&a, put_off_the_other);
	selftest_shot_init(&b, NULL);
	a.context = &b;
	local_irq_disable();
	selftest_shot_due_us(&a, 2000);
	selftest_shot_due(&b, a.due);
	EXPECT_EQ(test, add_apic_timer(&a.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&b.timer), 0);
	local_irq_enable();
	EXPECT_RUNS(test, &a, 1);
	EXPECT_RUNS(test, &b, 1);
	EXPECT_EQ(test, a.ret, 1);
	del_apic_timer_sync(&a.timer);
	del_apic_timer_sync(&b.timer);
}

static void add_the_other(struct selftest_shot *shot)
{
	struct selftest_shot *other = shot->context;

	selftest_shot_due(other, shot->now + shot->limit);
	shot->ret = add_apic_timer(&other->timer);
}

/* Already due, so run from the same interrupt; and later. */
static void add_another(struct selftest *test)
{
	unsigned int later[] = { 0, apic_timer_us_to_tsc(1000) };
	struct selftest_shot a, b;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(later); i++) {
		selftest_shot_init(&a, add_the_other);
		selftest_shot_init(&b, NULL);
		a.context = &b;
		a.limit = later[i];
		selftest_shot_due_us(&a, 100);
		EXPECT_EQ(test, add_apic_timer(&a.timer), 0);
		EXPECT_RUNS(test, &a, 1);
		EXPECT_RUNS(test, &b, 1);
		EXPECT_EQ(test, a.ret, 0);
		EXPECT_EQ(test, b.cpu, a.cpu);
		EXPECT(test, b.order > a.order);
		del_apic_timer_sync(&a.timer);
		del_apic_timer_sync(&b.timer);
	}
}

/* Wait for the handler of another timer of this CPU, which is not running now. */
static void delete_the_other_sync(struct selftest_shot *shot)
{
	struct selftest_shot *other = shot->context;

	shot->ret = del_apic_timer_sync(&other->timer);
}

static void delete_neighbour_sync(struct selftest *test)
{
	struct selftest_shot a, b;

	selftest_shot_init(&a, delete_the_other_sync);
	selftest_shot_init(&b, NULL);
	a.context = &b;
	selftest_shot_due_us(&a, 1000);
	b.timer.expires = U64_MAX;
	EXPECT_EQ(test, add_apic_timer(&b.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&a.timer), 0);
	EXPECT_RUNS(test, &a, 1);
	EXPECT_EQ(test, a.ret, 1);
	EXPECT_EQ(test, atomic_read(&b.runs), 0);
	del_apic_timer_sync(&a.timer);
	del_apic_timer_sync(&b.timer);
}

const struct selftest_case selftest_handler_cases[] = {
	CASE(add_itself),
	CASE(add_itself_already_due),
	CASE(mod_itself),
	CASE(delete_itself),
	CASE(free_itself),
	CASE(delete_neighbour),
	CASE(delete_neighbour_sync),
	CASE(mod_neighbour),
	CASE(add_another),
	{}
};
