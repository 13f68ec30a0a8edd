// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that arm each other, and that threads also arm, are shut down meanwhile.
 *
 * From then on nothing runs, and the account of a pair is exact: shots armed == run + deleted,
 * because a timer that is shut down cannot be armed.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/slab.h>

#include "torture.h"

struct pair;

/**
 * struct member - one timer of a pair
 * @timer:	the timer
 * @pair:	its pair
 * @inside:	handlers running
 * @state:	random numbers for the handler
 */
struct member {
	struct apic_timer_list timer;
	struct pair *pair;
	atomic_t inside;
	u32 state;
};

/**
 * struct pair - two timers and their numbers
 * @member:	the timers
 * @in_use:	held for reading by threads that call the interface, and for
 *		writing by the one that initialises them again
 * @down:	both have been shut down
 * @armed:	shots armed; counted before the call, uncounted if refused
 * @ran:	handlers begun
 * @deleted:	shots deleted
 */
struct pair {
	struct member member[2];
	struct rw_semaphore in_use;
	bool down;
	atomic64_t armed, ran, deleted;
};

static struct pair *pairs;
static unsigned int count;

static void arm(struct member *member, u32 *state)
{
	struct pair *pair = member->pair;
	u64 expires = torture_moment(state);
	int cpu = torture_cpu(state), ret;
	bool away, down = READ_ONCE(pair->down);

	atomic64_inc(&pair->armed);
	rcu_read_lock();
	/* Only mod_apic_timer() may set another expiry: it may be pending. */
	switch ((torture_random(state) >> 8) % 4) {
	case 0:
		ret = add_apic_timer(&member->timer);
		break;
	case 1:
		ret = add_apic_timer_on(&member->timer, cpu);
		break;
	default:
		ret = mod_apic_timer(&member->timer, expires);
	}
	away = torture_onoff_away(-1);
	rcu_read_unlock();
	if (down && ret != -ESHUTDOWN)
		torture_fault("paired timer: armed after it was shut down: %d", ret);
	if (!ret) {
		torture_inc(ARMED);
		return;
	}
	atomic64_dec(&pair->armed);
	if (ret == 1)
		torture_inc(SUPERSEDED);
	else if (ret == -ENODEV && away)
		torture_inc(REFUSED);
	else if (ret != -EBUSY && ret != -ESHUTDOWN)
		torture_fault("paired timer: arming returned %d", ret);
}

static void handler(unsigned long long now, unsigned long data)
{
	struct member *member = (struct member *)data;
	struct pair *pair = member->pair;

	if (atomic_inc_return(&member->inside) != 1)
		torture_fault("paired timer: on two CPUs at once");
	if (READ_ONCE(pair->down))
		torture_fault("paired timer: ran after it was shut down");
	atomic64_inc(&pair->ran);
	torture_inc(RAN);
	if (torture_operation())
		arm(&pair->member[member == &pair->member[0]], &member->state);
	atomic_dec(&member->inside);
}

static void shut_down(struct pair *pair, u32 *state)
{
	unsigned int first = (torture_random(state) >> 8) % 2, i;
	int ret;

	for (i = 0; i < 2; i++) {
		ret = apic_timer_shutdown_sync(&pair->member[first ^ i].timer);
		if (ret == 1) {
			atomic64_inc(&pair->deleted);
			torture_inc(DELETED);
		} else if (ret) {
			torture_fault("paired timer: shutting down returned %d", ret);
		}
	}
	torture_inc(SHUT);
	WRITE_ONCE(pair->down, true);
}

/* Nobody else uses it, and both timers are shut down. */
static void add_up(struct pair *pair)
{
	s64 armed = atomic64_read(&pair->armed);
	s64 gone = atomic64_read(&pair->ran) + atomic64_read(&pair->deleted);
	unsigned int i;

	if (armed != gone)
		torture_fault("paired timers: armed %lld, gone %lld", armed, gone);
	for (i = 0; i < 2; i++)
		if (atomic_read(&pair->member[i].inside) ||
		    apic_timer_pending(&pair->member[i].timer))
			torture_fault("paired timer: in use after it was shut down");
	torture_add(FATES, gone);
	atomic64_set(&pair->armed, 0);
	atomic64_set(&pair->ran, 0);
	atomic64_set(&pair->deleted, 0);
}

static void begin(struct pair *pair)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		init_apic_timer(&pair->member[i].timer);
	WRITE_ONCE(pair->down, false);
}

/**
 * torture_pair_setup() - set up the timers
 * @timers:	number of timers of the other kinds
 * @seed:	of the random numbers
 *
 * Each pair keeps itself running, so there are few.
 *
 * Return: 0 or -errno.
 */
int torture_pair_setup(unsigned int timers, u32 seed)
{
	struct member *member;
	unsigned int i;

	count = 0;
	pairs = kvcalloc(1 + timers / 16, sizeof(*pairs), GFP_KERNEL);
	if (!pairs)
		return -ENOMEM;
	for (count = 0; count < 1 + timers / 16; count++) {
		init_rwsem(&pairs[count].in_use);
		for (i = 0; i < 2; i++) {
			member = &pairs[count].member[i];
			member->pair = &pairs[count];
			member->state = (seed + 2 * count + i) * 3266489917U | 1;
			member->timer.function = handler;
			member->timer.data = (unsigned long)member;
		}
		begin(&pairs[count]);
	}
	return 0;
}

/**
 * torture_pair_step() - do one random operation
 * @state:	of the random numbers
 */
void torture_pair_step(u32 *state)
{
	struct pair *pair = &pairs[(torture_random(state) >> 8) % count];
	u32 kind = (torture_random(state) >> 8) % 16;

	if (!torture_operation())
		return;
	if (kind < 4) {
		if (!down_write_trylock(&pair->in_use))
			return;
		if (pair->down) {
			add_up(pair);
			begin(pair);
		}
		up_write(&pair->in_use);
		return;
	}
	if (!down_read_trylock(&pair->in_use))
		return;
	if (kind < 6)
		shut_down(pair, state);
	else
		arm(&pair->member[kind % 2], state);
	up_read(&pair->in_use);
}

/**
 * torture_pair_finish() - shut all of them down, and add up
 */
void torture_pair_finish(void)
{
	u32 state = 1;
	unsigned int i;

	for (i = 0; i < count; i++) {
		shut_down(&pairs[i], &state);
		add_up(&pairs[i]);
	}
	count = 0;
	kvfree(pairs);
	pairs = NULL;
}
