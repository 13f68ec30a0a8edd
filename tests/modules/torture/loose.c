// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that all threads use at the same time, without a lock.
 *
 * Here the account is of numbers: in the end, shots armed == run + deleted. Only for shots armed
 * while a thread waited in del_apic_timer_sync() is it unknown whether that call deleted them:
 * those are counted separately.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "torture.h"

/**
 * struct loose - a timer and its numbers
 * @timer:	the timer
 * @armed:	shots armed; counted before the call, uncounted if refused
 * @ran:	handlers begun
 * @deleted:	calls that have deleted a shot
 * @unclear:	shots that a waiting call may have deleted
 * @waiting:	callers of del_apic_timer_sync()
 * @waited:	number of such waits begun
 * @inside:	handlers running
 * @state:	random numbers for the handler
 */
struct loose {
	struct apic_timer_list timer;
	atomic64_t armed, ran, deleted, unclear;
	atomic_t waiting, waited;
	atomic_t inside;
	u32 state;
};

static struct loose *looses;
static unsigned int count;

static void arm(struct loose *loose, u32 *state)
{
	int before = atomic_read(&loose->waited), ret;
	bool away, waiting = atomic_read(&loose->waiting);
	u64 expires = torture_moment(state);
	int cpu = torture_cpu(state);

	atomic64_inc(&loose->armed);
	rcu_read_lock();
	/* Only mod_apic_timer() may set another expiry: it may be pending. */
	switch ((torture_random(state) >> 8) % 4) {
	case 0:
		ret = add_apic_timer(&loose->timer);
		break;
	case 1:
		ret = add_apic_timer_on(&loose->timer, cpu);
		break;
	default:
		ret = mod_apic_timer(&loose->timer, expires);
	}
	away = torture_onoff_away(-1);
	rcu_read_unlock();
	if (!ret) {
		torture_inc(ARMED);
		if (waiting || atomic_read(&loose->waited) != before)
			atomic64_inc(&loose->unclear);
		return;
	}
	atomic64_dec(&loose->armed);
	if (ret == 1)
		torture_inc(SUPERSEDED);
	else if (ret == -ENODEV && away)
		torture_inc(REFUSED);
	else if (ret != -EBUSY)
		torture_fault("loose timer: arming returned %d", ret);
}

static void del(struct loose *loose)
{
	int ret = del_apic_timer(&loose->timer);

	if (ret == 1) {
		atomic64_inc(&loose->deleted);
		torture_inc(DELETED);
	} else if (ret == -EBUSY) {
		torture_inc(BUSY);
	} else if (ret && ret != -ENOENT) {
		torture_fault("loose timer: deleting returned %d", ret);
	}
}

static void del_sync(struct loose *loose)
{
	int ret;

	atomic_inc(&loose->waiting);
	atomic_inc(&loose->waited);
	ret = del_apic_timer_sync(&loose->timer);
	atomic_dec(&loose->waiting);

	torture_inc(WAITED);
	if (ret == 1) {
		atomic64_inc(&loose->deleted);
		torture_inc(DELETED);
	} else if (ret && ret != -ENOENT) {
		torture_fault("loose timer: waiting deletion returned %d", ret);
	}
}

static void operate(struct loose *loose, u32 *state)
{
	if (!torture_operation())
		return;
	if ((torture_random(state) >> 8) % 4)
		arm(loose, state);
	else
		del(loose);
}

static void handler(unsigned long long now, unsigned long data)
{
	struct loose *loose = (struct loose *)data;
	u32 choice = torture_random(&loose->state) >> 8;

	if (atomic_inc_return(&loose->inside) != 1)
		torture_fault("loose timer: on two CPUs at once");
	atomic64_inc(&loose->ran);
	if (atomic64_read(&loose->ran) + atomic64_read(&loose->deleted) >
	    atomic64_read(&loose->armed))
		torture_fault("loose timer: ran more often than armed");
	torture_inc(RAN);

	if (choice & 1)
		operate(loose, &loose->state);
	if (choice & 2)
		operate(&looses[(choice >> 2) % count], &loose->state);
	atomic_dec(&loose->inside);
}

/**
 * torture_loose_setup() - set up the timers
 * @timers:	their number
 * @seed:	of the random numbers
 *
 * Return: 0 or -errno.
 */
int torture_loose_setup(unsigned int timers, u32 seed)
{
	struct loose *loose;

	count = 0;
	looses = kvcalloc(timers, sizeof(*looses), GFP_KERNEL);
	if (!looses)
		return -ENOMEM;
	for (count = 0; count < timers; count++) {
		loose = &looses[count];
		loose->state = (seed + count) * 2246822519U | 1;
		loose->timer.function = handler;
		loose->timer.data = (unsigned long)loose;
		init_apic_timer(&loose->timer);
	}
	return 0;
}

/**
 * torture_loose_step() - do one random operation
 * @state:	of the random numbers
 */
void torture_loose_step(u32 *state)
{
	struct loose *loose = &looses[(torture_random(state) >> 8) % count];

	if ((torture_random(state) >> 8) % 16)
		operate(loose, state);
	else if (torture_operation())
		del_sync(loose);
}

/**
 * torture_loose_finish() - delete pending timers, and add up
 */
void torture_loose_finish(void)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct loose *loose = &looses[i];
		s64 armed, gone, unclear;

		/* Nothing arms it any more, so this deletes at most one shot. */
		del_sync(loose);
		armed = atomic64_read(&loose->armed);
		gone = atomic64_read(&loose->ran) + atomic64_read(&loose->deleted);
		unclear = atomic64_read(&loose->unclear);
		if (gone > armed || gone < armed - unclear)
			torture_fault("loose timer %u: armed %lld, gone %lld, unclear %lld",
				      i, armed, gone, unclear);
		torture_add(FATES, gone);
		if (atomic_read(&loose->inside))
			torture_fault("loose timer %u: handler running", i);
	}
	count = 0;
	kvfree(looses);
	looses = NULL;
}
